"""``prism compliance``: choose settings of a compliance baseline on a validation split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from prism_motor._ranges import Bounds, Seed, above, between, length
from prism_motor.analysis.study import Finding, Report, ResultTable, Study, StudyConfig, silent
from prism_motor.analysis.subjects import Subject, load_same_task
from prism_motor.manipulation.compliance import (
    ComplianceConfig,
    ComplianceCorrector,
    ComplianceGrid,
    ComplianceTrial,
    choose_trial,
    make_corrector,
)
from prism_motor.manipulation.contact import AFTER, diagnose
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.policy import check_fit
from prism_motor.manipulation.rollout import run_episode
from prism_motor.runs import to_dict

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment


@dataclass(frozen=True)
class SweepConfig(StudyConfig, section="compliance"):
    """How settings are compared."""

    baseline: Literal["mcc-sensorless", "mcc-oracle"] = "mcc-sensorless"
    """Which baseline."""
    gains: Annotated[tuple[float, ...], between(0, 1000), length(1, 1000)] = (0.005, 0.015, 0.045)
    """Values of k_f, the change of the action per newton."""
    smoothings: Annotated[tuple[float, ...], Bounds(0, 1, high_open=True), length(1, 1000)] = (
        0.8,
        0.9,
    )
    """Values of the moving average's weight on the past."""
    clips: Annotated[tuple[float, ...], between(0, 1000), length(1, 1000)] = (0.05,)
    """Values of the largest change of an action."""
    episodes: Annotated[int, between(1, 100_000)] = 10
    """Random resets per setting and policy, the same for all settings."""
    seed: Seed = 501
    """Seed of the resets and of all noise."""
    stiffness: Annotated[float | None, above(0, 1e5)] = None
    """Kp of LIBERO's controller; the paper uses 50. Default: LIBERO's own, 150."""
    task: str = ""
    """Which task of policies that learned several, as SUITE/NUMBER; default: the first."""

    @property
    def grid(self) -> ComplianceGrid:
        """All combinations of the values."""
        return ComplianceGrid(self.gains, self.smoothings, self.clips)


def run_sweep(
    subjects: Sequence[Subject],
    environment: Environment,
    config: SweepConfig,
    report: Report = silent,
) -> list[ComplianceTrial]:
    """Try every setting around the same policies from the same random resets.

    Args:
        subjects: The policies; their episodes are pooled.
        environment: Their task. Its fixed initial states are never used.
        config: What is tried.
        report: Called after every episode.
    """
    for one in subjects:
        check_fit(one.policy, environment)
    base = make_corrector(config.baseline, environment).config
    trials = []
    for setting in config.grid.candidates(base):
        found = [_run(one, environment, setting, config, report) for one in subjects]
        successes = [success for part in found for success, _ in part]
        impulses = [i for part in found for success, i in part if success and i is not None]
        impulse = float(np.mean(impulses)) if impulses else None
        trials.append(ComplianceTrial(setting, len(successes), sum(successes), impulse))
    return trials


def _run(
    subject: Subject,
    environment: Environment,
    setting: ComplianceConfig,
    config: SweepConfig,
    report: Report,
) -> list[tuple[bool, float | None]]:
    """Return success and contact impulse of every episode."""
    actor, corrector = subject.policy.acting_on(environment.task), ComplianceCorrector(setting)
    found = []
    for k in range(config.episodes):
        seed = 10_000 * config.seed + k
        outcome, trace = run_episode(
            environment, actor, reset_seed=seed, seed=seed, corrector=corrector, linger=AFTER
        )
        contact = diagnose(trace)
        found.append((outcome.success, None if contact is None else contact.impulse))
        report()
    return found


def make_table(trials: Sequence[ComplianceTrial]) -> ResultTable:
    """Return the trials as a table; the chosen one is starred."""
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
    return ResultTable(["k_f, 1/N", "EMA", "clip", "solved", "impulse, N s"], rows)


def _caption(trials: Sequence[ComplianceTrial], config: SweepConfig) -> str:
    """Explain what was compared and how the choice was made."""
    return (
        f"{config.baseline}: {len(trials)} settings, {trials[0].episodes} episodes each from the "
        "same random resets, which are not among the fixed initial states that policies are "
        "evaluated from. Chosen (*): most successes, then the least contact impulse in successful "
        "episodes, then the first."
    )


def _count(subjects: Sequence[Subject], config: SweepConfig) -> int:
    settings = len(config.gains) * len(config.smoothings) * len(config.clips)
    return settings * len(subjects) * config.episodes


def _run_study(subjects: Sequence[Subject], config: SweepConfig, report: Report) -> Finding:
    environment = environment_of(subjects[0].policy.config, config.stiffness, config.task)
    try:
        trials = run_sweep(subjects, environment, config, report)
    finally:
        environment.close()
    return make_finding(trials, subjects, config)


def make_finding(
    trials: Sequence[ComplianceTrial], subjects: Sequence[Subject], config: SweepConfig
) -> Finding:
    """Return the trials and the choice; ``chosen`` is what ``prism eval`` reads."""
    return Finding(
        title="Settings of a compliance baseline",
        caption=_caption(trials, config),
        tables={"": make_table(trials)},
        data={
            "chosen": to_dict(choose_trial(trials).config),
            "trials": [asdict(trial) for trial in trials],
            "runs": [subject.about for subject in subjects],
        },
    )


COMPLIANCE = Study(
    name="compliance",
    domain="manipulation",
    help="""Try settings of a compliance baseline around trained policies and choose the best.

Episodes begin from random resets, never from the fixed initial states of evaluations. The choice is
the setting with the most successes, then the least contact impulse in successful episodes. Writes
compliance.json, which prism eval and prism contact take as a baseline.""",
    config=SweepConfig,
    load=load_same_task,
    count=_count,
    run=_run_study,
)
"""``prism compliance``."""
