import pytest
import torch
from torch import nn

from prism_motor.nn import (
    FiniteGuard,
    NonFiniteError,
    PolynomialLayer,
    ProductLayer,
    build_actor,
    parameter_groups,
)
from tests.nn.monomials import randomise


def trained_like(degree, dtype, bound):
    """Unit-variance factors and open gates: what a trained layer may look like."""
    layer = PolynomialLayer(64, 32, degree, gate_init=1.0, bound=bound)
    with torch.no_grad():
        layer.weight.normal_(std=1 / 8)
    return layer.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("degree", [1, 2, 4, 6, 8])
def test_bounded_mode_stays_finite_far_outside_the_usual_range(degree, dtype):
    layer = trained_like(degree, dtype, bound=1.0)
    x = (10 * torch.randn(512, 64)).to(dtype)
    y = layer(x)
    assert torch.isfinite(y).all()
    limit = 2.0 ** (degree - 1) * layer.factors(x)[0].float().abs()
    assert (y.float().abs() <= 1.02 * limit + 1e-3).all()
    y.float().mean().backward()
    for parameter in layer.parameters():
        assert torch.isfinite(parameter.grad).all()


def test_without_the_bound_half_precision_overflows():
    layer = trained_like(8, torch.float16, bound=None)
    x = (10 * torch.randn(512, 64)).half()
    assert not torch.isfinite(layer(x)).all()


def test_bounded_mode_is_the_polynomial_for_small_interactions():
    free, bounded = PolynomialLayer(8, 4, degree=3), PolynomialLayer(8, 4, degree=3, bound=1.0)
    bounded.load_state_dict(free.state_dict())
    x = torch.randn(16, 8)
    # tanh(t) = t - t^3/3: with gates of 0.01 the difference is below 1e-6 of the output.
    torch.testing.assert_close(bounded(x), free(x), rtol=1e-5, atol=1e-7)


def test_guard_is_silent_on_finite_values_and_leaves_no_hook():
    model = nn.Sequential(PolynomialLayer(4, 3), nn.Linear(3, 1))
    with FiniteGuard(model):
        model(torch.randn(2, 4))
    model(torch.full((1, 4), float("nan")))  # no longer watched


def test_guard_names_the_layer_and_the_factor():
    model = nn.ModuleDict({"encoder": nn.Sequential(randomise(PolynomialLayer(4, 3, degree=4)))})
    layer = model["encoder"][0]
    x = torch.randn(2, 4)
    with torch.no_grad():
        layer.gate[1, 2] = float("inf")
    with FiniteGuard(model), pytest.raises(NonFiniteError, match=r"'encoder\.0'.*gate of factor 3"):
        model["encoder"](x)
    with torch.no_grad():
        layer.gate[1, 2] = 0.1
        layer.weight[1, 0, 0] = float("nan")
    with FiniteGuard(model), pytest.raises(NonFiniteError, match=r"weight of factor 2 of 4"):
        model["encoder"](x)


def test_guard_tells_a_bad_input_from_an_overflow():
    layer = trained_like(8, torch.float16, bound=None)
    guard = FiniteGuard(layer)
    x = torch.zeros(2, 64, dtype=torch.float16)
    x[0, 3] = float("nan")
    with pytest.raises(NonFiniteError, match=r"input is not finite \(1 NaN"):
        layer(x)
    with pytest.raises(NonFiniteError, match=r"product overflows at factor [2-8] of 8.*bound=1\.0"):
        layer((10 * torch.randn(512, 64)).half())
    with pytest.raises(NonFiniteError, match=r"factor 1 of 8 overflows"):
        layer(torch.full((1, 64), 65000.0).half() * layer.weight[0, 0].sign())
    guard.remove()


def test_guard_watches_the_alternatives_and_refuses_models_without_any():
    layer = ProductLayer(4, 3, degree=3)
    with FiniteGuard(layer), pytest.raises(NonFiniteError, match="product of its 3 factors"):
        layer(torch.full((1, 4), 1e20))
    with pytest.raises(ValueError, match="no interaction layer"):
        FiniteGuard(nn.Linear(3, 3))


def test_parameter_groups_keep_gates_biases_and_norms_out_of_decay():
    model = nn.Sequential(
        PolynomialLayer(6, 8, degree=3),
        nn.LayerNorm(8),
        nn.RMSNorm(8),
        nn.GRU(8, 4),
        nn.Conv1d(4, 4, 1),
        nn.BatchNorm1d(4),
        nn.Linear(4, 2),
    )
    model[6].weight.requires_grad_(False)
    decayed, kept = parameter_groups(model, 0.1)
    names = {id(p): name for name, p in model.named_parameters()}
    assert {names[id(p)] for p in decayed["params"]} == {
        "0.weight",
        "3.weight_ih_l0",
        "3.weight_hh_l0",
        "4.weight",
    }
    expected_kept = {name for name, p in model.named_parameters() if p.requires_grad}
    expected_kept -= {names[id(p)] for p in decayed["params"]}
    assert {names[id(p)] for p in kept["params"]} == expected_kept
    assert "0.gate" in expected_kept
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)


def test_decay_leaves_the_gates_alone_in_a_real_step():
    layer = PolynomialLayer(4, 3)
    optimizer = torch.optim.AdamW(parameter_groups(layer, 0.5), lr=0.1)
    for parameter in layer.parameters():
        parameter.grad = torch.zeros_like(parameter)
    weight, gate = layer.weight.detach().clone(), layer.gate.detach().clone()
    optimizer.step()
    torch.testing.assert_close(layer.weight, weight * (1 - 0.1 * 0.5))
    assert torch.equal(layer.gate, gate)


def test_parameter_groups_cover_shared_parameters_once_and_refuse_negative_decay():
    actor = build_actor("prism", 6, 2, latent=4, hidden=(8,))
    shared = nn.ModuleList([actor, actor])
    groups = parameter_groups(shared, 0.1)
    total = sum(p.numel() for group in groups for p in group["params"])
    assert total == sum(p.numel() for p in actor.parameters())
    with pytest.raises(ValueError, match="-1"):
        parameter_groups(actor, -1)
