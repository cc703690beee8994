"""What the page and report.md say: sentences and tables, computed only from the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prism_motor.statistics import write_p
from prism_motor.studies.lab.arms import REFERENCE
from prism_motor.studies.lab.results import LabRow, LabSummary, Ratio, Setting
from prism_motor.studies.networks import StudyArm

OUTCOMES = ("better", "worse", "open", "untested", "diverged")
"""What a comparison can say."""


@dataclass(frozen=True)
class LabCell:
    """A cell of a table."""

    text: str
    detail: str = ""
    kind: str = ""
    """``better``, ``worse`` or nothing: how it is shaded."""
    full: str = ""
    """What a pointer over it shows."""


@dataclass(frozen=True)
class LabTable:
    """A table with its title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[LabCell]]


def write_ratio(found: Ratio | None) -> str:
    """Format a ratio: ``×0.43``."""
    return "diverged" if found is None else f"×{_number(found.centre)}"


def write_interval(found: Ratio | None) -> str:
    """Format the interval of a ratio; empty if it has none."""
    if found is None or found.interval is None:
        return ""
    return f"[{_number(found.interval.low)}, {_number(found.interval.high)}]"


def percent(share: float) -> str:
    """Format a share in percent with two significant digits."""
    value = 100 * share
    return f"{value:.1e}" if value < 0.005 else f"{float(f'{value:.2g}'):g}"


def _number(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 10 else f"{value:.2g}"


def findings(summary: LabSummary, setting: Setting) -> list[tuple[str, str]]:
    """Return a sentence per arm: where it is better, where worse, and by how much overall."""
    found = []
    for arm in summary.arms:
        if arm == REFERENCE:
            continue
        rows = _rows_of(summary, arm, setting)
        names = {
            outcome: [row.problem.name for row in rows if row.outcome("test") == outcome]
            for outcome in OUTCOMES
        }
        parts = [f"{what} on {', '.join(names[what])}" for what in ("better", "worse")
                 if names[what]]  # fmt: skip
        if names["diverged"]:
            parts.append(f"diverged on {', '.join(names['diverged'])}")
        if rest := len(names["open"]) + len(names["untested"]):
            parts.append(f"no difference that these seeds can show on {rest} of {len(rows)}")
        ratio = summary.overall(arm, setting, "test")
        mean = f" error {write_ratio(ratio)} {write_interval(ratio)} over all problems;"
        found.append((f"{arm.label}:", f"{mean} {'; '.join(parts)}."))
    return found


def overall_table(summary: LabSummary, setting: Setting) -> LabTable:
    """Return the gains of every arm over groups of problems."""
    groups = (("test", None), ("test", True), ("test", False), ("extrapolation", None))
    rows = []
    for arm in summary.arms:
        own = _rows_of(summary, arm, setting)
        sizes = sorted({row.parameters for row in own})
        shares = sorted(100 * row.kept for row in own if row.kept is not None)
        counts = Counter(row.outcome("test") for row in own)
        span = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,}–{sizes[-1]:,}"
        ratios = [
            None if arm == REFERENCE else summary.overall(arm, setting, part, multiplicative=which)
            for part, which in groups
        ]
        rows.append(
            [
                LabCell(arm.label, arm.name),
                *(
                    LabCell("1") if arm == REFERENCE
                    else LabCell(write_ratio(one), write_interval(one))
                    if one is not None else LabCell("–")
                    for one in ratios
                ),
                LabCell("" if arm == REFERENCE else f"{counts['better']} / {counts['worse']}"),
                LabCell(f"{len(own)}"),
                LabCell(span),
                LabCell(f"{shares[0]:.0f}–{shares[-1]:.0f}" if shares else "–"),
                LabCell(str(sum(row.at_edge for row in own))),
            ]
        )  # fmt: skip
    return LabTable(
        f"Error relative to the MLP of equal size, geometric mean over problems ({setting})",
        (
            "Arm", "all problems", "multiplicative", "others", "extrapolation, all",
            "better / worse", "problems", "parameters", "left when pruned, %", "rates at edge",
        ),
        rows,
    )  # fmt: skip


def map_table(summary: LabSummary, setting: Setting, part: str) -> LabTable:
    """Return the ratio of every arm on every problem, most multiplicative problems first."""
    arms = [arm for arm in summary.arms if arm != REFERENCE]
    rows = []
    for problem in summary.problems:
        found = summary.structures[problem.name].multiplicativity
        cells = [LabCell(problem.title, problem.name), LabCell(f"{found:.2f}")]
        for arm in (REFERENCE, *arms):
            row = summary.row(problem, arm, setting)
            cells.append(LabCell("") if row is None else _map_cell(row, part))
        rows.append(cells)
    title = "Held-out test data" if part == "test" else "Inputs beyond the range of training"
    columns = ["Problem", "multiplicativity", f"{REFERENCE.label}, %"]
    return LabTable(title, [*columns, *(arm.label for arm in arms)], rows)


def _map_cell(row: LabRow, part: str) -> LabCell:
    error = row.estimate(part)
    if error is None:
        return LabCell("diverged", kind="worse")
    if row.arm == REFERENCE:
        bounds = (
            error.interval and f"[{percent(error.interval.low)}, {percent(error.interval.high)}]"
        )
        return LabCell(percent(error.centre), bounds or "", full=f"rate {row.learning_rate:g}")
    ratio, outcome = row.ratio(part), row.outcome(part)
    adjusted = row.claims[part].adjusted
    p = "" if adjusted is None else f", p {write_p(adjusted)} after Holm"
    return LabCell(
        write_ratio(ratio),
        write_interval(ratio),
        outcome if outcome in ("better", "worse") else "",
        f"{percent(error.centre)} % unexplained, rate {row.learning_rate:g}{p}",
    )


def _rows_of(summary: LabSummary, arm: StudyArm, setting: Setting) -> list[LabRow]:
    return [row for row in summary.rows if row.arm == arm and row.setting == setting]


def to_markdown(table: LabTable) -> str:
    """Return a table as Markdown."""
    lines = [
        f"**{table.title}**",
        "",
        f"| {' | '.join(table.columns)} |",
        f"|{'---|' * len(table.columns)}",
    ]
    for row in table.rows:
        cells = []
        for cell in row:
            text = f"{cell.text} {cell.detail}".strip()
            cells.append(f"**{text}**" if cell.kind else text)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
