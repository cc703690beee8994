"""A sweep of compliance settings around a trained policy, on a validation split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._errors import InputError
from prism_motor.analysis.manipulators import Manipulator
from prism_motor.manipulation.compliance import (
    ComplianceConfig,
    ComplianceCorrector,
    ComplianceGrid,
    ComplianceTrial,
    choose_trial,
    make_corrector,
)
from prism_motor.manipulation.contact import AFTER, diagnose
from prism_motor.manipulation.diffusion.policy import PolicyActor, check_fit
from prism_motor.manipulation.environment import Environment
from prism_motor.manipulation.rollout import run_episode
from prism_motor.nn.checks import check_size
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.atomic import write_json

SCHEMA = 1
"""Version of the file; raised when its meaning changes."""

TITLE = "Settings of a compliance baseline"


@dataclass(frozen=True)
class SweepConfig:
    """How settings are compared."""

    baseline: str = "mcc-sensorless"
    """Which baseline."""
    grid: ComplianceGrid = field(default_factory=ComplianceGrid)
    """What is tried."""
    episodes: int = 10
    """Random resets of every setting and policy, the same for all settings."""
    seed: int = 501
    """Seed of the resets and of all noise."""
    stiffness: float | None = None
    """Kp of the arm's controller; the suite's own by default."""

    def __post_init__(self) -> None:
        check_size("Sweep", "episodes", self.episodes)
        if self.seed < 0:
            raise InputError(f"Sweep: the seed must not be negative, got {self.seed}.")


def run_sweep(
    manipulators: Sequence[Manipulator],
    environment: Environment,
    config: SweepConfig,
    report: Callable[[], None] | None = None,
) -> list[ComplianceTrial]:
    """Try every setting around the same policies from the same random resets.

    Args:
        manipulators: The policies; their episodes count together.
        environment: Their task. Its fixed initial states are never used.
        config: What is tried.
        report: Called after every episode.
    """
    for one in manipulators:
        check_fit(one.policy, environment)
    base = make_corrector(config.baseline, environment).config
    trials = []
    for setting in config.grid.candidates(base):
        found = [_run(one, environment, setting, config, report) for one in manipulators]
        successes = [success for part in found for success, _ in part]
        impulses = [i for part in found for success, i in part if success and i is not None]
        impulse = float(np.mean(impulses)) if impulses else None
        trials.append(ComplianceTrial(setting, len(successes), sum(successes), impulse))
    return trials


def _run(
    manipulator: Manipulator,
    environment: Environment,
    setting: ComplianceConfig,
    config: SweepConfig,
    report: Callable[[], None] | None,
) -> list[tuple[bool, float | None]]:
    """Return success and contact impulse of every episode."""
    actor, corrector = PolicyActor(manipulator.policy), ComplianceCorrector(setting)
    found = []
    for k in range(config.episodes):
        seed = 10_000 * config.seed + k
        outcome, trace = run_episode(
            environment, actor, reset_seed=seed, seed=seed, corrector=corrector, linger=AFTER
        )
        contact = diagnose(trace)
        found.append((outcome.success, None if contact is None else contact.impulse))
        if report is not None:
            report()
    return found


def write_sweep(
    trials: Sequence[ComplianceTrial],
    manipulators: Sequence[Manipulator],
    config: SweepConfig,
    left_out: Sequence[str],
    folder: Path,
) -> Path:
    """Write compliance.json with all trials and the choice; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "compliance.json"
    write_json(
        file,
        {
            "schema": SCHEMA,
            "title": TITLE,
            "caption": make_caption(trials, config),
            "table": make_table(trials),
            "config": to_dict(config),
            "chosen": to_dict(choose_trial(trials).config),
            "trials": [asdict(trial) for trial in trials],
            "left_out": list(left_out),
            "runs": [one.about for one in manipulators],
            "provenance": collect_provenance(),
        },
    )
    return file


def make_table(trials: Sequence[ComplianceTrial]) -> dict[str, Any]:
    """Return the trials as a table; the chosen one has a star."""
    best = choose_trial(trials)
    rows = [
        [
            f"{trial.config.gain:g}{' *' if trial is best else ''}",
            f"{trial.config.smoothing:g}",
            f"{trial.config.clip:g}",
            f"{trial.successes} of {trial.episodes}",
            "–" if trial.impulse is None else f"{trial.impulse:.1f}",
        ]
        for trial in trials
    ]
    return {"columns": ["k_f, 1/N", "EMA", "clip", "solved", "impulse, N s"], "rows": rows}


def make_caption(trials: Sequence[ComplianceTrial], config: SweepConfig) -> str:
    """Say what was compared and how the choice was made."""
    return (
        f"{config.baseline}: {len(trials)} settings, {trials[0].episodes} episodes each from the "
        "same random resets, which are none of the fixed initial states that policies are "
        "evaluated from. Chosen (*): most successes, then the least contact impulse in successful "
        "episodes, then the first."
    )
