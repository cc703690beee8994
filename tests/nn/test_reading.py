import math

import pytest
import torch

from prism_motor.nn import GLULayer, LinearLayer, PolynomialLayer, ProductLayer, frame_names
from tests.nn.monomials import explicit_coefficients, randomise


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_full_expansion_equals_the_layer_and_an_independent_expansion(degree, bias):
    layer = randomise(PolynomialLayer(4, 3, degree, bias=bias, dtype=torch.float64))
    expansion = layer.expand()
    x = torch.randn(6, 2, 4, dtype=torch.float64)
    torch.testing.assert_close(expansion(x), layer(x), rtol=1e-10, atol=1e-10)
    assert expansion.exhaustive
    constant, linear = layer.affine_factors()
    for feature in range(3):
        table = explicit_coefficients(constant[:, feature].tolist(), linear[:, feature].tolist())
        for monomial, value in table.items():
            assert expansion.coefficient(feature, *monomial) == pytest.approx(value, abs=1e-12)
        assert len(table) == sum(t.coefficients.shape[1] for t in expansion.terms.values())


def test_expansion_during_warmup_is_the_present_function():
    layer = randomise(PolynomialLayer(4, 3, warmup=10, dtype=torch.float64))
    layer.warmup.advance(5)
    x = torch.randn(6, 4, dtype=torch.float64)
    torch.testing.assert_close(layer.expand()(x), layer(x))


@pytest.mark.parametrize("make", [LinearLayer, ProductLayer])
def test_other_polynomial_layers_expand_too(make):
    layer = randomise(make(4, 3, dtype=torch.float64))
    x = torch.randn(6, 4, dtype=torch.float64)
    torch.testing.assert_close(layer.expand()(x), layer(x))


def test_top_keeps_the_largest_coefficients_exactly():
    layer = randomise(PolynomialLayer(6, 3, degree=3, dtype=torch.float64))
    full, sparse = layer.expand(), layer.expand(top=4)
    for degree, terms in sparse.terms.items():
        largest = full.terms[degree].coefficients.abs().sort(-1, descending=True).values
        kept = terms.coefficients.abs()
        torch.testing.assert_close(kept, largest[:, : kept.shape[1]])
        for feature in range(3):
            for monomial, value in zip(
                terms.monomials[feature].tolist(), terms.coefficients[feature].tolist(), strict=True
            ):
                assert full.coefficient(feature, *monomial) == pytest.approx(value)


def test_top_with_room_for_everything_is_the_whole_function():
    layer = randomise(PolynomialLayer(5, 3, degree=3, dtype=torch.float64))
    x = torch.randn(6, 5, dtype=torch.float64)
    torch.testing.assert_close(layer.expand(top=10_000)(x), layer(x))


def test_large_inputs_need_top_and_say_so():
    layer = PolynomialLayer(705, 256)
    with pytest.raises(ValueError, match=r"705 inputs.*top=k"):
        layer.expand()
    expansion = layer.expand(top=3)
    assert expansion.exhaustive
    u, v, g = layer.weight[0, 7].double(), layer.weight[1, 7].double(), layer.gate[0, 7].double()
    i, j = expansion.terms[2].monomials[7, 0].tolist()
    expected = g * (u[i] * v[j] + u[j] * v[i]) if i != j else g * u[i] * v[i]
    assert expansion.terms[2].coefficients[7, 0].item() == pytest.approx(expected.item())


def test_search_over_the_largest_weights_finds_a_planted_cubic_term():
    layer = PolynomialLayer(705, 2, degree=3, gate_init=1.0)
    with torch.no_grad():
        layer.weight.mul_(0.01)
        layer.bias.zero_()
        for k, i in enumerate((700, 12, 333)):
            layer.weight[k, 1, i] = 2.0
    expansion = layer.expand(top=1)
    assert not expansion.exhaustive
    assert expansion.terms[3].monomials[1, 0].tolist() == [12, 333, 700]
    assert expansion.terms[3].coefficients[1, 0].item() == pytest.approx(8.0, rel=0.01)


def test_describe_writes_a_formula():
    layer = PolynomialLayer(2, 1, gate_init=1.0)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[[3.0, 0.0]], [[0.0, 2.0]]]))
        layer.bias.zero_()
    assert layer.expand().describe(0, ["tau", "dq"], top=2) == "6*tau*dq +3*tau"


@pytest.mark.parametrize("top", [0, -1])
def test_bad_top_is_refused(top):
    layer = PolynomialLayer(3, 2)
    with pytest.raises(ValueError, match="top"):
        layer.expand(top=top)
    with pytest.raises(ValueError, match="top"):
        layer.interactions(top=top)


def test_no_expansion_where_there_is_no_polynomial():
    with pytest.raises(TypeError, match="GLULayer"):
        GLULayer(3, 2).expand()
    with pytest.raises(TypeError, match=r"bound=1\.0"):
        PolynomialLayer(3, 2, bound=1.0).expand()


def planted_layer():
    """Feature 0 is dq_1 squared, feature 1 is tau_2 * dq_2 (stronger), feature 2 is linear."""
    names = ["dq_1", "dq_2", "tau_1", "tau_2"]
    layer = PolynomialLayer(4, 3, gate_init=0.0)
    with torch.no_grad():
        layer.weight.mul_(0.01)
        layer.gate[0] = torch.tensor([0.5, 1.0, 0.0])
        layer.weight[:, 0, 0] = 2.0
        layer.weight[0, 1, 3] = -3.0
        layer.weight[1, 1, 1] = 2.0
    return layer, names


