"""A tiny run of every domain: what the tests of training and evaluating are done with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "extend" / "my_domain.py")
"""A user's own domain."""


@dataclass(frozen=True)
class Case:
    """A domain with a run that takes a second."""

    name: str
    """The domain."""
    make: Callable[..., Any]
    """Make settings: six updates, a checkpoint after every other one."""
    evaluation: Callable[..., Any]
    """Make an evaluation of two episodes."""
    conditions: tuple[str, ...]
    """Two conditions if there are two, the plain one first."""
    poison: Callable[[Any], None]
    """Make the next update of a trainer fail."""
    culprit: str
    """What the message about that names."""
    patch: Callable[[pytest.MonkeyPatch], None]
    """Replace what is too slow for a test."""

    def setup(self) -> pytest.MonkeyPatch:
        """Skip what is not installed, and replace what is too slow."""
        patch = pytest.MonkeyPatch()
        self.patch(patch)
        return patch


def make_walking(arm: str = "prism", **changes: Any) -> Any:
    """Eight environments, six control steps per update, episodes of a fifth of a second."""
    from prism_motor.locomotion.presets import make_config

    short = {
        "ppo.steps": 6,
        "ppo.epochs": 1,
        "ppo.minibatches": 2,
        "task.terminations.duration": 0.2,
    }
    config = make_config("laptop", arm, seed=3, overrides=short)
    return replace(config, **{"envs": 8, "checkpoint_every": 2, "updates": 6, **changes})


def evaluate_walking(**changes: Any) -> Any:
    """Two environments, one episode each."""
    from prism_motor.locomotion.config import WalkingEvaluation

    return WalkingEvaluation(**{"seeds": (101,), "envs": 2, "episodes": 1, **changes})


def poison_walking(trainer: Any) -> None:
    """Let a simulation diverge."""
    trainer.env.engine.qvel[5, 7] = float("nan")


def make_handling(arm: str = "prism", **changes: Any) -> Any:
    """A diffusion policy of a few thousand weights on made-up demonstrations."""
    from tests.manipulation.diffusion.conftest import make_config

    changes = {"seed": 3, "checkpoint_every": 2, "updates": 6, "log_every": 1, **changes}
    return make_config(arm, keep_checkpoints=3, **changes)


def evaluate_handling(**changes: Any) -> Any:
    """Two initial states of reach."""
    from prism_motor.manipulation.config import HandlingEvaluation

    return HandlingEvaluation(**{"seeds": (101,), "episodes": 2, **changes})


def poison_handling(trainer: Any) -> None:
    """Break a weight."""
    with torch.no_grad():
        next(trainer.policy.parameters()).fill_(float("nan"))


def patch_handling(patch: pytest.MonkeyPatch) -> None:
    """Make up the demonstrations, and end episodes after ten steps."""
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    from prism_motor.manipulation import data
    from prism_motor.manipulation.tasks import find_task
    from tests.manipulation.diffusion.conftest import demonstrations_of

    patch.setattr(data, "load_for", demonstrations_of)
    patch.setattr(data, "find_tasks", lambda *task: (replace(find_task(*task), horizon=10),))


def make_tracking(arm: str = "prism", **changes: Any) -> Any:
    """Two updates of the warm start and four of the learner, on two clips of half a second."""
    from prism_motor.domains import DOMAINS

    config = DOMAINS["tracking"].make_config("tiny", arm, seed=3)
    warm = min(config.warm_start.updates, changes.get("updates", config.updates) - 1)
    if not warm:  # nothing to hold the actor at
        config = replace(config, anchor=replace(config.anchor, weight=0.0, final=0.0))
    config = replace(config, warm_start=replace(config.warm_start, updates=warm))
    return DOMAINS["tracking"].prepare(replace(config, **changes))


def evaluate_tracking(**changes: Any) -> Any:
    """Both clips."""
    from prism_motor.tracking.config import TrackingEvaluation

    return TrackingEvaluation(**{"seeds": (101,), **changes})


