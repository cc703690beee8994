"""The JAX layer against the torch layer: values, gradients, state dicts, training."""

import numpy as np
import pytest
import torch

pytest.importorskip("flax", reason="flax is not installed (extra 'jax')")

import jax
import jax.numpy as jnp
from flax import nnx

from prism_motor.integrations.flax import (
    LinenPolynomialLayer,
    NnxPolynomialLayer,
    linen_state_dict,
    linen_variables,
    polynomial,
)
from prism_motor.nn import PolynomialLayer

LAYERS = [
    pytest.param({"degree": 1}, id="linear"),
    pytest.param({"degree": 2}, id="degree-2"),
    pytest.param({"degree": 3}, id="degree-3"),
    pytest.param({"degree": 2, "bias": False}, id="no-bias"),
    pytest.param({"degree": 3, "bound": 0.5}, id="bound"),
    pytest.param({"degree": 3, "warmup": 10}, id="warmup"),
]


def torch_layer(**options):
    """A layer whose gates are open and all different, four updates into its warm-up."""
    torch.manual_seed(0)
    layer = PolynomialLayer(6, 5, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        if layer.warmup is not None:
            layer.warmup.advance(4)
    return layer


def linen_module(**options):
    return LinenPolynomialLayer(5, use_bias=options.pop("bias", True), **options)


def nnx_layer(**options):
    return NnxPolynomialLayer(6, 5, rngs=nnx.Rngs(0), **options)


def assert_equal(found, expected, what=""):
    """Within 1e-6 of the largest value."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-6 * max(1, np.abs(expected).max()), what


def apply_of(kind, layer, **options):
    """The layer's values in JAX as a dict, and the function that applies them to an input."""
    variables = linen_variables(layer.state_dict())
    rest = {name: value for name, value in variables.items() if name != "params"}
    if kind == "linen":
        module = linen_module(**options)
        return variables["params"], lambda p, x: module.apply({"params": p, **rest}, x)
    ours = nnx_layer(**options)
    ours.load_state_dict(layer.state_dict())
    graph, params, others = nnx.split(ours, nnx.Param, ...)
    return params, lambda p, x: nnx.merge(graph, p, others)(x)


@pytest.mark.parametrize("kind", ["linen", "nnx"])
@pytest.mark.parametrize("options", LAYERS)
def test_values_and_gradients_are_torchs(options, kind):
    layer = torch_layer(**options)
    x = torch.randn(4, 3, 6, requires_grad=True)
    seed = torch.randn(4, 3, 5)
    expected = layer(x)
    (expected * seed).sum().backward()

    params, apply = apply_of(kind, layer, **options)
    given = jnp.asarray(x.detach().numpy())
    assert_equal(apply(params, given), expected.detach())

    def loss(params, x):
        return (apply(params, x) * seed.numpy()).sum()

    by_params, by_input = jax.grad(loss, argnums=(0, 1))(params, given)
    assert_equal(by_input, x.grad)
    for name, parameter in layer.named_parameters():
        found = by_params[name] if kind == "linen" else by_params[name][...]
        assert_equal(found, parameter.grad, name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", LAYERS)
def test_state_dicts_survive_both_ways(options, dtype):
    state = torch_layer(**options).to(dtype).state_dict()
    ours = nnx_layer(**options)
    ours.load_state_dict(state)
    for back in (ours.state_dict(), linen_state_dict(linen_variables(state))):
        assert list(back) == list(state)
        for name, value in state.items():
            assert back[name].dtype == value.dtype
            assert torch.equal(back[name], value), name
        PolynomialLayer(6, 5, **options).load_state_dict(back)


def test_what_is_taken_from_torch_is_a_copy():
    layer = torch_layer()
    variables = linen_variables(layer.state_dict())
    before = np.array(variables["params"]["weight"])
    with torch.no_grad():
        layer.weight.zero_()
    np.testing.assert_array_equal(variables["params"]["weight"], before)


@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_layers_start_as_in_torch(kind):
    options = {"degree": 3, "gate_init": 0.2, "warmup": 7}
    if kind == "linen":
        module = LinenPolynomialLayer(4000, **options)
        state = linen_state_dict(module.init(jax.random.key(1), jnp.zeros(6)))
    else:
        state = NnxPolynomialLayer(6, 4000, rngs=nnx.Rngs(1), **options).state_dict()
    reference = PolynomialLayer(6, 4000, **options).state_dict()
    assert {k: v.shape for k, v in state.items()} == {k: v.shape for k, v in reference.items()}
    assert torch.equal(state["gate"], reference["gate"])
    assert torch.equal(state["bias"][1:], torch.zeros(2, 4000))
    for drawn, like in [
        (state["weight"], reference["weight"]),
        (state["bias"][0], reference["bias"][0]),
    ]:
        assert drawn.abs().max() <= like.abs().max() * 1.01
        assert drawn.std().item() == pytest.approx(like.std().item(), rel=0.05)
        assert abs(drawn.mean()) < 0.02
    assert state["warmup.count"] == 0


def test_an_nnx_layer_learns_a_product_and_its_warmup_is_no_parameter():
    layer = NnxPolynomialLayer(2, 1, gate_init=0.5, warmup=20, rngs=nnx.Rngs(3))
    x = jax.random.normal(jax.random.key(0), (256, 2))
    y = x[:, :1] * x[:, 1:]

    @nnx.jit
    def step(layer):
        loss, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(layer)
        assert set(gradients) == {"weight", "bias", "gate"}
        params = nnx.state(layer, nnx.Param)
        nnx.update(layer, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients))
        layer.advance_warmup()
        return loss

    losses = [float(step(layer)) for _ in range(800)]
    assert layer.state_dict()["warmup.count"] == 800
    assert losses[-1] < 0.05 * losses[0]


def test_the_function_runs_under_jit_and_vmap():
    layer = torch_layer(degree=3)
    arrays = linen_variables(layer.state_dict())["params"]
    x = jax.random.normal(jax.random.key(0), (9, 6))
    whole = polynomial(x, **arrays)
    one_by_one = jax.jit(jax.vmap(lambda row: polynomial(row, **arrays)))(x)
    assert_equal(one_by_one, whole)


def test_bad_input_is_named():
    arrays = linen_variables(torch_layer().state_dict())["params"]
    with pytest.raises(ValueError, match=r"shape \(\.\.\., 6\), got \[2, 7\]"):
        polynomial(jnp.zeros((2, 7)), **arrays)
    with pytest.raises(ValueError, match="degree 2 needs a gate"):
        polynomial(jnp.zeros((2, 6)), arrays["weight"])
    with pytest.raises(ValueError, match="bound must be a positive number"):
        nnx_layer(bound=-1.0)
    with pytest.raises(ValueError, match="degree"):
        linen_module(degree=0).init(jax.random.key(0), jnp.zeros((2, 6)))
    with pytest.raises(ValueError, match=r"one PolynomialLayer.*got 0\.weight"):
        linen_variables({"0.weight": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"\(2, 5, 6\).*\(3, 5, 6\)"):
        nnx_layer(degree=2).load_state_dict(torch_layer(degree=3).state_dict())
