"""SmolVLM without a download: config, tokenizer and processor written by ourselves."""

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    SmolVLMConfig,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
)

TINY = {
    "text_config": {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "vocab_size": 64,
    },
    "vision_config": {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
    },
    "scale_factor": 2,
}
# The sizes of SmolVLM2-500M-Video-Instruct.
PAPER = {
    "text_config": {
        "hidden_size": 960,
        "intermediate_size": 2560,
        "num_hidden_layers": 32,
        "num_attention_heads": 15,
        "num_key_value_heads": 5,
        "head_dim": 64,
        "vocab_size": 49280,
    },
    "vision_config": {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "image_size": 512,
        "patch_size": 16,
    },
    "scale_factor": 4,
}
_SPECIAL = {
    "fake_image_token": "<fake_token_around_image>",
    "image_token": "<image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}


def write_smolvlm(folder, sizes):
    """Write what SmolVLA loads by ``vlm_model_name`` (but no weights) and return the folder."""
    tokenizer = _make_tokenizer()
    text = {"model_type": "llama", "pad_token_id": tokenizer.pad_token_id, **sizes["text_config"]}
    SmolVLMConfig(
        text_config=text,
        vision_config=sizes["vision_config"],
        scale_factor=sizes["scale_factor"],
        image_token_id=tokenizer.convert_tokens_to_ids(_SPECIAL["image_token"]),
        pad_token_id=tokenizer.pad_token_id,
    ).save_pretrained(folder)
    edge = {"longest_edge": sizes["vision_config"]["image_size"]}
    images = SmolVLMImageProcessor(size=edge, max_image_size=edge)
    videos = SmolVLMVideoProcessor(size=edge, max_image_size=edge)
    SmolVLMProcessor(images, tokenizer, videos, image_seq_len=4).save_pretrained(folder)
    return folder


def _make_tokenizer():
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", *_SPECIAL.values()])
    tokenizer.train_from_iterator(["push the red block to the left"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        extra_special_tokens=_SPECIAL,
    )
