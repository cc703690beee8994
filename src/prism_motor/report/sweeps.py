"""The tuning before a campaign's runs, as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from prism_motor.report.cells import Cell, Table, blank
from prism_motor.report.records import Plan

RESULTS = "tuning.json"
"""The sweep and its winners, in a campaign's folder."""


def sweep_tables(plans: Sequence[Plan]) -> list[Table]:
    """Return one table a campaign that tuned its arms."""
    tables = []
    for plan in plans:
        try:
            tables.append(_table(json.loads((plan.folder / RESULTS).read_text())))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # no tuning, or of another version
    return tables


def _table(data: dict[str, Any]) -> Table:
    rows = []
    for name, arm in data["arms"].items():
        for tried in arm["settings"]:
            score, chosen = tried["score"], tried["setting"] == arm["chosen"]
            setting = ", ".join(
                f"{key.rpartition('.')[2]} {value}" for key, value in tried["setting"].items()
            )
            number = blank() if score is None else Cell(f"{score:.2f}")
            rows.append((Cell(name), Cell(setting), number, Cell("chosen" if chosen else "")))
    seeds = ", ".join(map(str, data["seeds"]))
    return Table(
        "Tuning before the comparison",
        ("arm", "setting", "score", ""),
        tuple(rows),
        f"Every arm got {data['runs_per_arm']} runs of {100 * data['fraction']:.0f} % of the "
        f"length, on training seeds {seeds} that are not reported. Score: {data['criterion']}.",
    )
