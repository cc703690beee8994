"""The arms of studies: sizes, positions and scales."""

import pytest
import torch
from torch import nn

from prism_motor.nn import PolynomialLayer, count_parameters
from prism_motor.studies.lab.arms import ARMS, REFERENCE, choose_arms
from prism_motor.studies.lab.problems import PROBLEMS
from prism_motor.studies.networks import StudyArm
from prism_motor.studies.normalised import RmsPolynomial, UnitPolynomial

SHAPES = sorted({problem.shape for problem in PROBLEMS.values()})


@pytest.mark.parametrize("size", [1000, 4000, 64_000])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_every_arm_has_its_size_within_one_percent_on_every_problem(arm, size):
    for inputs, outputs in SHAPES:
        network = arm.make(inputs, outputs, size)
        assert network(torch.zeros(2, inputs)).shape == (2, outputs)
        if not arm.backbone_only:
            assert abs(count_parameters(network) - size) <= 0.01 * size


def test_positions():
    def kinds(position):
        network = StudyArm("x", "x", "gated", position=position).make(5, 2, 2000)
        return [type(layer).__name__ for layer in network if not isinstance(layer, nn.SiLU)]

    assert kinds("front") == ["PolynomialLayer", "Linear", "Linear", "Linear"]
    assert kinds("after") == ["Linear", "Linear", "PolynomialLayer", "Linear"]
    assert kinds("both") == ["PolynomialLayer", "Linear", "PolynomialLayer", "Linear"]


def test_the_backbone_alone_is_the_head_of_the_others():
    alone, whole = (choose_arms((name,))[-1].make(12, 1, 4000) for name in ("mlp", "prism"))
    hidden = [[m.out_features for m in net if isinstance(m, nn.Linear)] for net in (alone, whole)]
    assert hidden[0] == hidden[1]
    assert count_parameters(alone) < 0.5 * count_parameters(whole)


def test_the_search_for_widths_does_not_change_the_weights():
    made = []
    for _ in range(2):  # the second time the widths are known
        torch.manual_seed(3)
        made.append(StudyArm("fresh", "fresh", "gated").make(5, 2, 2345)[0].weight)
    assert torch.equal(*made)


def test_the_reference_always_takes_part():
    assert [arm.name for arm in choose_arms(("prism",))] == ["mlp-matched", "prism"]
    assert choose_arms(())[0] == REFERENCE
    with pytest.raises(ValueError, match=r"Unknown arm 'prizm'.*Did you mean 'prism'"):
        choose_arms(("prizm",))


def test_rms_ignores_the_size_of_later_factors():
    torch.manual_seed(0)
    layer, x = RmsPolynomial(6, 8, 2, gate_init=1.0, bias=False), torch.randn(50, 6)
    before = layer(x)
    with torch.no_grad():
        layer.weight[1] *= 100
    torch.testing.assert_close(layer(x), before, rtol=1e-3, atol=1e-4)
    first, second = x @ layer.weight[0].T, x @ layer.weight[1].T
    expected = first * (1 + second / second.square().mean(1, keepdim=True).sqrt())
    torch.testing.assert_close(before, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("degree", [2, 3])
def test_unit_products_start_at_variance_one_and_expand_exactly(degree):
    torch.manual_seed(0)
    layer = UnitPolynomial(64, 2000, degree, gate_init=1.0, bias=False)
    x = torch.randn(400, 64)
    assert layer(x).var().item() == pytest.approx(1.0, rel=0.1)
    plain = PolynomialLayer(64, 2000, degree, gate_init=1.0, bias=False)
    assert plain(x).var() < 0.8
    small = UnitPolynomial(3, 4, degree, gate_init=1.0)
    constant, linear = small.affine_factors()
    rows = torch.randn(5, 3)
    product = (constant + torch.einsum("koi,ni->nko", linear, rows)).prod(1)
    torch.testing.assert_close(product, small(rows))
