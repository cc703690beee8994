import pytest
import torch
import torch.nn.functional as F
from torch import nn

from prism_motor.nn import (
    PolynomialConditioner,
    PolynomialLayer,
    ProductLayer,
    conditioner_from_reference,
    count_parameters,
)

BACKBONES = {
    "humanoid_gym": (PolynomialConditioner.humanoid_gym, 705, 256, 427_520),
    "diffusion_policy": (PolynomialConditioner.diffusion_policy, 16, 16, 79_408),
    "smolvla": (PolynomialConditioner.smolvla, 32, 960, 1_910_400),
    "bfm_zero": (PolynomialConditioner.bfm_zero, 372, 372, 555_768),
}


@pytest.mark.parametrize("name", BACKBONES)
def test_backbones_have_the_papers_parameter_count(name):
    make, inputs, outputs, count = BACKBONES[name]
    conditioner = make()
    assert count_parameters(conditioner) == count
    assert conditioner(torch.randn(2, 3, inputs)).shape == (2, 3, outputs)
    x = torch.randn(4, inputs)
    torch.testing.assert_close(torch.jit.script(conditioner)(x), conditioner(x))


def test_diffusion_policy_formula():
    conditioner = PolynomialConditioner.diffusion_policy()
    layer, g = conditioner.interaction, conditioner.projection
    with torch.no_grad():
        layer.gate.fill_(0.5)
    x = torch.randn(7, 16)
    h = F.layer_norm(x, (16,))
    u, v = (h @ layer.weight[k].T + layer.bias[k] for k in range(2))
    z = F.layer_norm(u + 0.5 * u * v, (256,))
    expected = F.silu(z @ g[0].weight.T + g[0].bias) @ g[2].weight.T + g[2].bias
    torch.testing.assert_close(conditioner(x), expected)


def test_humanoid_gym_formula():
    conditioner = PolynomialConditioner.humanoid_gym(in_features=20, latent=8, degree=1)
    x = torch.randn(7, 20)
    linear = conditioner.projection[0]
    expected = F.elu(conditioner.interaction(x) @ linear.weight.T + linear.bias)
    torch.testing.assert_close(conditioner(x), expected)


def test_bfm_zero_ends_in_an_rms_norm_with_the_stated_epsilon():
    conditioner = PolynomialConditioner.bfm_zero(in_features=12)
    x = 1e-3 * torch.randn(7, 12)
    z = conditioner.projection(conditioner.features(x))
    expected = z / (z.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(conditioner(x), expected)


def test_alternatives_fit_into_a_backbone():
    conditioner = PolynomialConditioner.diffusion_policy(interaction="product")
    assert isinstance(conditioner.interaction, ProductLayer)
    with pytest.raises(ValueError, match="interaction 'cubic'"):
        PolynomialConditioner.smolvla(interaction="cubic")


def test_dtype_follows_the_interaction():
    conditioner = PolynomialConditioner(
        PolynomialLayer(6, 8, dtype=torch.bfloat16), 4, output_norm="rms", latent_norm="layer"
    )
    assert {p.dtype for p in conditioner.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"projection_layers": 3}, ["projection_layers", "1 or 2", "3"]),
        ({"activation": "swish"}, ["activation 'swish'", "silu"]),
        ({"output_norm": "batch"}, ["norm 'batch'", "layer, rms"]),
        ({"out_features": 0}, ["out_features", "0"]),
    ],
)
def test_bad_arguments_are_explained(kwargs, words):
    with pytest.raises(ValueError) as caught:
        PolynomialConditioner(PolynomialLayer(6, 8), **{"out_features": 4, **kwargs})
    for word in words:
        assert word in str(caught.value)


def test_a_plain_linear_is_not_an_interaction():
    with pytest.raises(TypeError, match=r"PolynomialLayer\(in_features, latent\), got Linear"):
        PolynomialConditioner(nn.Linear(3, 3), 4)


