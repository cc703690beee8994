"""Checkpoints: what loads, and what is said about what does not."""

import json
import re

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

import torch
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.diffusion.modeling_diffusion import DiffusionPolicy

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismDiffusionPolicy
from prism_motor.integrations.lerobot.checkpoints import CheckpointMismatchError


@pytest.fixture
def save(make_config, tmp_path):
    """Write a small policy and return its folder."""

    def write(conditioner="prism", **fields):
        folder = tmp_path / f"saved-{conditioner}"
        PrismDiffusionPolicy(make_config(conditioner, "objects", **fields)).save_pretrained(folder)
        return folder

    return write


def same_weights(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    return list(ours) == list(theirs) and all(torch.equal(ours[k], theirs[k]) for k in ours)


@pytest.mark.parametrize("conditioner", ["linear", "mlp", "prism"])
def test_round_trip(conditioner, make_config, make_batch, tmp_path):
    config = make_config(conditioner, "objects", prism_latent=32, prism_gate_init=0.2)
    policy = PrismDiffusionPolicy(config)
    policy.save_pretrained(tmp_path)
    loaded = PrismDiffusionPolicy.from_pretrained(tmp_path)
    assert isinstance(loaded.config, PrismDiffusionConfig)
    assert loaded.config == config
    assert same_weights(policy, loaded)
    batch = make_batch("objects")
    losses = []
    for each in (policy.eval(), loaded):
        torch.manual_seed(1)
        losses.append(each.forward(batch)[0])
    assert torch.equal(*losses)


def test_linear_loads_a_checkpoint_of_lerobot(make_config, lerobot_config, tmp_path):
    theirs = DiffusionPolicy(lerobot_config("objects"))
    theirs.save_pretrained(tmp_path)
    ours = PrismDiffusionPolicy.from_pretrained(tmp_path, config=make_config("linear", "objects"))
    assert same_weights(ours, theirs)


@pytest.mark.parametrize("given", [None, "prism", "mlp"])
def test_checkpoint_of_lerobot_is_refused_by_the_others(
    given, make_config, lerobot_config, tmp_path
):
    DiffusionPolicy(lerobot_config("objects")).save_pretrained(tmp_path)
    config = None if given is None else make_config(given, "objects")
    with pytest.raises(CheckpointMismatchError) as caught:
        PrismDiffusionPolicy.from_pretrained(tmp_path, config=config)
    message = str(caught.value)
    assert "LeRobot's own type 'diffusion'" in message
    assert "'prism_diffusion'" in message
    assert given is None or f"conditioner={given}" in message
    assert "conditioner='linear'" in message


@pytest.mark.parametrize(
    ("saved", "asked", "found"),
    [
        (("prism", {}), ("mlp", {}), "conditioner=prism"),
        (("mlp", {}), ("prism", {}), "conditioner=mlp, mlp_size=matched"),
        (("linear", {}), ("prism", {}), "conditioner=linear)"),
        (("prism", {}), ("linear", {}), "conditioner=prism"),
        (("prism", {"prism_degree": 1}), ("prism", {}), "prism_degree=1"),
        (("prism", {"input_norm": None}), ("prism", {}), "input_norm=null"),
        # Same tensors, another function: only the config can tell.
        (
            ("prism", {"prism_interaction": "product"}),
            ("prism", {"prism_interaction": "glu"}),
            "prism_interaction=product",
        ),
        (("mlp", {"mlp_size": "large"}), ("mlp", {}), "conditioner=mlp, mlp_size=large)"),
    ],
)
def test_another_conditioner_is_refused(saved, asked, found, save, make_config):
    folder = save(saved[0], **saved[1])
    config = make_config(asked[0], "objects", **asked[1])
    with pytest.raises(CheckpointMismatchError) as caught:
        PrismDiffusionPolicy.from_pretrained(folder, config=config)
    message = str(caught.value)
    assert re.search(rf"holds the conditioner \([^(]*{re.escape(found)}", message)
    assert f"but (conditioner={asked[0]}" in message
    assert f"only --policy.path={folder}" in message


def test_initial_gates_and_inference_steps_do_not_matter(save, make_config):
    folder = save()
    config = make_config("prism", "objects", prism_gate_init=0.5, num_inference_steps=7)
    loaded = PrismDiffusionPolicy.from_pretrained(folder, config=config)
    assert loaded.diffusion.num_inference_steps == 7
    assert (loaded.diffusion.conditioner.interaction.gate == torch.tensor(0.01)).all()


def test_policy_of_another_type_is_refused(tmp_path):
    ACTConfig(device="cpu").save_pretrained(tmp_path)
    with pytest.raises(CheckpointMismatchError, match=r"type 'act'.*Load it as 'act'"):
        PrismDiffusionPolicy.from_pretrained(tmp_path)


def test_loading_is_strict_even_when_asked_not_to_be(save):
    from safetensors.torch import load_file, save_file

    folder = save()
    tensors = load_file(folder / "model.safetensors")
    del tensors["diffusion.conditioner.interaction.gate"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(RuntimeError, match=r"Missing key.*conditioner\.interaction\.gate"):
        PrismDiffusionPolicy.from_pretrained(folder, strict=False)


def test_config_file_names_type_and_conditioner(save):
    folder = save(prism_degree=3)
    written = json.loads((folder / "config.json").read_text())
    assert written["type"] == "prism_diffusion"
    assert written["conditioner"] == "prism"
    assert written["prism_degree"] == 3
    loaded = PreTrainedConfig.from_pretrained(folder, cli_overrides=["--num_inference_steps=4"])
    assert (loaded.prism_degree, loaded.num_inference_steps) == (3, 4)
