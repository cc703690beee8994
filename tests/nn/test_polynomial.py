import copy
import math
import pickle
import re

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from prism_motor.nn import PolynomialLayer, advance_warmup
from tests.nn.monomials import gated_recursion, randomise


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 8])
def test_forward_is_the_recursion_of_the_paper(degree, bias):
    layer = randomise(PolynomialLayer(5, 3, degree, bias=bias, dtype=torch.float64))
    x = torch.randn(5, dtype=torch.float64)
    torch.testing.assert_close(layer(x), gated_recursion(layer, x), rtol=1e-12, atol=1e-12)


def test_forward_against_sympy():
    layer = randomise(PolynomialLayer(2, 1, degree=3, dtype=torch.float64))
    a, b = sympy.symbols("a b")
    w, c, g = layer.weight[:, 0].tolist(), layer.bias[:, 0].tolist(), layer.gate[:, 0].tolist()
    affine = [w[k][0] * a + w[k][1] * b + c[k] for k in range(3)]
    psi = sympy.expand(affine[0] * (1 + g[0] * affine[1]) * (1 + g[1] * affine[2]))
    assert sympy.Poly(psi, a, b).total_degree() == 3
    point = torch.tensor([0.3, -1.7], dtype=torch.float64)
    expected = float(psi.subs({a: 0.3, b: -1.7}))
    assert layer(point).item() == pytest.approx(expected, rel=1e-12)


def test_degree_one_is_exactly_a_linear_layer_of_the_same_seed():
    torch.manual_seed(3)
    layer = PolynomialLayer(7, 4, degree=1)
    torch.manual_seed(3)
    linear = nn.Linear(7, 4)
    x = torch.randn(11, 7)
    assert torch.equal(layer(x), linear(x))
    assert layer.gate is None
    assert set(layer.state_dict()) == {"weight", "bias"}


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_zero_gates_start_exactly_at_the_first_factor(degree):
    layer = PolynomialLayer(7, 4, degree, gate_init=0)
    x = torch.randn(11, 7)
    assert torch.equal(layer(x), layer.factors(x)[0])


@pytest.mark.parametrize(
    "shape",
    [(), (1,), (0,), (4,), (2, 3), (2, 0, 3), (2, 3, 4)],
    ids=lambda s: "x".join(map(str, s)),
)
def test_any_leading_dimensions(shape):
    layer = PolynomialLayer(6, 5)
    x = torch.randn(*shape, 6)
    y = layer(x)
    assert y.shape == (*shape, 5)
    flat = layer(x.reshape(-1, 6)).reshape(*shape, 5)
    torch.testing.assert_close(y, flat)


