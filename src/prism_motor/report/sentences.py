"""Sentences about the results, computed only from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from prism_motor._console import count
from prism_motor.report.keys import Key
from prism_motor.report.results import SectionResults
from prism_motor.statistics.claims import Claim, write_p

Sentence = tuple[str, str]
"""A subject and a finding, which together form a sentence."""


def summarise_runs(all_results: Sequence[SectionResults]) -> str:
    """Describe what was run in a few sentences."""
    sections = [results.section for results in all_results if results.section]
    runs = [run for section in sections for run in section.runs]
    arms = len({arm.label for section in sections for arm in section.arms})
    finished = sum(run.finished for run in runs)
    evaluated = sum(run.finished and bool(run.evaluations) for run in runs)
    text = f"{count(len(runs), 'training')} of {count(arms, 'arm')}"
    if len(sections) > 1:
        text += f" on {len(sections)} tasks, which are never mixed"
    if finished == evaluated == len(runs):
        text += ", all finished and evaluated."
    else:
        text += f": {finished} finished, {evaluated} of these evaluated."
    budgets = set()
    for run in runs:
        samples = run.spec.samples_per_update(run.config)
        if samples:
            total = run.budget * samples
            large = total >= 100_000
            budgets.add(f"{total / 1e6:.1f} million samples" if large else count(total, "sample"))
        else:
            budgets.add(count(run.budget, "update"))
    if len(budgets) == 1:
        text += f" Each has a budget of {budgets.pop()}."
    seeds = [len(arm.finished) for section in sections for arm in section.arms]
    if seeds and max(seeds) < 2:
        text += (
            " No arm has a second finished training seed, so nothing here says how trainings vary:"
            " read every difference as an anecdote."
        )
    return text


def findings(results: SectionResults) -> list[Sentence]:
    """Return one finding per comparison, then the arms' behaviour, then other conditions."""
    found = compared(results.claims)
    if not found and results.section:
        found.append(("No comparison:", _why_none(results)))
    return found + [one for one in (_portraits(results), _other_conditions(results)) if one]


def compared(claims: Sequence[Claim]) -> list[Sentence]:
    """Return one finding per compared arm."""
    pairs = dict.fromkeys((claim.arm, claim.reference) for claim in claims)
    return [
        _comparison([claim for claim in claims if (claim.arm, claim.reference) == pair])
        for pair in pairs
    ]


def _comparison(claims: Sequence[Claim]) -> Sentence:
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
            parts.append(f"{outcome} in {join_names([_detailed(claim) for claim in group])}")
    undecided = [claim.measure.title for claim in tested if claim.outcome == "open"]
    if undecided:
        parts.append(f"no difference that these seeds can show in {join_names(undecided)}")
    untested = [c for c in tested if c.outcome == "untested" and c.comparison is not None]
    equal = [c.measure.title for c in untested if c.comparison and c.comparison.difference == 0]
    if equal:
        parts.append(f"equal on every seed in {join_names(equal)}")
    constant = [c for c in untested if c.measure.title not in equal]
    if constant:
        listed = join_names([f"{c.measure.title} ({_difference(c)})" for c in constant])
        parts.append(f"the same difference on every seed, which no test can weigh, in {listed}")
    return subject, f" over {seeds} common training seeds, {'; '.join(parts)}."


def _detailed(claim: Claim) -> str:
    assert claim.adjusted is not None
    return f"{claim.measure.title} ({_difference(claim)}, p = {write_p(claim.adjusted)})".replace(
        "= <", "<"
    )


def _difference(claim: Claim) -> str:
    assert claim.comparison is not None
    unit = f" {claim.measure.unit}" if claim.measure.unit else ""
    return f"{claim.measure.write(claim.comparison.difference, signed=True)}{unit}"


def _why_none(results: SectionResults) -> str:
    assert results.section is not None
    names = {arm.name for arm in results.section.arms if arm.runs}
    if names == {results.reference}:
        return f" there is only {results.reference}."
    return (
        f" there is no arm {results.reference} with as many updates to compare with. Train one, or "
        "name another by --reference."
    )


def _portraits(results: SectionResults) -> Sentence | None:
    """Describe the behaviour of the arms, if the domain has more to say than comparisons."""
    spec, parts = results.spec, []
    for row in results.rows:
        found = {
            measure.field: measure.write(value.centre)
            for measure in spec.measures
            if (value := results.estimate(Key(row.label, spec.plain, measure.field)))
        }
        if spec.rate.field in found and (text := spec.portrait(found)):
            parts.append(f"{row.label} {text}")
    subject = f"{spec.domain.title}, {spec.plain_title.lower()}:"
    return (subject, f" {'; '.join(parts)}.") if parts else None


def _other_conditions(results: SectionResults) -> Sentence | None:
    claims = [c for c in results.other_claims if c.comparison is not None]
    if not any(claim.comparison and claim.comparison.interval for claim in claims):
        return None
    decided = [claim for claim in claims if claim.outcome in ("better", "worse")]
    if not decided:
        of = count(len(claims), "comparison")
        return results.spec.away, f" none of {of} shows a difference that these seeds can show."
    parts = [
        f"{c.arm} {c.outcome} in {c.measure.title} under {c.condition} ({_difference(c)})"
        for c in decided
    ]
    left = len(claims) - len(decided)
    rest = {0: "", 1: " The other comparison is open."}
    text = rest.get(left, f" The other {left} comparisons are open.")
    return results.spec.away, f" {'; '.join(parts)}.{text}"


def join_names(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
