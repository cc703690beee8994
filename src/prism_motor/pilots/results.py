"""The numbers of a pilot, from its plan and its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from prism_motor.pilots.labelling import SecondLabel
from prism_motor.pilots.plan import PilotPlan, SealedPart
from prism_motor.pilots.records import Trial
from prism_motor.statistics import (
    Interval,
    Pairs,
    boschloo,
    clopper_pearson,
    fisher,
    holm,
    kappa,
    mcnemar,
    newcombe,
    newcombe_paired,
    wilson,
)


class Tally(NamedTuple):
    """Successes and trials."""

    successes: int
    trials: int

    @property
    def rate(self) -> float:
        """Share of successes."""
        return self.successes / self.trials


@dataclass(frozen=True)
class ArmResult:
    """The trials of an arm."""

    letter: str
    """Its letter during the trials."""
    name: str
    """Its name."""
    tally: Tally
    """Its trials that count."""
    wilson: Interval | None
    """Interval of its rate; ``None`` without a trial."""
    exact: Interval | None
    """The same by Clopper and Pearson."""
    failures: Mapping[int | None, int]
    """Failures by code; ``None`` for those without."""
    success_times: tuple[float, ...]
    """Seconds until success, where they are known."""
    rates: tuple[float, ...]
    """Achieved control steps per second, one per trial."""
    worst: float | None
    """Longest time between two control steps, s."""
    void: int
    """Void trials, which were repeated."""
    policies: tuple[Tally, ...]
    """The same trials by policy."""


@dataclass(frozen=True)
class ArmComparison:
    """An arm against the reference."""

    arm: str
    """Its letter."""
    reference: str
    """The reference's letter."""
    pairs: Pairs
    """Start poses by who succeeded, the arm first."""
    incomplete: int
    """Start poses at which one of them has no trial that counts."""
    difference: float
    """The arm's rate minus the reference's."""
    interval: Interval
    """Newcombe's 95 % interval of the difference: of paired trials if the primary test is."""
    mcnemar: float
    """p-value of the exact McNemar test."""
    boschloo: float
    """p-value of Boschloo's test."""
    fisher: float
    """p-value of Fisher's test."""
    primary: float
    """p-value of the planned test, adjusted by Holm for the number of comparisons."""


@dataclass(frozen=True)
class Agreement:
    """A second look against the first labels."""

    by: str
    """Who looked."""
    compared: int
    """Trials with both labels."""
    agreed: int
    """Of these, those with the same."""
    kappa: float | None
    """Cohen's kappa; ``None`` if all labels are one and the same, or none was compared."""
    unclear: int
    """Trials whose video does not show it."""
    revealed: int
    """Labels given after the arms were known."""


@dataclass(frozen=True)
class PilotResults:
    """All numbers of a pilot."""

    arms: tuple[ArmResult, ...]
    """The reference first, then in the order of their names."""
    comparisons: tuple[ArmComparison, ...]
    """Every other arm against the reference, where both have trials."""
    agreements: tuple[Agreement, ...]
    """Second looks."""
    planned: int
    """Planned trials."""
    counted: int
    """Trials that count."""

    def arm(self, letter: str) -> ArmResult:
        """Return the result of an arm."""
        return next(arm for arm in self.arms if arm.letter == letter)