def test_permuting_leading_dimensions_permutes_the_output():
    layer = randomise(PolynomialLayer(6, 5, degree=3))
    x = torch.randn(2, 3, 4, 6)
    torch.testing.assert_close(layer(x.permute(2, 0, 1, 3)), layer(x).permute(2, 0, 1, 3))


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(1, 9),
    r=st.integers(1, 9),
    degree=st.integers(1, 5),
    lead=st.lists(st.integers(0, 3), max_size=3),
    bias=st.booleans(),
)
def test_shapes_and_values_for_any_size(d, r, degree, lead, bias):
    layer = randomise(PolynomialLayer(d, r, degree, bias=bias, dtype=torch.float64))
    x = torch.randn(*lead, d, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (*lead, r)
    for row, out in zip(x.reshape(-1, d)[:2], y.reshape(-1, r)[:2], strict=True):
        torch.testing.assert_close(out, gated_recursion(layer, row), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bound", [None, 1.0])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_gradients(degree, bound):
    layer = randomise(PolynomialLayer(3, 2, degree, bound=bound, dtype=torch.float64))
    names = [name for name, _ in layer.named_parameters()]

    def call(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    values = tuple(p.detach().clone().requires_grad_() for p in layer.parameters())
    assert torch.autograd.gradcheck(call, (x, *values))
    assert torch.autograd.gradgradcheck(call, (x, *values))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    layer = PolynomialLayer(8, 4, degree=3, dtype=dtype)
    y = layer(torch.randn(5, 8, dtype=dtype))
    assert y.dtype == dtype
    y.sum().backward()
    assert layer.gate.grad.dtype == dtype
    assert torch.isfinite(layer.gate.grad).all()


@pytest.mark.parametrize("scripted", [False, True])
@pytest.mark.parametrize("options", [{}, {"warmup": 4}, {"bound": 1.0}, {"bias": False}])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_under_autocast_products_are_float32_and_the_output_is_linears(degree, options, scripted):
    layer = PolynomialLayer(8, 4, degree, gate_init=0.5, **options)
    advance_warmup(layer, 2)
    x = torch.randn(5, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        factors = layer.factors(x)
        y = (torch.jit.script(layer) if scripted else layer)(x)
        assert y.dtype == nn.Linear(8, 4)(x).dtype == torch.bfloat16
    # The factors are rounded, as any linear map's, and then only the result.
    assert {factor.dtype for factor in factors} == {torch.bfloat16}
    products = layer.combine([factor.float() for factor in factors])
    assert torch.equal(y, products.bfloat16())
    y.float().sum().backward()
    assert {p.grad.dtype for p in layer.parameters()} == {torch.float32}


def test_without_autocast_nothing_is_cast():
    program = torch.export.export(PolynomialLayer(8, 4, 3), (torch.randn(5, 8),))
    used = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.linear.default" in used
    assert not any("to" in re.split(r"[._]", name) for name in used), used


@pytest.mark.parametrize("gate_init", [0.01, 1.0])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_initial_output_variance_is_the_documented_one(degree, gate_init):
    generator = torch.Generator().manual_seed(1)
    d = 64
    x = torch.randn(d, generator=generator)
    samples = torch.cat(
        [PolynomialLayer(d, 4000, degree, gate_init=gate_init)(x).detach() for _ in range(10)]
    )
    predicted = PolynomialLayer(d, 1, degree, gate_init=gate_init).initial_std(
        float(x.square().mean())
    )
    assert samples.std().item() == pytest.approx(predicted, rel=0.05)
    assert abs(samples.mean().item()) < 0.05 * predicted


def test_unit_preactivations_with_open_gates_double_the_variance_per_degree():
    # With gates 1 and independent unit-variance factors, std = sqrt(2^(K-1)).
    for degree in (1, 2, 3, 4):
        layer = PolynomialLayer(32, 20000, degree, gate_init=1.0, bias=False)
        std = layer.initial_std(input_mean_square=3.0)  # W entries have variance 1/(3d)
        assert std == pytest.approx(math.sqrt(2 ** (degree - 1)))


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("bound", [None, 0.5])
@pytest.mark.parametrize("warmup", [0, 10])
def test_scripting(degree, bound, warmup):
    layer = randomise(PolynomialLayer(5, 3, degree, bound=bound, warmup=warmup))
    if layer.warmup is not None:
        layer.warmup.advance(4)
    x = torch.randn(2, 7, 5)
    torch.testing.assert_close(torch.jit.script(layer)(x), layer(x))


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_compile_matches_eager_with_gradients(degree):
    layer = randomise(PolynomialLayer(5, 3, degree, warmup=5))
    compiled = torch.compile(layer, fullgraph=True)
    x = torch.randn(6, 5)
    torch.testing.assert_close(compiled(x), layer(x))
    eager_grad = torch.autograd.grad(layer(x).square().sum(), list(layer.parameters()))
    compiled_grad = torch.autograd.grad(compiled(x).square().sum(), list(layer.parameters()))
    torch.testing.assert_close(compiled_grad, eager_grad)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(compiled(x), layer(x))  # dtypes, too


def test_vmap_over_models():
    layers = [randomise(PolynomialLayer(4, 3)) for _ in range(3)]
    params, _ = torch.func.stack_module_state(layers)
    x = torch.randn(5, 4)
    out = torch.func.vmap(lambda p: torch.func.functional_call(layers[0], p, (x,)))(params)
    torch.testing.assert_close(out, torch.stack([layer(x) for layer in layers]))


@pytest.mark.parametrize(
    "clone",
    [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))],
    ids=["deepcopy", "pickle"],
)
def test_copies_are_equal_and_independent(clone):
    layer = randomise(PolynomialLayer(5, 3, degree=3, bound=2.0, warmup=8))
    layer.warmup.advance(3)
    twin = clone(layer)
    x = torch.randn(4, 5)
    assert torch.equal(twin(x), layer(x))
    with torch.no_grad():
        twin.gate.zero_()
    assert not torch.equal(twin(x), layer(x))


def test_state_dict_layout_and_round_trip(tmp_path):
    layer = randomise(PolynomialLayer(5, 3, degree=3, warmup=8))
    layer.warmup.advance(3)
    shapes = {key: tuple(value.shape) for key, value in layer.state_dict().items()}
    assert shapes == {"weight": (3, 3, 5), "bias": (3, 3), "gate": (2, 3), "warmup.count": ()}
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    twin = PolynomialLayer(5, 3, degree=3, warmup=8)
    twin.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True))
    x = torch.randn(4, 5)
    assert torch.equal(twin(x), layer(x))