def reference_weights(degree, layers, gated=True, norm=True):
    """Random weights in the layout that the authors' conditioner saves."""
    d, r, out = 6, 8, 5
    state = {}
    for k in range(degree):
        state[f"factors.{k}.weight"] = torch.randn(r, d)
        state[f"factors.{k}.bias"] = torch.randn(r)
    if gated and degree > 1:
        state["interaction_scales"] = torch.randn(degree - 1, r)
    if layers == 1:
        state |= {"post_mlp.net.weight": torch.randn(out, r), "post_mlp.net.bias": torch.randn(out)}
    else:
        state |= {
            "post_mlp.net.0.weight": torch.randn(r, r),
            "post_mlp.net.0.bias": torch.randn(r),
            "post_mlp.net.2.weight": torch.randn(out, r),
            "post_mlp.net.2.bias": torch.randn(out),
        }
    if norm:
        state["output_norm.weight"] = torch.randn(out)
    return state


def reference_output(state, x, activation):
    """What those weights compute, written out."""
    affine = [
        x @ state[f"factors.{k}.weight"].T + state[f"factors.{k}.bias"]
        for k in range(sum("factors" in key and "weight" in key for key in state))
    ]
    features = affine[0]
    for k, factor in enumerate(affine[1:]):
        if "interaction_scales" in state:
            features = features * (1 + state["interaction_scales"][k] * factor)
        else:
            features = features * factor
    if "post_mlp.net.weight" in state:
        z = activation(features @ state["post_mlp.net.weight"].T + state["post_mlp.net.bias"])
    else:
        z = activation(features @ state["post_mlp.net.0.weight"].T + state["post_mlp.net.0.bias"])
        z = z @ state["post_mlp.net.2.weight"].T + state["post_mlp.net.2.bias"]
    if "output_norm.weight" in state:
        scale = (z.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        z = z * scale * state["output_norm.weight"]
    return z


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("norm", [True, False])
def test_reference_weights_load_with_equal_outputs(degree, layers, gated, norm):
    state = reference_weights(degree, layers, gated, norm)
    conditioner = conditioner_from_reference(state, activation="mish")
    x = torch.randn(9, 6)
    torch.testing.assert_close(conditioner(x), reference_output(state, x, F.mish))


def test_reference_weights_survive_a_file(tmp_path):
    state = reference_weights(2, 2)
    torch.save(state, tmp_path / "reference.pt")
    loaded = torch.load(tmp_path / "reference.pt", weights_only=True)
    x = torch.randn(9, 6)
    out = conditioner_from_reference(loaded)(x)
    torch.testing.assert_close(out, reference_output(state, x, F.silu))


def test_foreign_reference_weights_are_explained():
    state = reference_weights(2, 2)
    with pytest.raises(ValueError, match=r"missing .*post_mlp\.net\.0\.weight"):
        conditioner_from_reference({k: v for k, v in state.items() if "post" not in k})
    with pytest.raises(ValueError, match=r"missing .*factors\.0\.weight.*got keys model\."):
        conditioner_from_reference({f"model.{k}": v for k, v in state.items()})
    with pytest.raises(ValueError, match=r"Unexpected keys.*extra\.bias"):
        conditioner_from_reference({**state, "extra.bias": torch.zeros(1)})
    del state["factors.1.bias"]
    with pytest.raises(ValueError, match=r"missing factors\.1\.bias"):
        conditioner_from_reference(state)


def test_reference_layout_given_to_load_state_dict_points_to_the_loader():
    layer = PolynomialLayer(6, 8)
    with pytest.raises(RuntimeError, match="conditioner_from_reference"):
        layer.load_state_dict(reference_weights(2, 2))
    conditioner = PolynomialConditioner.diffusion_policy(6)
    with pytest.raises(RuntimeError, match="conditioner_from_reference"):
        conditioner.load_state_dict(reference_weights(2, 2))
