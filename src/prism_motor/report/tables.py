"""Tables of a section, one arm or comparison a row."""

from __future__ import annotations

from collections.abc import Sequence

from prism_motor.report.arms import Arm
from prism_motor.report.cells import Cell, Table, blank
from prism_motor.report.claims import Claim
from prism_motor.report.measures import MEASURES, NOMINAL, ROBUSTNESS, Measure, find_measure
from prism_motor.report.results import Rate, Results
from prism_motor.statistics import Estimate, Interval


def main_table(results: Results) -> Table:
    """Return the table of the nominal condition: one arm a row."""
    measures = list(MEASURES.values())
    rows = []
    for arm in results.section.arms:
        cells = [Cell(arm.label, _seeds(arm, NOMINAL))]
        for measure in measures:
            score = results.scores.get((arm.label, NOMINAL, measure.field))
            rate = results.rates.get((arm.label, NOMINAL)) if _is_survival(measure) else None
            cells.append(_estimate(score.estimate if score else None, measure, rate))
        rows.append((*cells, _parameters(arm)))
    return Table(
        "Nominal condition",
        ("arm", *(m.heading for m in measures), "parameters"),
        tuple(rows),
        "Mean ± sample SD over training seeds, with the 95 % t interval of the mean. Every seed "
        "counts once, by the mean over its episodes. One seed, or seeds that are all equal, cannot "
        "say how much others would vary: then there is no interval. For survival, an interval with "
        "a star is Wilson's over episodes instead; it speaks of these policies only.",
    )


def robustness_table(results: Results, field: str) -> Table:
    """Return one measure under all conditions; with several seeds, the IQM over them too."""
    measure = find_measure(field)
    several = any(score.estimate.count > 1 for score in results.scores.values())
    rows = []
    for arm in results.section.arms:
        cells = [Cell(arm.label)]
        for condition in results.conditions:
            score = results.scores.get((arm.label, condition, field))
            rate = results.rates.get((arm.label, condition)) if _is_survival(measure) else None
            cells.append(_estimate(score.estimate if score else None, measure, rate))
        if several:
            cells.append(_estimate(results.overall.get((arm.label, field)), measure, None))
        rows.append(tuple(cells))
    return Table(
        measure.heading.capitalize(),
        ("arm", *results.conditions, *(("all: IQM",) if several else ())),
        tuple(rows),
        "Mean ± SD over training seeds with the 95 % t interval."
        + (
            " IQM: interquartile mean over seeds and conditions with its 95 % stratified bootstrap "
            "interval."
            if several
            else ""
        ),
    )


def robustness_tables(results: Results) -> list[Table]:
    """Return the tables of all conditions; none if there is only one condition."""
    if len(results.conditions) < 2:
        return []
    return [robustness_table(results, field) for field in ROBUSTNESS]


def claims_table(claims: Sequence[Claim], title: str) -> Table:
    """Return comparisons with the reference, one a row."""
    tested = sum(claim.adjusted is not None for claim in claims)
    several = len({claim.condition for claim in claims}) > 1
    rows = []
    before = None
    for claim in claims:
        against = f"against {claim.reference}" if claim.arm != before else ""
        before = claim.arm
        names = [Cell(claim.arm, against)]
        names += [Cell(claim.condition)] if several else []
        rows.append((*names, Cell(claim.measure.heading), *_comparison(claim)))
    return Table(
        title,
        (
            "arm",
            *(("condition",) if several else ()),
            "measure",
            "difference",
            "p (Holm)",
            "better in",
            "seeds",
        ),
        tuple(rows),
        "Arm minus reference, mean over the training seeds that both have, with its 95 % t "
        f"interval. p: paired t test, adjusted by Holm for the {tested} tests of this table. "
        "Better in: share of all pairs of trainings in which the arm does better, with its "
        "bootstrap interval where resampling changes it; 50 % is no difference.",
    )


def _is_survival(measure: Measure) -> bool:
    return measure.field == "survived"


def _parameters(arm: Arm) -> Cell:
    return blank() if arm.parameters is None else Cell(f"{arm.parameters:,}")


def _seeds(arm: Arm, condition: str) -> str:
    """Say how many seeds there are and what became of the others."""
    missing = arm.missing(condition)
    count = len(arm.planned) - len(missing)
    if not missing:
        return f"{count} seed{'' if count == 1 else 's'}"
    reasons = []
    for seed in missing:
        run = arm.runs.get(seed)
        if run is None:
            reasons.append(f"{seed} missing")
        elif not run.finished:
            reasons.append(f"{seed} at {run.updates / run.budget:.0%}")
        else:
            reasons.append(f"{seed} not evaluated")
    return f"{count} of {len(arm.planned)} seeds; {', '.join(reasons)}"


def _estimate(found: Estimate | None, measure: Measure, rate: Rate | None) -> Cell:
    if found is None:
        return blank()
    text = measure.write(found.centre)
    if found.sd is not None:
        text += f" ± {measure.write(found.sd)}"
    if found.interval is not None:
        low, high = found.interval
        if _is_survival(measure):
            low, high = max(0.0, low), min(100.0, high)
        return Cell(text, _interval(Interval(low, high), measure))
    if rate is not None:
        low, high = (100 * bound for bound in rate.interval)
        wilson = _interval(Interval(low, high), measure)
        return Cell(text, f"{wilson}*", full=f"{rate.survived} of {rate.episodes} episodes")
    return Cell(text)


def _interval(interval: Interval, measure: Measure, signed: bool = False) -> str:
    low, high = (measure.write(bound, signed) for bound in interval)
    return f"[{low},\u00a0{high}]"  # never broken over two lines


def _comparison(claim: Claim) -> tuple[Cell, ...]:
    found, measure = claim.comparison, claim.measure
    if found is None:
        return (Cell("no common seed", kind="missing"), blank(), blank(), Cell("0"))
    kind = claim.outcome if claim.outcome in ("better", "worse") else ""
    if found.interval:
        detail = _interval(found.interval, measure, True)
    else:
        detail = "one seed" if found.sd is None else "on every seed"
    difference = Cell(measure.write(found.difference, True), detail, kind)
    p_value = Cell("no test", kind="missing")
    if claim.adjusted is not None:
        p_value = Cell(write_p(claim.adjusted), kind=kind)
    share = f"{100 * found.improvement:.0f} %"
    if found.improvement_interval:
        low, high = (100 * bound for bound in found.improvement_interval)
        better = Cell(share, f"[{low:.0f}, {high:.0f}]")
    else:
        better = Cell(share)
    left = f"without {', '.join(map(str, found.unpaired))}" if found.unpaired else ""
    return difference, p_value, better, Cell(", ".join(map(str, found.seeds)), left)


def write_p(value: float) -> str:
    """Write a p-value with two significant digits."""
    return "< 0.001" if value < 0.001 else f"{value:.2g}"
