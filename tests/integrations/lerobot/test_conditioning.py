"""The conditioners that the configs build."""

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

import torch

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismSmolVLAConfig
from prism_motor.nn import GATED, PolynomialConditioner, count_parameters


def count(config, inputs, outputs):
    with torch.device("meta"):
        return count_parameters(config.make_conditioner(inputs, outputs))


@pytest.mark.parametrize(
    ("config", "sizes", "expected"),
    [
        (PrismDiffusionConfig, (16, 16), 79_408),
        (PrismSmolVLAConfig, (32, 960), 1_910_400),
    ],
)
def test_parameter_counts_of_the_paper(config, sizes, expected):
    assert count(config(conditioner="prism", device="cpu"), *sizes) == expected
    matched = count(config(conditioner="mlp", device="cpu"), *sizes)
    assert matched == pytest.approx(expected, rel=1e-3)


def test_large_mlps():
    smolvla = PrismSmolVLAConfig(conditioner="mlp", mlp_size="large", device="cpu")
    assert count(smolvla, 32, 960) == 6_230_976
    diffusion = PrismDiffusionConfig(conditioner="mlp", mlp_size="large", device="cpu")
    assert count(diffusion, 16, 16) == 17 * 512 + 513 * 512 + 513 * 16


def test_default_conditioners_are_those_of_the_layer_library():
    pairs = [
        (PrismDiffusionConfig(device="cpu"), 16, 16, PolynomialConditioner.diffusion_policy),
        (PrismSmolVLAConfig(device="cpu"), 32, 960, PolynomialConditioner.smolvla),
    ]
    for config, inputs, outputs, build in pairs:
        torch.manual_seed(3)
        ours = config.make_conditioner(inputs, outputs)
        torch.manual_seed(3)
        theirs = build()
        x = torch.randn(4, inputs)
        torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=0)
        assert repr(ours) == repr(theirs)


def test_matched_mlp_has_the_norms_of_prism_and_the_large_one_has_none():
    matched = PrismDiffusionConfig(conditioner="mlp", device="cpu").make_conditioner(16, 16)
    assert isinstance(matched.input_norm, torch.nn.LayerNorm)
    large = PrismSmolVLAConfig(conditioner="mlp", mlp_size="large", device="cpu")
    assert isinstance(large.make_conditioner(32, 64).output_norm, torch.nn.Identity)


def test_matching_draws_no_random_numbers():
    config = PrismDiffusionConfig(conditioner="mlp", device="cpu")
    torch.manual_seed(0)
    once = config.make_conditioner(16, 16)
    torch.manual_seed(0)
    torch.testing.assert_close(
        once.layers[0].weight, torch.nn.Linear(16, once.layers[0].out_features).weight
    )


@pytest.mark.parametrize("interaction", ["gated", "scaled", "product", "ccp", "glu", "explicit"])
def test_interactions_by_name(interaction):
    config = PrismDiffusionConfig(prism_interaction=interaction, prism_latent=8, device="cpu")
    conditioner = config.make_conditioner(6, 6)
    assert conditioner(torch.randn(2, 6)).shape == (2, 6)
    has_gate = any(name.endswith("gate") for name, _ in conditioner.named_parameters())
    assert has_gate == (interaction in GATED)


def test_gate_init_reaches_the_layer():
    config = PrismDiffusionConfig(prism_gate_init=0.5, prism_degree=3, device="cpu")
    gate = config.make_conditioner(6, 6).interaction.gate
    assert gate.shape == (2, 256)
    assert (gate == 0.5).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"conditioner": "prsim"}, r"Unknown conditioner 'prsim'.*Did you mean 'prism'"),
        ({"prism_interaction": "gate"}, "Unknown prism_interaction 'gate'.*Did you mean 'gated'"),
        ({"mlp_size": "huge"}, "Unknown mlp_size 'huge'; choose one of: large, matched"),
        ({"input_norm": "batch"}, "Unknown input_norm 'batch'; choose one of: layer, rms"),
        ({"prism_degree": 0}, "degree must be at least 1, got 0"),
        ({"prism_interaction": "linear"}, "degree 1, got prism_degree=2"),
        ({"prism_gate_init": float("nan")}, "prism_gate_init must be finite"),
        ({"prism_latent": 0}, "prism_latent must be at least 1"),
    ],
)
@pytest.mark.parametrize("config", [PrismDiffusionConfig, PrismSmolVLAConfig])
def test_wrong_fields_are_refused_when_the_config_is_made(config, fields, message):
    with pytest.raises(ValueError, match=message):
        config(device="cpu", **fields)


def test_the_old_name_of_the_large_mlp_is_read():
    old = PrismDiffusionConfig(conditioner="mlp", mlp_size="larger", device="cpu")
    new = PrismDiffusionConfig(conditioner="mlp", mlp_size="large", device="cpu")
    assert old.mlp_size == "large"
    assert old.conditioner_traits() == new.conditioner_traits()
