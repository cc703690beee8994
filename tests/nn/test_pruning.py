"""Closing gates while training, and cutting out what is behind them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from prism_motor.nn import PolynomialLayer, build_actor, count_parameters
from prism_motor.nn.pruning import PrunedPolynomial, prune, shrink_gates


def layer_with(gates: list[list[float]], inputs: int = 5) -> PolynomialLayer:
    torch.manual_seed(0)
    layer = PolynomialLayer(inputs, len(gates[0]), len(gates) + 1)
    with torch.no_grad():
        assert layer.gate is not None
        assert layer.bias is not None
        layer.gate.copy_(torch.tensor(gates))
        layer.bias.normal_()
    return layer


def test_shrinking_moves_gates_towards_zero_and_no_further() -> None:
    layer = layer_with([[0.5, -0.5, 0.05, -0.05, 0.0]])
    shrink_gates(nn.Sequential(layer), 0.1)
    assert layer.gate is not None
    torch.testing.assert_close(layer.gate[0], torch.tensor([0.4, -0.4, 0.0, 0.0, 0.0]))


def test_pruned_layer_is_the_same_function_with_the_parameters_of_its_open_gates() -> None:
    # Of degree 3: both gates open, one, the other, none, and a second one behind a closed first.
    layer = layer_with([[0.7, 0.3, 0.0, 0.0], [0.2, 0.0, 0.0, 0.9]])
    pruned = prune(layer)
    x = torch.randn(3, 7, 5)
    torch.testing.assert_close(pruned(x), layer(x), rtol=1e-6, atol=1e-6)
    assert count_parameters(pruned) == (4 + 2 + 2) * (5 + 1)


def test_everything_closed_leaves_a_linear_map() -> None:
    layer = layer_with([[0.0, 0.0]])
    pruned = prune(layer)
    assert isinstance(pruned, PrunedPolynomial)
    assert count_parameters(pruned) == 2 * 6
    x = torch.randn(4, 5)
    torch.testing.assert_close(pruned(x), x @ layer.weight[0].T + layer.bias[0])


def test_tolerance_closes_small_gates() -> None:
    layer = layer_with([[1e-4, 0.5]])
    assert count_parameters(prune(layer)) == 4 * 6
    assert count_parameters(prune(layer, 1e-3)) == 3 * 6


def test_actor_is_pruned_as_a_copy() -> None:
    actor = build_actor("prism", 30, 4, latent=16, hidden=(8,))
    layer = next(one for one in actor.modules() if isinstance(one, PolynomialLayer))
    with torch.no_grad():
        assert layer.gate is not None
        layer.gate[0, ::2] = 0
    small = prune(actor)
    x = torch.randn(6, 30)
    torch.testing.assert_close(small(x), actor(x), rtol=1e-5, atol=1e-6)
    assert count_parameters(small) == count_parameters(actor) - 8 * 31 - 16
    assert any(one is layer for one in actor.modules())


def test_bounded_layers_and_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"bound=1\.0"):
        prune(PolynomialLayer(3, 2, bound=1.0))
    with pytest.raises(ValueError, match="tolerance"):
        prune(PolynomialLayer(3, 2), -1.0)
    with pytest.raises(ValueError, match="amount"):
        shrink_gates(PolynomialLayer(3, 2), -1.0)
