"""What every run and evaluation has: values that none can have are refused."""

import pytest

from prism_motor.train.config import EvaluationConfig, RunConfig


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": 0}, "updates must be from 1 to 1e9, got 0"),
        ({"threads": -1}, "threads must be from 1"),
        ({"checkpoint_every": 0}, "checkpoint_every must be from 1"),
        ({"keep_checkpoints": 0}, "keep_checkpoints must be from 1"),
        ({"seed": -1}, "seed must be from 0 to 2147483647, got -1"),
        ({"seed": 2**31}, "seed must be from 0"),
    ],
)
def test_runs_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**{"kind": "x", "preset": "p", "arm": "a", **changes})


def test_pairs_go_through_all_seeds_of_a_condition_first():
    evaluation = EvaluationConfig(conditions=("a", "b"), seeds=(2, 1))
    assert evaluation.pairs == [("a", 2), ("a", 1), ("b", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"conditions": ()}, "conditions: give at least one"),
        ({"conditions": ("a", "a")}, "conditions must be unique; repeated: a"),
        ({"seeds": ()}, "evaluation.seeds must have 1 to 10000 values, got 0"),
        ({"seeds": (1, 2, 1)}, "seeds must be unique; repeated: 1"),
        ({"seeds": (-1,)}, r"evaluation.seeds\[0\] must be from 0"),
    ],
)
def test_evaluations_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        EvaluationConfig(**{"conditions": ("a",), "seeds": (1,), **changes})
