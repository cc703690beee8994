"""The vision-language model of SmolVLA: where it comes from, and small random ones made here.

A random one has the structure of SmolVLM2 at another size, weights from a fixed seed and a
vocabulary of the words that the suites' instructions use. It needs no download.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from prism_motor._checks import InputError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import atomic_folder

if TYPE_CHECKING:
    from torch import nn

CACHE_VARIABLE = "PRISM_VLM_CACHE"
"""Environment variable with the folder of random models, instead of the user's cache."""

RANDOM = "random-"
"""How names of random models begin."""

_SEED = 1
"""Seed of their weights, the same for every run: only what is trained differs between seeds."""


@dataclass(frozen=True)
class VLMSizes:
    """Sizes of a vision-language model with the structure of SmolVLM2."""

    text_width: int
    """Width of the language model."""
    text_inner: int
    """Inner width of its feed-forward layers."""
    text_layers: int
    """Number of its layers."""
    heads: int
    """Number of attention heads."""
    shared_heads: int
    """Number of heads of keys and values, each used by several."""
    head_width: int
    """Width of a head."""
    vision_width: int
    """Width of the vision encoder."""
    vision_inner: int
    """Inner width of its feed-forward layers."""
    vision_layers: int
    """Number of its layers."""
    vision_heads: int
    """Number of its attention heads."""
    image_size: int
    """Side of the images it sees, pixels."""
    patch: int
    """Side of a patch, pixels."""
    merged: int
    """Side of the square of patches that become one token."""
    words: int = 256
    """Size of the vocabulary."""


SIZES: dict[str, VLMSizes] = {
    "random-tiny": VLMSizes(
        32, 48, 2, 2, 1, 16, vision_width=16, vision_inner=24, vision_layers=1, vision_heads=2,
        image_size=32, patch=8, merged=2,
    ),
    "random-laptop": VLMSizes(
        192, 384, 4, 6, 2, 32, vision_width=192, vision_inner=384, vision_layers=1, vision_heads=6,
        image_size=64, patch=8, merged=2,
    ),
    # Only its size, to count parameters without a connection.
    "HuggingFaceTB/SmolVLM2-500M-Video-Instruct": VLMSizes(
        960, 2560, 32, 15, 5, 64, vision_width=768, vision_inner=3072, vision_layers=12,
        vision_heads=12, image_size=512, patch=16, merged=4, words=49280,
    ),
}  # fmt: skip
"""Sizes by the name of the model."""

_WORDS = """
, - 180 90 a alphabet and another back basket basketball bbq between bin black book both
bottle bottom bowl box butter button by bypass cabinet caddy center cheese chocolate clockwise
close coffee compartment cookie counter cover cream degrees dial door down drawer dressing
dunk faucet from front get goal grasp gripper hammer handle hole in insert inside into it
joint juice ketchup kick left lever lock machine microwave middle milk moka mug next nut of
off on one onto open orange out peg pick place plate position pot pots press puck pudding pull
push put rack ramekin reach revolving right rotate rotating salad sauce screw shelf sideways
slide soccer soup stick stove sweep table the to tomato top turn under unlock unplug up using
wall white window wine with wooden yellow
"""
"""Words of the instructions of LIBERO and Meta-World; others are one unknown word."""

_SPECIAL = {
    "fake_image_token": "<fake_token_around_image>",
    "image_token": "<image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}


def is_random(name: str) -> bool:
    """Return whether a model is made here."""
    return name.startswith(RANDOM)


def find_vlm(name: str) -> str:
    """Return what LeRobot loads a model by: a folder or a name on the hub; raise if it is absent.

    Args:
        name: ``network.vlm`` of a run.
    """
    if is_random(name):
        known = [one for one in SIZES if is_random(one)]
        return str(_random_folder(check_choice("network.vlm", name, known)))
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
            raise InputError(
                f"network.vlm: {folder} is not a vision-language model: it needs config.json, a "
                "tokenizer and *.safetensors, as on the hub."
            )
        return str(folder)
    _check_hub(name)
    return name


def _check_hub(name: str) -> None:
    """Raise unless a model is in the hub's cache, or can be fetched."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise missing_extra("SmolVLA", "manipulation", error) from error
    try:
        hf_hub_download(name, "config.json")
    except Exception as error:  # the hub fails in many ways
        raise InputError(
            f"network.vlm: there is no folder {name}, and it cannot be fetched from the hub "
            f"({type(error).__name__}). Connect once to download it, give its folder, or use "
            "--preset laptop, whose model needs no download."
        ) from error


def _random_folder(name: str) -> Path:
    """Return the folder of a random model, written when it is first asked for."""
    chosen = os.environ.get(CACHE_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prism" / "vlm"
    folder = (Path(chosen).expanduser() if chosen else cache).resolve() / name
    if not (folder / "config.json").is_file():
        with atomic_folder(folder) as temporary:
            write_vlm(temporary, SIZES[name])
    return folder


def write_vlm(folder: Path, sizes: VLMSizes) -> Path:
    """Write config, tokenizer and processor of a model, but no weights, and return the folder."""
    try:
        from transformers import SmolVLMConfig, SmolVLMImageProcessor, SmolVLMProcessor
        from transformers.models.smolvlm.video_processing_smolvlm import SmolVLMVideoProcessor
    except ImportError as error:
        raise missing_extra("SmolVLA", "manipulation", error) from error
    tokenizer = _make_tokenizer()
    SmolVLMConfig(
        text_config={
            "model_type": "llama",
            "pad_token_id": tokenizer.pad_token_id,
            "hidden_size": sizes.text_width,
            "intermediate_size": sizes.text_inner,
            "num_hidden_layers": sizes.text_layers,
            "num_attention_heads": sizes.heads,
            "num_key_value_heads": sizes.shared_heads,
            "head_dim": sizes.head_width,
            "vocab_size": sizes.words,
        },
        vision_config={
            "hidden_size": sizes.vision_width,
            "intermediate_size": sizes.vision_inner,
            "num_hidden_layers": sizes.vision_layers,
            "num_attention_heads": sizes.vision_heads,
            "image_size": sizes.image_size,
            "patch_size": sizes.patch,
        },
        scale_factor=sizes.merged,
        image_token_id=tokenizer.convert_tokens_to_ids(_SPECIAL["image_token"]),
        pad_token_id=tokenizer.pad_token_id,
    ).save_pretrained(folder)
    edge = {"longest_edge": sizes.image_size}
    images = SmolVLMImageProcessor(size=edge, max_image_size=edge)
    videos = SmolVLMVideoProcessor(size=edge, max_image_size=edge)  # type: ignore[call-arg]
    tokens = (sizes.image_size // sizes.patch // sizes.merged) ** 2
    SmolVLMProcessor(images, tokenizer, videos, image_seq_len=tokens).save_pretrained(folder)
    return folder


def _make_tokenizer() -> Any:
    """Return a tokenizer with one token per known word."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    listed = ["<unk>", "<pad>", *_SPECIAL.values(), *_WORDS.split()]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(listed)}, "<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()  # type: ignore[assignment]
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        extra_special_tokens=_SPECIAL,
    )


def set_random_weights(vlm: nn.Module) -> None:
    """Give a model the fixed random weights, whatever the seed of the run."""
    from transformers import SmolVLMForConditionalGeneration

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        fresh = SmolVLMForConditionalGeneration(vlm.config).state_dict()  # type: ignore[arg-type]
    own = vlm.state_dict()  # without the layers that are not used
    vlm.load_state_dict({name: fresh[name] for name in own})
