"""Tables of numbers: arms and comparisons in rows, measures and conditions in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prism_motor._console import count
from prism_motor.report.keys import Key
from prism_motor.report.results import ResultRow, SectionResults
from prism_motor.reporting import MEAN, ReportSpec
from prism_motor.statistics.claims import Claim, Measure, write_p
from prism_motor.statistics.intervals import Estimate, Interval, wilson

MISSING = "missing"
"""Placeholder for a missing number."""


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    """Main text."""
    detail: str = ""
    """A second, smaller line."""
    kind: str = ""
    """``missing``, ``better``, ``worse`` or empty; determines its style."""
    full: str = ""
    """Full version of abbreviated text."""
    beside: str = ""
    """A third line: another measure, without which this one says too little."""

    def __str__(self) -> str:
        text = f"{self.text} {self.detail}".strip()
        return f"{text}, {self.beside}" if self.beside else text


@dataclass(frozen=True)
class Table:
    """A table."""

    title: str
    """What it shows."""
    columns: tuple[str, ...]
    """Headings."""
    rows: tuple[tuple[Cell, ...], ...]
    """Rows, with one cell per heading."""
    note: str = ""
    """Explanation for the reader."""
    folded: bool = False
    """Whether it is collapsed on a page."""


def blank() -> Cell:
    """Return the cell of a missing number."""
    return Cell(MISSING, kind="missing")


def main_table(results: SectionResults) -> Table:
    """Return the table of the plain condition: one row per arm."""
    spec = results.spec
    # Every measure but the rate may have a second column, for successful episodes only.
    solved = (False, True) if spec.of_successes else (False,)
    columns = [(m, s) for m in spec.measures for s in solved if not (s and m is spec.rate)]
    sized = any(row.arm.parameters is not None for row in results.rows)
    rows = []
    for row in results.rows:
        cells = [Cell(row.label, _seeds(results, row))]
        for measure, only in columns:
            key = Key(row.label, spec.plain, measure.field, only)
            cells.append(number(results, key, alone=True))
        if results.over_tasks:
            cells.append(write_estimate(results.over_tasks.get(row.label), spec.rate, True))
        if sized:
            size = row.arm.parameters
            cells.append(blank() if size is None else Cell(f"{size:,}"))
        rows.append(tuple(cells))
    for baseline in spec.baselines:
        keys = [Key(baseline.title, spec.plain, measure.field) for measure, _ in columns]
        numbers = [write_fixed(results, key, alone=True) for key in keys]
        rest = [Cell("")] * (bool(results.over_tasks) + sized)
        rows.append((Cell(baseline.title), *numbers, *rest))
    headings = [_heading(measure, only) for measure, only in columns]
    note = (
        "Mean ± sample SD over training seeds, with the 95 % t interval of the mean. Every seed "
        "counts once, by the mean over its episodes. One seed, or seeds that are all equal, cannot "
        "say how much others would vary: then there is no interval. For "
        f"{spec.rate.title}, an interval with a star is Wilson's over episodes instead; it speaks "
        "of these policies only."
    )
    note += f" {spec.measures_note}" if spec.measures_note else ""
    if results.over_tasks:
        headings.append(spec.rate.heading.replace(spec.rate.title, f"{spec.rate.title}, IQM"))
        note += (
            " All tasks weigh the same. IQM: interquartile mean over tasks and seeds with its 95 % "
            "stratified bootstrap interval."
        )
    headings += ["parameters"] if sized else []
    return Table(spec.plain_title, ("arm", *headings), tuple(rows), note)


def conditions_tables(results: SectionResults) -> list[Table]:
    """Return one table per measure over all conditions; none for a single condition."""
    if len(results.conditions) < 2:
        return []
    return [conditions_table(results, field) for field in results.spec.robust]


def conditions_table(results: SectionResults, field: str) -> Table:
    """Return one measure under all conditions, with the IQM if there are several seeds."""
    measure = results.spec.measure(field)
    several = any(len(seeds) > 1 for seeds in results.means.values())
    overall = several and results.spec.iqm_over_conditions
    rows = []
    for row in results.rows:
        cells = [Cell(row.label)]
        cells += [number(results, Key(row.label, c, field)) for c in results.conditions]
        if overall:
            found = results.over_conditions.get((row.label, field))
            cells.append(write_estimate(found, measure, measure is results.spec.rate))
        rows.append(tuple(cells))
    for baseline in results.spec.baselines:
        keys = [Key(baseline.title, name, field) for name in results.conditions]
        if any(key in results.fixed for key in keys):
            numbers = [write_fixed(results, key) for key in keys]
            rows.append((Cell(baseline.title), *numbers, *([Cell("")] * overall)))
    note = "Mean ± SD over training seeds with the 95 % t interval."
    if (text := companion_text(results.spec, measure)) and rows:
        note = f"{measure.heading}{text}. {note}"
    if MEAN in results.conditions:
        note += f" The last column is the mean of {', '.join(results.spec.averaged)}."
    if overall:
        note += (
            " IQM: interquartile mean over seeds and conditions with its 95 % stratified bootstrap "
            "interval."
        )
    columns = ("arm", *results.conditions, *(("all: IQM",) if overall else ()))
    title = measure.heading[0].upper() + measure.heading[1:]
    return Table(title, columns, tuple(rows), note)


def claims_table(
    claims: Sequence[Claim], title: str, *, folded: bool = False, column: str = "condition"
) -> Table:
    """Return comparisons with the reference, one per row.

    Args:
        claims: The comparisons.
        title: Heading.
        folded: Whether it is collapsed on a page; always so without any test.
        column: What the conditions are called.
    """
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
    measured = ("measure", "difference", "p (Holm)", "better in", "seeds")
    return Table(
        title,
        ("arm", *((column,) if several else ()), *measured),
        tuple(rows),
        "Arm minus reference, mean over the training seeds that both have, with its 95 % t "
        f"interval. p: paired t test, adjusted by Holm for the {count(tested, 'test')} of this "
        "table. Better in: share of all pairs of trainings in which the arm does better, with its "
        "bootstrap interval where resampling changes it; 50 % is no difference.",
        folded=folded or not tested,
    )


def write_estimate(
    found: Estimate | None, measure: Measure, rate: bool = False, of: tuple[int, int] = (0, 0)
) -> Cell:
    """Return an estimate as a cell.

    Args:
        found: The estimate; ``None`` gives a blank cell.
        measure: The measure.
        rate: Whether it is a rate, whose interval is clipped to 0 to 100 %.
        of: Successes and episodes, for the interval of a rate if the seeds give none.
    """
    if found is None:
        return blank()
    text = measure.write(found.centre)
    if found.sd is not None:
        text += f" ± {measure.write(found.sd)}"
    if found.interval is not None:
        low, high = found.interval
        limits = (0.0, 100.0) if rate else measure.limits
        if limits:  # t intervals can exceed the bounds of a rate
            low, high = max(limits[0], low), min(limits[1], high)
        return Cell(text, _interval(Interval(low, high), measure))
    hits, episodes = of
    if rate and episodes:
        low, high = (100 * bound for bound in wilson(hits, episodes))
        bounds = _interval(Interval(low, high), measure)
        return Cell(text, f"{bounds}*", full=f"{hits} of {count(episodes, 'episode')}")
    return Cell(text)


def number(results: SectionResults, key: Key, alone: bool = False) -> Cell:
    """Return one number over training seeds, with the measure that it never stands without.

    Args:
        results: The numbers.
        key: Which one.
        alone: Whether its companion has a column of its own.
    """
    spec = results.spec
    measure = spec.measure(key.field)
    of = results.rate(key.label, key.condition)
    cell = write_estimate(results.estimate(key), measure, measure is spec.rate, of)
    other = spec.companions.get(key.field)
    if alone or other is None or cell.kind == "missing":
        return cell
    found = results.estimate(key._replace(field=other))
    beside = "" if found is None else write_estimate(found, spec.measure(other)).text
    return _beside(cell, spec.measure(other), beside)


def write_fixed(results: SectionResults, key: Key, alone: bool = False) -> Cell:
    """Return a number of what needs no policy; empty if it is not measured."""
    spec = results.spec
    if key not in results.fixed:
        return Cell("")
    cell = Cell(spec.measure(key.field).write(results.fixed[key]))
    other = spec.companions.get(key.field)
    beside = None if other is None else results.fixed.get(key._replace(field=other))
    if alone or other is None or beside is None:
        return cell
    return _beside(cell, spec.measure(other), spec.measure(other).write(beside))


def _beside(cell: Cell, measure: Measure, value: str) -> Cell:
    """Return a cell with a second measure in it, by the first word of its unit."""
    unit = "\u00a0".join(["", *measure.unit.split()[:1]])
    return replace(cell, beside=f"{measure.title} {value or MISSING}{unit}")


def companion_text(spec: ReportSpec, measure: Measure) -> str:
    """Say which measure stands in the same cells, if any does."""
    other = spec.companions.get(measure.field)
    return "" if other is None else f", and in the same cell {spec.measure(other).heading}"


def _heading(measure: Measure, solved: bool) -> str:
    if not solved:
        return measure.heading
    return measure.heading.replace(measure.title, f"{measure.title} of successes")


def _seeds(results: SectionResults, row: ResultRow) -> str:
    """Describe how many runs are behind a row, and the state of the others."""
    spec = results.spec
    episodes = ""
    if spec.shows_episodes:
        episodes = f", {count(results.rate(row.label, spec.plain)[1], 'episode')}"
    if results.section is None:
        found = results.means.get(Key(row.label, spec.plain, spec.rate.field), {})
        return count(len(found), "seed") + episodes
    planned, missing = row.arm.planned, row.arm.missing(spec.plain, row.execution)
    there = len(planned) - len(missing)
    if not missing:
        return count(there, "seed") + episodes
    reasons = []
    for seed in missing:
        run = row.arm.runs.get(seed)
        if run is None:
            reasons.append(f"{seed} missing")
        elif not run.finished:
            reasons.append(f"{seed} at {run.updates / run.budget:.0%}")
        else:
            reasons.append(f"{seed} not evaluated")
    return f"{there} of {count(len(planned), 'seed')}{episodes}; {', '.join(reasons)}"


def _interval(interval: Interval, measure: Measure, signed: bool = False) -> str:
    low, high = (measure.write(bound, signed) for bound in interval)
    return f"[{low},\u00a0{high}]"  # no line break inside


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
    better = Cell(f"{100 * found.improvement:.0f} %")
    if found.improvement_interval:
        low, high = (100 * bound for bound in found.improvement_interval)
        better = Cell(better.text, f"[{low:.0f}, {high:.0f}]")
    left = f"without {', '.join(map(str, found.unpaired))}" if found.unpaired else ""
    return difference, p_value, better, Cell(", ".join(map(str, found.seeds)), left)