def test_from_linear_keeps_the_function_with_zero_gates():
    linear = nn.Linear(6, 4, dtype=torch.float64)
    layer = PolynomialLayer.from_linear(linear, degree=3, gate_init=0)
    x = torch.randn(5, 6, dtype=torch.float64)
    torch.testing.assert_close(layer(x), linear(x), rtol=0, atol=1e-15)
    without_bias = PolynomialLayer.from_linear(nn.Linear(6, 4, bias=False))
    assert without_bias.bias is None


def test_meta_device_then_materialise():
    layer = PolynomialLayer(6, 4, device="meta")
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters()
    assert torch.isfinite(layer(torch.randn(2, 6))).all()
    assert torch.equal(layer.gate, torch.full((1, 4), 0.01))


def test_learns_a_product_that_a_linear_layer_cannot():
    x = torch.randn(512, 2)
    target = x[:, :1] * x[:, 1:]

    def best_loss(degree):
        torch.manual_seed(1)
        model = nn.Sequential(PolynomialLayer(2, 8, degree, gate_init=0.1), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        loss = torch.tensor(0.0)
        for _ in range(400):
            loss = (model(x) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    assert best_loss(1) > 0.5
    assert best_loss(2) < 1e-3


def test_repr_names_what_was_built():
    text = repr(PolynomialLayer(5, 3, degree=3, bound=1.0, warmup=7))
    for part in ("in_features=5", "out_features=3", "degree=3", "bound=1.0", "updates=7"):
        assert part in text


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"degree": 0}, ValueError, ["degree", "at least 1", "0", "linear map"]),
        ({"degree": 2.0}, TypeError, ["degree", "2.0"]),
        ({"degree": True}, TypeError, ["degree", "True"]),
        ({"in_features": 0}, ValueError, ["in_features", "0"]),
        ({"out_features": -3}, ValueError, ["out_features", "-3"]),
        ({"in_features": "5"}, TypeError, ["in_features", "'5'"]),
        ({"gate_init": float("nan")}, ValueError, ["gate_init", "nan"]),
        ({"bound": 0.0}, ValueError, ["bound", "0.0", "None"]),
        ({"bound": -1.0}, ValueError, ["bound", "-1.0"]),
        ({"warmup": -1}, ValueError, ["warmup", "-1"]),
        ({"dtype": torch.int32}, TypeError, ["dtype", "int32"]),
    ],
)
def test_bad_arguments_are_explained(kwargs, error, words):
    with pytest.raises(error) as caught:
        PolynomialLayer(**{"in_features": 5, "out_features": 3, **kwargs})
    for word in words:
        assert word in str(caught.value)


def test_wrong_input_is_explained():
    layer = PolynomialLayer(5, 3)
    with pytest.raises(ValueError, match=r"\(\.\.\., 5\), got \[2, 4\]"):
        layer(torch.randn(2, 4))
    with pytest.raises(TypeError, match=r"int64.*x\.float\(\)"):
        layer(torch.ones(2, 5, dtype=torch.int64))
    with pytest.raises(TypeError, match="must be a tensor, got list"):
        layer([[0.0] * 5])
    with pytest.raises(TypeError, match=r"must be an nn\.Linear, got Conv2d"):
        PolynomialLayer.from_linear(nn.Conv2d(1, 1, 1))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: PolynomialLayer(5, 3, degree=3), ["degree 3", "degree 2", "degree=3"]),
        (lambda: PolynomialLayer(6, 3, degree=2), ["[2, 3, 6]", "[2, 3, 5]"]),
        (lambda: nn.Linear(5, 3), ["plain linear map", "from_linear"]),
        (lambda: PolynomialLayer(5, 3, warmup=5), ["warmup.count", "warmup"]),
    ],
)
def test_a_foreign_state_dict_is_explained(other, words):
    layer = PolynomialLayer(5, 3, degree=2)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(other().state_dict())
    for word in words:
        assert word in str(caught.value)
    assert before.keys() == layer.state_dict().keys()
