"""Errors with their intervals, and the verdict."""

import math

import pytest

from prism_motor.statistics import Estimate, Interval
from prism_motor.studies.physics.robot import TARGETS
from prism_motor.studies.physics.summary import (
    PhysicsSummary,
    percent,
    text_tables,
    verdict,
    write_error,
)
from prism_motor.studies.physics.training import choose_arms

SPREAD = (0.95, 1.0, 1.05, 0.98, 1.02)


def summary(name, centre, spread=SPREAD):
    """Return an arm whose errors vary around a centre, the same for all targets and sets."""
    errors = {seed: centre and centre * factor for seed, factor in enumerate(spread, start=1)}
    by_set = {part: {t.name: errors for t in TARGETS} for part in ("test", "extrapolation")}
    return PhysicsSummary(choose_arms((name,))[0], 16_000, 0.01, False, by_set)


def test_a_diverged_seed_is_not_averaged_away():
    found = PhysicsSummary(
        choose_arms(("prism",))[0], 1, 0.01, False, {"test": {"x": {1: 0.1, 2: None, 3: 0.2}}}
    )
    assert found.estimate("test", "x") is None
    assert found.centre("test", "x") == math.inf
    assert write_error(None) == "diverged"


def test_errors_are_written_with_their_intervals():
    assert write_error(Estimate(0.0035, None, Interval(0.003, 0.0041), 5)) == "0.35 [0.30, 0.41]"
    assert write_error(Estimate(0.0035, None, None, 5)) == "0.35"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.00123, "0.12"), (0.0456, "4.6"), (0.456, "46"), (0.0996, "10"), (1.3, "130")],
)
def test_percent(share, text):
    assert percent(share) == text


def test_the_verdict_follows_the_numbers():
    noisy = (1.0, 1.02, 0.97, 1.05, 0.96)
    clear = verdict([summary("mlp-matched", 0.10), summary("prism", 0.01, noisy)])
    assert clear[0][0] == "PRISM degree 2 against MLP:"
    assert " lower test error for Joint power (net) (−90 %)" in clear[0][1]
    assert "lowest test error PRISM degree 2, 1.0 [" in clear[1][1]
    assert "better than every other arm" in clear[1][1]

    lost = verdict([summary("mlp-matched", 0.01), summary("prism", 0.10, noisy)])
    assert "higher test error for Joint power (net) (+900 %)" in lost[0][1]
    assert "lowest test error MLP" in lost[1][1]

    level = verdict([summary("mlp-matched", 0.100), summary("prism", 0.1001, noisy)])
    assert "no difference that these seeds can show for Joint power (net)" in level[0][1]
    assert "no other arm is shown to be worse" in level[1][1]


def test_only_some_others_may_be_as_good():
    noisy = (1.0, 1.02, 0.97, 1.05, 0.96)
    found = verdict(
        [summary("mlp-matched", 0.1), summary("prism", 0.1001, noisy), summary("glu", 0.9, noisy)]
    )
    assert "not shown to be worse: PRISM degree 2." in found[1][1]


def test_the_larger_mlp_cannot_win_the_equal_comparison():
    noisy = (1.0, 1.02, 0.97, 1.05, 0.96)
    found = verdict([summary("mlp-matched", 0.10), summary("mlp-large", 0.01, noisy)])
    assert "lower test error for" in found[0][1]
    assert found[1][1].startswith(" test error 10 [")
    assert "no other arm to compare" in found[1][1]


def test_diverged_arms_in_the_verdict_and_the_table():
    broken = summary("mlp-matched", None)
    assert verdict([broken])[0][1] == " every arm diverged."
    assert text_tables([broken, summary("prism", 0.1)]).count("diverged") == 2 * len(TARGETS)
    found = verdict([broken, summary("prism", 0.1)])
    assert "diverged for Joint power (net)" in found[0][1]
    assert "lowest test error PRISM" in found[1][1]
