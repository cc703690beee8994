"""The arms of studies: sizes, positions and scales."""

import pytest
import torch
from torch import nn

from prism_motor.nn import PolynomialLayer, TemporalPolynomialLayer, count_parameters
from prism_motor.studies.lab.arms import ARMS, REFERENCE, choose_arms
from prism_motor.studies.lab.problems import PROBLEMS
from prism_motor.studies.networks import StudyArm
from prism_motor.studies.normalised import UnitPolynomial
from prism_motor.studies.temporal import TemporalConvolution

SHAPES = sorted({(problem.shape, problem.history) for problem in PROBLEMS.values()})


@pytest.mark.parametrize("size", [1000, 4000, 64_000])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_every_arm_has_its_size_within_one_percent_on_every_problem(arm, size):
    for (inputs, outputs), history in SHAPES:
        if arm.window and not history:
            continue
        network = arm.make(inputs, outputs, size, history=history)
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


def test_temporal_arms_see_the_frames_of_the_problem_wherever_they_are():
    history = ((4, 1), (0, 3), (5, 6), (8, 7))
    arms = [arm for arm in ARMS if arm.window]
    assert {arm.degree for arm in arms} == {1, 2}
    for arm in arms:
        torch.manual_seed(0)
        front = arm.build(9, 1, 5, 4, history)[0]
        kind = TemporalConvolution if arm.degree == 1 else TemporalPolynomialLayer
        assert type(front.layer) is kind
        x = torch.randn(3, 9)
        torch.testing.assert_close(front(x), front.layer(x[:, [4, 1, 0, 3, 5, 6, 8, 7, 2]]))
        with pytest.raises(ValueError, match=f"a history of at least {arm.window} frames, got 0"):
            arm.make(9, 1, 500)


def test_the_control_of_temporal_arms_multiplies_nothing():
    torch.manual_seed(0)
    layer, x = TemporalConvolution(4, 2, 3, 1, window=2, extra_features=1), torch.randn(6, 9)
    weight, bias = layer.products.weight[0], layer.products.bias[0]
    silu = nn.functional.silu
    moments = [silu(x[:, 2 * t : 2 * t + 4] @ weight.T + bias) * 3**-0.5 for t in range(3)]
    expected = silu(sum(moments) + layer.state(x[:, 6:]))
    torch.testing.assert_close(layer(x), expected)


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