def counting(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that were successes or failures."""
    return [one for one in trials if one.label is not None and one.label.outcome != "void"]


def succeeded(trial: Trial) -> bool:
    """Return whether a labelled trial was a success."""
    assert trial.label is not None
    return trial.label.outcome == "success"


def summarise(
    plan: PilotPlan,
    sealed: SealedPart,
    trials: Sequence[Trial],
    second: Mapping[str, Sequence[SecondLabel]],
) -> PilotResults:
    """Compute all numbers.

    Args:
        plan: The plan.
        sealed: Which letter is which arm.
        trials: All trials.
        second: Labels of second looks by who looked.
    """
    counted = counting(trials)
    arms = [_summarise_arm(plan, letter, sealed.arm(letter).name, trials) for letter in plan.arms]
    arms.sort(key=lambda arm: (arm.letter != sealed.reference, arm.name))
    tested = [arm for arm in arms if arm.tally.trials]
    comparisons: list[ArmComparison] = []
    for arm in tested:
        if arm.letter != sealed.reference and sealed.reference in {one.letter for one in tested}:
            reference = next(one for one in tested if one.letter == sealed.reference)
            comparisons.append(_compare(plan, arm, reference, counted))
    adjusted = holm([one.primary for one in comparisons])
    return PilotResults(
        arms=tuple(arms),
        comparisons=tuple(
            replace(one, primary=p)
            for one, p in zip(comparisons, adjusted, strict=True)
            if p is not None
        ),
        agreements=tuple(_agree(by, labels, counted) for by, labels in second.items()),
        planned=len(plan.order),
        counted=len(counted),
    )


def _summarise_arm(plan: PilotPlan, letter: str, name: str, trials: Sequence[Trial]) -> ArmResult:
    mine = [trial for trial in trials if trial.arm == letter]
    counted = counting(mine)
    tally = _tally(counted)
    failures: dict[int | None, int] = {}
    for trial in counted:
        if trial.label is not None and not succeeded(trial):
            failures[trial.label.code] = failures.get(trial.label.code, 0) + 1
    courses = [trial.course for trial in counted if trial.course is not None]
    times = [
        trial.course.success_after
        for trial in counted
        if trial.course is not None and succeeded(trial)
    ]
    gaps = [course.worst for course in courses if course.worst is not None]
    return ArmResult(
        letter=letter,
        name=name,
        tally=tally,
        wilson=wilson(*tally) if tally.trials else None,
        exact=clopper_pearson(*tally) if tally.trials else None,
        failures=failures,
        success_times=tuple(time for time in times if time is not None),
        rates=tuple(course.rate for course in courses if course.rate is not None),
        worst=max(gaps, default=None),
        void=sum(trial.label is not None for trial in mine) - len(counted),
        policies=tuple(
            _tally([trial for trial in counted if trial.policy == policy])
            for policy in range(plan.policies)
        ),
    )


def _tally(trials: Sequence[Trial]) -> Tally:
    return Tally(sum(map(succeeded, trials)), len(trials))


def _compare(
    plan: PilotPlan, arm: ArmResult, reference: ArmResult, trials: Sequence[Trial]
) -> ArmComparison:
    outcomes = {(trial.arm, trial.pose): succeeded(trial) for trial in trials}
    counts = {(one, other): 0 for one in (True, False) for other in (True, False)}
    incomplete = 0
    for pose in plan.poses:
        pair = (
            outcomes.get((arm.letter, pose.number)),
            outcomes.get((reference.letter, pose.number)),
        )
        if pair[0] is None or pair[1] is None:
            incomplete += 1
        else:
            counts[pair[0], pair[1]] += 1
    pairs = Pairs(
        counts[True, True], counts[True, False], counts[False, True], counts[False, False]
    )
    numbers = (*arm.tally, *reference.tally)
    paired = plan.config.test == "mcnemar" and sum(pairs) > 0
    p_values = {"mcnemar": mcnemar(pairs.first, pairs.second), "boschloo": boschloo(*numbers)}
    difference = arm.tally.rate - reference.tally.rate
    if paired:  # of the poses that both have
        difference = (pairs.first - pairs.second) / sum(pairs)
    return ArmComparison(
        arm=arm.letter,
        reference=reference.letter,
        pairs=pairs,
        incomplete=incomplete,
        difference=difference,
        interval=newcombe_paired(pairs) if paired else newcombe(*numbers),
        mcnemar=p_values["mcnemar"],
        boschloo=p_values["boschloo"],
        fisher=fisher(*numbers),
        primary=p_values[plan.config.test],
    )


def _agree(by: str, labels: Sequence[SecondLabel], trials: Sequence[Trial]) -> Agreement:
    first = {trial.number: succeeded(trial) for trial in trials}
    both = [
        (first[label.trial], label.success)
        for label in labels
        if label.success is not None and label.trial in first
    ]
    return Agreement(
        by=by,
        compared=len(both),
        agreed=sum(one == other for one, other in both),
        kappa=kappa([one for one, _ in both], [other for _, other in both]) if both else None,
        unclear=sum(label.success is None for label in labels),
        revealed=sum(label.revealed for label in labels),
    )
