"""The numbers of a section: estimates over training seeds and comparisons with a reference."""

from __future__ import annotations

from dataclasses import dataclass

from prism_motor.report.arms import REFERENCE, Arm, Section
from prism_motor.report.claims import Claim, make_claim, with_holm
from prism_motor.report.measures import (
    MEASURES,
    NOMINAL,
    ROBUSTNESS,
    conditions_of,
    find_measure,
    seed_means,
)
from prism_motor.statistics import Estimate, Interval, estimate, iqm_estimate, wilson


@dataclass(frozen=True)
class Score:
    """A measure of an arm under a condition."""

    seeds: dict[int, float]
    """Mean over episodes by training seed."""
    estimate: Estimate
    """Over those seeds."""


@dataclass(frozen=True)
class Rate:
    """Survival of all episodes of some policies; it says nothing about other trainings."""

    survived: int
    episodes: int
    interval: Interval


@dataclass(frozen=True)
class Results:
    """All numbers of a section."""

    section: Section
    """Its runs."""
    reference: str
    """Name of the arm that others are compared with."""
    conditions: tuple[str, ...]
    """Conditions with any evaluation."""
    scores: dict[tuple[str, str, str], Score]
    """By label of the arm, condition and field; what is missing is not there."""
    rates: dict[tuple[str, str], Rate]
    """Survival over episodes, by label of the arm and condition."""
    overall: dict[tuple[str, str], Estimate]
    """Interquartile mean over seeds and conditions, by label and field; only for arms that were
    evaluated under all conditions."""
    claims: dict[str, tuple[Claim, ...]]
    """By table: ``nominal`` and ``robustness``."""


def compute(section: Section, reference: str = REFERENCE) -> Results:
    """Compute all numbers of a section.

    Args:
        section: Its arms.
        reference: Name of the arm that others are compared with.
    """
    conditions = tuple(conditions_of(section.arms))
    scores, rates = {}, {}
    for arm in section.arms:
        for condition in conditions:
            for measure in MEASURES.values():
                if means := seed_means(arm, condition, measure):
                    found = Score(means, estimate(list(means.values())))
                    scores[arm.label, condition, measure.field] = found
            if rate := _rate(arm, condition):
                rates[arm.label, condition] = rate
    overall = {
        (arm.label, field): iqm_estimate(strata)
        for arm in section.arms
        for field in ROBUSTNESS
        if len(conditions) > 1 and (strata := _strata(scores, arm, conditions, field))
    }
    main = [m.field for m in MEASURES.values() if m.better]
    others = [condition for condition in conditions if condition != NOMINAL]
    claims = {
        "nominal": _claims(section, reference, scores, [NOMINAL], main),
        "robustness": _claims(section, reference, scores, others, list(ROBUSTNESS)),
    }
    return Results(section, reference, conditions, scores, rates, overall, claims)


def _rate(arm: Arm, condition: str) -> Rate | None:
    episodes = [e for run in arm.finished.values() for e in run.episodes(condition)]
    if not episodes:
        return None
    survived = sum(episode.survived for episode in episodes)
    return Rate(survived, len(episodes), wilson(survived, len(episodes)))


def _strata(
    scores: dict[tuple[str, str, str], Score], arm: Arm, conditions: tuple[str, ...], field: str
) -> list[list[float]]:
    """Return the seeds of every condition, or nothing if a condition is missing."""
    found = [scores.get((arm.label, condition, field)) for condition in conditions]
    return [] if None in found else [list(score.seeds.values()) for score in found if score]


def _claims(
    section: Section,
    reference: str,
    scores: dict[tuple[str, str, str], Score],
    conditions: list[str],
    fields: list[str],
) -> tuple[Claim, ...]:
    """Compare all arms with their reference, and correct for how many claims that makes."""
    claims = []
    for arm in section.arms:
        other = section.reference_of(arm, reference)
        if other is None:
            continue
        for condition in conditions:
            for field in fields:
                ours = scores.get((arm.label, condition, field))
                theirs = scores.get((other.label, condition, field))
                claims.append(
                    make_claim(
                        (arm.label, ours.seeds if ours else {}),
                        (other.label, theirs.seeds if theirs else {}),
                        condition,
                        find_measure(field),
                    )
                )
    return with_holm(claims)