def test_interactions_are_ranked_and_named_with_squares_visible():
    layer, names = planted_layer()
    first, second, third = layer.interactions(names, top=None)
    assert first.inputs == ("tau_2", "dq_2")
    assert first.feature == 1
    assert first.factors == (1, 2)
    assert first.coefficient == pytest.approx(-6.0)
    assert second.inputs == ("dq_1", "dq_1")
    assert second.coefficient == pytest.approx(2.0)
    assert third.strength == 0
    assert first.share > 0.9
    assert "tau_2 * dq_2" in str(first)
    assert layer.interactions(names, top=1) == [first]


def test_input_scale_changes_what_dominates():
    layer, names = planted_layer()
    scale = torch.tensor([100.0, 1.0, 1.0, 1.0])
    first = layer.interactions(names, top=1, input_scale=scale)[0]
    assert first.inputs == ("dq_1", "dq_1")


def test_degree_three_lists_pairs_and_triples():
    layer = randomise(PolynomialLayer(4, 2, degree=3))
    found = {(entry.feature, entry.factors) for entry in layer.interactions(top=None)}
    assert found == {(j, f) for j in range(2) for f in [(1, 2), (1, 3), (1, 2, 3)]}
    triple = next(e for e in layer.interactions(top=None) if e.factors == (1, 2, 3))
    gates = layer.gate[:, triple.feature].prod().abs().item()
    norms = layer.weight[:, triple.feature].norm(dim=-1).prod().item()
    assert triple.strength == pytest.approx(gates * norms, rel=1e-5)


@pytest.mark.parametrize("degree", [2, 3])
def test_a_readout_adds_up_the_coefficients_of_all_features(degree):
    layer = randomise(PolynomialLayer(4, 5, degree))
    head = torch.randn(2, 5)
    expansion = layer.expand()
    found = layer.interactions(["a", "b", "c", "d"], top=None, readout=head)
    assert all(entry.feature is None and entry.factors == () for entry in found)
    assert [entry.strength for entry in found] == sorted((e.strength for e in found), reverse=True)
    assert sum(entry.share for entry in found) == pytest.approx(1.0)
    assert len(found) == sum(math.comb(3 + d, d) for d in range(2, degree + 1))
    for entry in found:
        inputs = ["abcd".index(name) for name in entry.inputs]
        features = [expansion.coefficient(j, *inputs) for j in range(5)]
        rows = (head.double() @ torch.tensor(features, dtype=torch.float64)).tolist()
        assert entry.coefficient == pytest.approx(max(rows, key=abs))
        assert entry.strength == pytest.approx(math.hypot(*rows))
    assert layer.interactions(["a", "b", "c", "d"], top=2, readout=head) == found[:2]


def test_what_the_readout_does_not_read_counts_nothing():
    layer, names = planted_layer()
    (first,) = layer.interactions(names, top=1, readout=torch.tensor([1.0, 0.0, 0.0]))
    assert first.inputs == ("dq_1", "dq_1")
    assert str(first) == "+2 * dq_1 * dq_1 (share 100%)"
    with pytest.raises(ValueError, match="each of the 3 features"):
        layer.interactions(names, readout=torch.ones(1, 4))
    with pytest.raises(ValueError, match="more than can be held"):
        PolynomialLayer(2000, 1).interactions(readout=torch.ones(1, 1))


def test_degree_one_has_no_interactions():
    assert PolynomialLayer(4, 2, degree=1).interactions() == []


def test_wrong_names_and_scales_are_explained():
    layer = PolynomialLayer(4, 2)
    with pytest.raises(ValueError, match="3 names for 4 inputs"):
        layer.interactions(["a", "b", "c"])
    with pytest.raises(ValueError, match="input_scale"):
        layer.interactions(input_scale=[1.0, 2.0])


def test_frame_names():
    assert frame_names(["q", "dq_left_knee"], 3) == [
        "q[t-2]",
        "dq_left_knee[t-2]",
        "q[t-1]",
        "dq_left_knee[t-1]",
        "q[t]",
        "dq_left_knee[t]",
    ]
    assert frame_names(["q"], 3, newest_last=False) == ["q[t]", "q[t-1]", "q[t-2]"]
    with pytest.raises(ValueError, match="frames"):
        frame_names(["q"], 0)


def test_ablate_removes_one_interaction_and_restores_it():
    layer = randomise(PolynomialLayer(4, 3, degree=3))
    x = torch.randn(5, 4)
    before, first = layer(x), layer.factors(x)[0]
    with layer.ablate(1):
        during = layer(x)
    torch.testing.assert_close(during[:, 1], first[:, 1])
    assert torch.equal(during[:, [0, 2]], before[:, [0, 2]])
    assert torch.equal(layer(x), before)


def test_ablate_restores_after_an_error_and_explains_bad_features():
    layer = randomise(PolynomialLayer(4, 3))
    gate = layer.gate.detach().clone()
    with pytest.raises(RuntimeError, match="inside"), layer.ablate(1):
        raise RuntimeError("inside")
    assert torch.equal(layer.gate, gate)
    with pytest.raises(IndexError, match=r"\[0, 3\), got 3"), layer.ablate(3):
        pass
    with pytest.raises(ValueError, match="degree 1"), PolynomialLayer(4, 3, degree=1).ablate(0):
        pass
