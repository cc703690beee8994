import math
from itertools import combinations_with_replacement

import pytest
import torch

from prism_motor.nn import (
    INTERACTIONS,
    CCPLayer,
    ExplicitLayer,
    GLULayer,
    LinearLayer,
    PolynomialLayer,
    ProductLayer,
    make_interaction,
)
from tests.nn.monomials import randomise


@pytest.mark.parametrize("name", INTERACTIONS)
def test_all_share_one_interface(name):
    layer = make_interaction(name, 6, 4, dtype=torch.float64)
    assert (layer.in_features, layer.out_features) == (6, 4)
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (2, 3, 4)
    torch.testing.assert_close(torch.jit.script(layer)(x), y)
    twin = make_interaction(name, 6, 4, dtype=torch.float64)
    assert not torch.equal(twin(x), y)
    twin.load_state_dict(layer.state_dict())
    assert torch.equal(twin(x), y)
    with pytest.raises(ValueError, match=r"\(\.\.\., 6\), got"):
        layer(torch.randn(2, 5, dtype=torch.float64))
    layer.reset_parameters()
    assert not torch.equal(layer(x), y)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_product(degree):
    layer = randomise(ProductLayer(5, 3, degree))
    x = torch.randn(4, 5)
    expected = torch.ones(4, 3)
    for k in range(degree):
        expected = expected * (x @ layer.weight[k].T + layer.bias[k])
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("degree", [2, 3])
def test_glu(degree):
    layer = randomise(GLULayer(5, 3, degree))
    x = torch.randn(4, 5)
    expected = x @ layer.weight[0].T + layer.bias[0]
    for k in range(1, degree):
        expected = expected / (1 + torch.exp(-(x @ layer.weight[k].T + layer.bias[k])))
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_ccp(degree):
    layer = randomise(CCPLayer(5, 3, degree))
    x = torch.randn(4, 5)
    h = x @ layer.weight[0].T
    for k in range(1, degree):
        h = (x @ layer.weight[k].T) * h + h
    torch.testing.assert_close(layer(x), h @ layer.output.weight.T + layer.output.bias)


def test_ccp_is_a_polynomial_layer_with_open_gates_before_its_output_map():
    ccp = randomise(CCPLayer(5, 3))
    gated = PolynomialLayer(5, 3, gate_init=1.0, bias=False)
    gated.load_state_dict({"weight": ccp.weight, "gate": torch.ones(1, 3)})
    x = torch.randn(4, 5)
    torch.testing.assert_close(ccp(x), ccp.output(gated(x)))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_explicit_has_every_monomial(degree):
    layer = ExplicitLayer(4, 2, degree)
    x = torch.randn(3, 4)
    columns = [
        torch.stack([x[:, i] for i in combo]).prod(0)
        for size in range(1, degree + 1)
        for combo in combinations_with_replacement(range(4), size)
    ]
    assert layer.linear.in_features == len(columns) == math.comb(4 + degree, degree) - 1
    # The order of monomials is the layer's own business: fit the target exactly by least squares.
    with torch.no_grad():
        layer.linear.weight.copy_(torch.eye(2, len(columns)))
        layer.linear.bias.zero_()
        picked = layer(x)
    for row in picked.T:
        assert min((row - column).abs().max().item() for column in columns) < 1e-6


def test_explicit_refuses_what_does_not_fit():
    with pytest.raises(ValueError) as caught:
        ExplicitLayer(705, 256)
    for part in ("705", "249,570", "63,889,920", "PolynomialLayer", "361,728", "max_monomials"):
        assert part in str(caught.value)
    # The figure it quotes for the alternative is the real one.
    assert sum(p.numel() for p in PolynomialLayer(705, 256).parameters()) == 361_728


def test_linear_is_degree_one():
    layer = LinearLayer(5, 3)
    x = torch.randn(4, 5)
    torch.testing.assert_close(layer(x), x @ layer.weight[0].T + layer.bias[0])
    with pytest.raises(ValueError, match="degree must be 1, got 2"):
        LinearLayer(5, 3, degree=2)


def test_unknown_names_and_options_are_refused():
    with pytest.raises(ValueError, match=r"'gatedd'.*choose one of.*Did you mean 'gated'"):
        make_interaction("gatedd", 5, 3)
    with pytest.raises(TypeError, match="gate_init"):
        make_interaction("glu", 5, 3, gate_init=0.1)
    with pytest.raises(ValueError, match="degree"):
        make_interaction("product", 5, 3, degree=0)
