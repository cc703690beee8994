"""What the numbers show, in sentences that are computed from them alone."""

from __future__ import annotations

from collections.abc import Sequence

from prism.report.arms import Arm
from prism.report.measures import NOMINAL, find_measure
from prism.report.results import Claim, Results
from prism.report.tables import write_p

_GAIT = ("speed_ratio", "swing_apex", "double_support")


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
    seeds = [len(arm.finished) for results in all_results for arm in results.section.arms]
    if seeds and max(seeds) < 2:
        words += (
            " No arm has a second finished training seed, so nothing here says how trainings vary:"
            " read every difference as an anecdote."
        )
    return words


def findings(results: Results) -> list[tuple[str, str]]:
    """Return (subject, finding) pairs that read as sentences, one a comparison."""
    found = [_comparison(results, arm) for arm in results.section.arms]
    sentences = [one for one in found if one]
    if not sentences:
        sentences.append(("No comparison:", _why_none(results)))
    sentences += [one for arm in results.section.arms if (one := _gait(results, arm))]
    if robust := _robustness(results):
        sentences.append(robust)
    return sentences


def _comparison(results: Results, arm: Arm) -> tuple[str, str] | None:
    claims = [claim for claim in results.claims["nominal"] if claim.arm is arm]
    tested = [claim for claim in claims if claim.comparison is not None]
    if not claims:
        return None
    reference = claims[0].reference.label
    subject = f"{arm.label} against {reference}:"
    if not tested or tested[0].comparison is None:
        return subject, " no training seed of both is finished and evaluated."
    seeds = len(tested[0].comparison.seeds)
    if seeds == 1:
        parts = [f"{c.measure.title} {_difference(c)}" for c in tested]
        return subject, f" one common training seed, so no interval. {_sentence(parts)}."
    parts = []
    for outcome in ("better", "worse"):
        group = [claim for claim in tested if claim.outcome == outcome]
        if group:
            parts.append(f"{outcome} in {_listed([_detailed(claim) for claim in group])}")
    undecided = [claim.measure.title for claim in tested if claim.outcome == "open"]
    if undecided:
        parts.append(f"no difference that these seeds can show in {_listed(undecided)}")
    equal = [claim.measure.title for claim in tested if claim.outcome == "untested"]
    if equal:
        parts.append(f"the same difference on every seed, so no test, in {_listed(equal)}")
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
    names = {arm.name for arm in results.section.arms}
    if results.reference not in names:
        return (
            f" there is no arm {results.reference} to compare with. Train one, or name another "
            "by --reference."
        )
    return f" there is only {results.reference}."


def _gait(results: Results, arm: Arm) -> tuple[str, str] | None:
    """Say how an arm walks; a shuffle must not pass for a walk."""
    survival = results.scores.get((arm.label, NOMINAL, "survived"))
    if survival is None:
        return None
    parts = []
    for field in _GAIT:
        score = results.scores.get((arm.label, NOMINAL, field))
        if score:
            measure = find_measure(field)
            unit = f" {measure.unit}" if measure.unit else ""
            parts.append(f"{measure.title} {measure.write(score.estimate.centre)}{unit}")
    walks = f" survives {find_measure('survived').write(survival.estimate.centre)} % of episodes"
    return arm.label, f"{walks}; {', '.join(parts)}." if parts else f"{walks}."


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
        f"{c.arm.label} {c.outcome} in {c.measure.title} under {c.condition} ({_difference(c)})"
        for c in decided
    ]
    return "Away from nominal:", f" {_sentence(parts)}; {len(claims) - len(decided)} others open."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _sentence(parts: Sequence[str]) -> str:
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]