def patch_tracking(patch: pytest.MonkeyPatch) -> None:
    """Cut all clips after half a second."""
    from prism_motor.tracking import references

    def cut(names: Any) -> list[Any]:
        parts = ("position", "quaternion", "joints")
        return [
            replace(clip, **{part: getattr(clip, part)[: round(clip.fps / 2)] for part in parts})
            for clip in whole(names)
        ]

    whole = references.find_clips
    patch.setattr(references, "find_clips", cut)


def make_power(arm: str = "prism", **changes: Any) -> Any:
    """A domain of a user, from the examples."""
    from prism_motor._plugins import load_plugins
    from prism_motor.domains import DOMAINS

    load_plugins([EXAMPLE])
    config = DOMAINS["power"].make_config("small", arm, seed=3)
    changes = {"checkpoint_every": 2, "updates": 6, "plugins": (EXAMPLE,), **changes}
    return replace(config, **changes)


def evaluate_power(**changes: Any) -> Any:
    """Two guesses."""
    from prism_motor.train.config import EvaluationConfig

    return EvaluationConfig(**{"episodes": 2, **changes})


def make_control(arm: str = "prism", algorithm: str = "ppo", **changes: Any) -> Any:
    """Six updates of Stable-Baselines3 on a hopper, whose replay buffer wraps around."""
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from prism_motor.domains import DOMAINS

    config = DOMAINS["gymnasium"].make_config(
        "tiny", arm, seed=3, overrides={"algorithm": algorithm}
    )
    return DOMAINS["gymnasium"].prepare(replace(config, **changes))


def evaluate_control(**changes: Any) -> Any:
    """Two episodes."""
    from prism_motor.gymnasium_control.config import ControlEvaluation

    return ControlEvaluation(**{"seeds": (101,), "episodes": 2, **changes})


def poison_control(trainer: Any) -> None:
    """Let the simulation diverge."""
    trainer.envs[0].unwrapped.data.qvel[2] = float("nan")


CASES = {
    "locomotion": Case(
        name="locomotion",
        make=make_walking,
        evaluation=evaluate_walking,
        conditions=("nominal", "payload"),
        poison=poison_walking,
        culprit="environment 5",
        patch=lambda patch: None,
    ),
    "manipulation": Case(
        name="manipulation",
        make=make_handling,
        evaluation=evaluate_handling,
        conditions=("none", "delay"),
        poison=poison_handling,
        culprit="the loss is nan",
        patch=patch_handling,
    ),
    "tracking": Case(
        name="tracking",
        make=make_tracking,
        evaluation=evaluate_tracking,
        conditions=("nominal", "payload"),
        poison=poison_walking,
        culprit="environment 5",
        patch=patch_tracking,
    ),
    "gymnasium": Case(
        name="gymnasium",
        make=make_control,
        evaluation=evaluate_control,
        conditions=("nominal",),
        poison=poison_control,
        culprit="the physics of environment 0 diverged",
        patch=lambda patch: make_control() and None,
    ),
    "gymnasium-sac": Case(
        name="gymnasium",
        make=partial(make_control, algorithm="sac"),
        evaluation=evaluate_control,
        conditions=("nominal",),
        poison=poison_control,
        culprit="the physics of environment 0 diverged",
        patch=lambda patch: make_control() and None,
    ),
    "power": Case(
        name="power",
        make=make_power,
        evaluation=evaluate_power,
        conditions=("nominal",),
        poison=poison_handling,
        culprit="the loss is nan",
        patch=lambda patch: make_power() and None,
    ),
}


def without_times(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Drop from metrics what depends on the clock."""
    return [
        {k: v for k, v in row.items() if "second" not in k and "time/" not in k} for row in rows
    ]


def assert_same_run(one: Any, two: Any) -> None:
    """Compare the newest checkpoints and all metrics of two run folders, to the bit."""
    from prism_motor.runs import Run

    first, second = Run.open(one), Run.open(two)
    tensors, others = first.load().tensors, second.load().tensors
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, others[name]), name
    assert without_times(first.metrics()) == without_times(second.metrics())
