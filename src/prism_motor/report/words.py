"""What the numbers show, in sentences that are computed from them alone."""

from __future__ import annotations

from collections.abc import Sequence

from prism_motor.report.claims import Claim
from prism_motor.report.measures import NOMINAL, find_measure
from prism_motor.report.results import Results
from prism_motor.report.tables import write_p


def lead(all_results: Sequence[Results]) -> str:
    """Say what was run, in a few sentences."""
    runs = [run for results in all_results for run in results.section.runs]
    arms = sum(len(results.section.arms) for results in all_results)
    finished = sum(run.finished for run in runs)
    evaluated = sum(run.finished and bool(run.evaluations) for run in runs)
    words = f"{_count(len(runs), 'training')} of {_count(arms, 'arm')}"
    if len(all_results) > 1:
        words += f" on {len(all_results)} tasks, which are never mixed"
    if finished == evaluated == len(runs):
        words += ", all finished and evaluated."
    else:
        words += f": {finished} finished, {evaluated} of these evaluated."
    budgets = {run.budget * run.config.samples_per_iteration for run in runs}
    if len(budgets) == 1:
        words += f" Each has a budget of {budgets.pop() / 1e6:.1f} million samples."
    seeds = [len(arm.finished) for results in all_results for arm in results.section.arms]
    if seeds and max(seeds) < 2:
        words += (
            " No arm has a second finished training seed, so nothing here says how trainings vary:"
            " read every difference as an anecdote."
        )
    return words


def findings(results: Results) -> list[tuple[str, str]]:
    """Return (subject, finding) pairs that read as sentences, one a comparison."""
    sentences = compared(results.claims["nominal"])
    if not sentences:
        sentences.append(("No comparison:", _why_none(results)))
    sentences += [one for one in (_walking(results), _robustness(results)) if one]
    return sentences


def compared(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    """Return (subject, finding) pairs, one an arm that is compared."""
    arms = dict.fromkeys((claim.arm, claim.reference) for claim in claims)
    return [
        _comparison([claim for claim in claims if (claim.arm, claim.reference) == pair])
        for pair in arms
    ]


def _comparison(claims: Sequence[Claim]) -> tuple[str, str]:
    tested = [claim for claim in claims if claim.comparison is not None]
    subject = f"{claims[0].arm} against {claims[0].reference}:"
    if not tested or tested[0].comparison is None:
        return subject, " no training seed of both is finished and evaluated."
    seeds = len(tested[0].comparison.seeds)
    if seeds == 1:
        parts = [f"{c.measure.title} {_difference(c)}" for c in tested]
        return subject, f" one common training seed, so no interval: {', '.join(parts)}."
    parts = []
    for outcome in ("better", "worse"):
        group = [claim for claim in tested if claim.outcome == outcome]
        if group:
            parts.append(f"{outcome} in {_listed([_detailed(claim) for claim in group])}")
    undecided = [claim.measure.title for claim in tested if claim.outcome == "open"]
    if undecided:
        parts.append(f"no difference that these seeds can show in {_listed(undecided)}")
    untested = [c for c in tested if c.outcome == "untested" and c.comparison is not None]
    equal = [c.measure.title for c in untested if c.comparison and c.comparison.difference == 0]
    if equal:
        parts.append(f"equal on every seed in {_listed(equal)}")
    constant = [c for c in untested if c.measure.title not in equal]
    if constant:
        listed = _listed([f"{c.measure.title} ({_difference(c)})" for c in constant])
        parts.append(f"the same difference on every seed, which no test can weigh, in {listed}")
    return subject, f" over {seeds} common training seeds, {'; '.join(parts)}."


def _detailed(claim: Claim) -> str:
    assert claim.comparison is not None
    assert claim.adjusted is not None
    return f"{claim.measure.title} ({_difference(claim)}, p = {write_p(claim.adjusted)})".replace(
        "= <", "<"
    )


def _difference(claim: Claim) -> str:
    assert claim.comparison is not None
    unit = f" {claim.measure.unit}" if claim.measure.unit else ""
    return f"{claim.measure.write(claim.comparison.difference, signed=True)}{unit}"


def _why_none(results: Results) -> str:
    names = {arm.name for arm in results.section.arms if arm.runs}
    if names == {results.reference}:
        return f" there is only {results.reference}."
    return (
        f" there is no arm {results.reference} with as many updates to compare with. Train one, or "
        "name another by --reference."
    )


def _walking(results: Results) -> tuple[str, str] | None:
    """Say how the arms walk; a shuffle must not pass for a walk."""
    parts = []
    for arm in results.section.arms:
        found = {
            field: find_measure(field).write(score.estimate.centre)
            for field in ("survived", "speed_ratio", "swing_apex", "double_support")
            if (score := results.scores.get((arm.label, NOMINAL, field)))
        }
        if "survived" in found:
            words = f"{arm.label} survives {found['survived']} %"
            if {"speed_ratio", "swing_apex"} <= found.keys():
                words += (
                    f" at {found['speed_ratio']} of the commanded speed (swing apex "
                    f"{found['swing_apex']} cm, double support {found['double_support']} %)"
                )
            parts.append(words)
    return ("Walking, nominal condition:", f" {'; '.join(parts)}.") if parts else None


def _robustness(results: Results) -> tuple[str, str] | None:
    claims = [c for c in results.claims["robustness"] if c.comparison is not None]
    if not claims:
        return None
    decided = [claim for claim in claims if claim.outcome in ("better", "worse")]
    if not any(claim.comparison and claim.comparison.interval for claim in claims):
        return None
    if not decided:
        return (
            "Away from nominal:",
            f" none of {len(claims)} comparisons shows a difference that these seeds can show.",
        )
    parts = [
        f"{c.arm} {c.outcome} in {c.measure.title} under {c.condition} ({_difference(c)})"
        for c in decided
    ]
    left = len(claims) - len(decided)
    return "Away from nominal:", f" {'; '.join(parts)}. The other {left} comparisons are open."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
