import pytest
import torch

from prism_motor.nn import (
    PolynomialLayer,
    Warmup,
    advance_warmup,
    build_actor,
    follow_optimizer,
)
from tests.nn.monomials import gated_recursion, randomise


def test_scale_rises_linearly_and_stops_at_one():
    warmup = Warmup(4)
    scales = []
    for _ in range(7):
        scales.append(warmup().item())
        warmup.advance()
    assert scales == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_layer_scales_the_products_only():
    layer = randomise(PolynomialLayer(4, 3, degree=3, warmup=10, dtype=torch.float64))
    x = torch.randn(4, dtype=torch.float64)
    torch.testing.assert_close(layer(x), layer.factors(x)[0])
    layer.warmup.advance(3)
    torch.testing.assert_close(layer(x), gated_recursion(layer, x, scale=0.3), rtol=1e-6, atol=0)
    layer.warmup.advance(100)
    torch.testing.assert_close(layer(x), gated_recursion(layer, x))


def test_follow_optimizer_counts_steps_until_removed():
    layer = PolynomialLayer(4, 3, warmup=10)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    handle = follow_optimizer(layer, optimizer)
    for _ in range(3):
        layer(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    assert layer.warmup.count.item() == 3
    handle.remove()
    optimizer.step()
    assert layer.warmup.count.item() == 3


def test_checkpoint_carries_the_count_through_half_precision():
    layer = PolynomialLayer(4, 3, warmup=5000)
    layer.warmup.advance(4321)
    twin = PolynomialLayer(4, 3, warmup=5000)
    twin.load_state_dict(layer.half().state_dict())
    assert twin.warmup.count.item() == 4321
    assert twin.warmup().item() == pytest.approx(4321 / 5000)


def test_advance_reaches_every_warmup_of_a_model():
    actor = build_actor("prism-residual", 10, 2, latent=8, hidden=(8,), warmup=4)
    x = torch.randn(3, 10)
    linear_only = actor.encoder.activation(actor.encoder.skip(x))
    torch.testing.assert_close(actor.encoder(x), linear_only)
    advance_warmup(actor, 2)
    branch = actor.encoder.branch_out(actor.encoder.features(x))
    expected = actor.encoder.activation(actor.encoder.skip(x) + 0.5 * branch)
    torch.testing.assert_close(actor.encoder(x), expected)


def test_reset_parameters_restarts_the_warmup():
    layer = PolynomialLayer(4, 3, warmup=5)
    layer.warmup.advance(5)
    layer.reset_parameters()
    assert layer.warmup.count.item() == 0


@pytest.mark.parametrize("updates", [0, -1, 2.5, True])
def test_bad_update_counts_are_refused(updates):
    with pytest.raises(ValueError, match="updates"):
        Warmup(updates)
