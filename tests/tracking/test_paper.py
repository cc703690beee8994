"""Tables 10 and 11 of the paper, BFM-Zero's columns, written as they are printed."""

import pytest
import torch

from prism_motor.tracking.config import TrackingEvaluation
from prism_motor.tracking.learning.networks import make_filter
from prism_motor.tracking.observations import Layout
from prism_motor.tracking.policy import TrackingPolicy, count_deployed
from prism_motor.tracking.presets import PRESETS, arm_networks, make_config

PAPER = PRESETS["paper"]


def _filter():
    return make_filter(arm_networks("prism", PAPER), Layout().sizes["history"])


TABLE_10 = {
    "reported checkpoint, environment steps": (
        9_600_000,
        lambda: make_config("paper", "mlp").samples_at(PAPER.updates),
    ),
    "parallel environments": (512, lambda: PAPER.envs),
    "evaluation environments": (128, lambda: TrackingEvaluation().envs),
    "seed": (1000, lambda: PAPER.seed),
    "PRISM input, the history": (372, lambda: _filter().interaction.in_features),
    "PRISM degree": (2, lambda: _filter().interaction.degree),
    "PRISM alpha_2": (1e-2, lambda: _filter().interaction.gate_init),
    "PRISM normalisation": ("RMSNorm", lambda: type(_filter().output_norm).__name__),
    "baseline width, layers": ((2048, 6), lambda: _size("mlp")),
    "larger control": ((2560, 6), lambda: _size("mlp-large")),
    "PRISM keeps the core": ((2048, 6), lambda: _size("prism")),
}

TABLE_11 = {"mlp": 32.109, "prism": 32.665, "mlp-large": 49.260}
"""Parameters of what is deployed, in millions."""

INCREASE = {"prism": 1.7, "mlp-large": 53.4}
"""Over the baseline, %."""


def _size(arm):
    networks = arm_networks(arm, PAPER)
    return networks.width, networks.layers


def _deployed(arm):
    with torch.device("meta"):
        return count_deployed(TrackingPolicy(arm_networks(arm, PAPER), Layout()))


@pytest.mark.parametrize("row", TABLE_10)
def test_table_10(row):
    printed, found = TABLE_10[row]
    assert found() == printed


@pytest.mark.parametrize("arm", TABLE_11)
def test_table_11(arm):
    assert round(_deployed(arm) / 1e6, 3) == TABLE_11[arm]


@pytest.mark.parametrize("arm", INCREASE)
def test_table_11_increase(arm):
    assert round(100 * (_deployed(arm) / _deployed("mlp") - 1), 1) == INCREASE[arm]
