"""The arms: equal size, same head."""

import pytest
import torch
from torch import nn

from prism_motor.nn import INTERACTIONS, count_parameters
from prism_motor.studies.physics.config import PhysicsConfig
from prism_motor.studies.physics.contenders import CONTENDERS, choose_contenders

CONFIG = PhysicsConfig()


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda c: c.name)
def test_every_arm_has_its_budget_within_one_percent(contender):
    network = contender.make(12, 8, CONFIG.budget, CONFIG.head)
    budget = CONFIG.budget * (2 if contender.name == "mlp2x" else 1)
    assert abs(count_parameters(network) - budget) <= 0.01 * budget
    assert network(torch.randn(5, 12)).shape == (5, 8)


def test_arms_of_equal_size_share_the_head():
    for contender in CONTENDERS:
        if contender.budget_scale == 1.0:
            linears = [m for m in contender.make(12, 8, 16_000, 64) if isinstance(m, nn.Linear)]
            assert [m.out_features for m in linears[-3:]] == [64, 64, 8]


def test_every_interaction_of_the_library_takes_part():
    used = {contender.interaction for contender in CONTENDERS}
    assert used - {None} == set(INTERACTIONS) - {"linear"}  # linear is PRISM of degree 1


def test_only_the_larger_mlp_is_larger():
    assert [c.name for c in CONTENDERS if c.budget_scale != 1.0] == ["mlp2x"]


def test_an_impossible_budget_is_refused():
    with pytest.raises(ValueError, match="no width comes within 1 % of 100 parameters"):
        CONTENDERS[0].make(12, 8, 100, 64)


def test_choosing_by_name_keeps_the_order():
    assert [c.name for c in choose_contenders(("prism2", "mlp"))] == ["mlp", "prism2"]
    assert choose_contenders(()) == CONTENDERS
    with pytest.raises(ValueError, match=r"Unknown arm 'prism4'.*Did you mean"):
        choose_contenders(("prism4",))
