"""Contacts as files: contact.json with its tables, and contact.png."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor.analysis.contact_figure import draw_contacts
from prism_motor.analysis.contact_records import Episode, Record, aligned, by_arm, measure
from prism_motor.analysis.contact_study import ContactConfig
from prism_motor.analysis.style import STYLE, save_png
from prism_motor.manipulation.contact import AFTER, BEFORE, THRESHOLD
from prism_motor.manipulation.tasks import Task
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.atomic import write_json
from prism_motor.statistics import wilson

SCHEMA = 1
"""Version of the file; raised when its meaning changes."""

TITLE = "Force and speed at first contact"

_COLUMNS = {
    "window_peak_force": (f"peak force, {AFTER} steps, N", 1),
    "peak_force": ("peak force, N", 1),
    "impulse": ("impulse, N s", 1),
    "work": ("work, J", 2),
    "mean_power": ("contact power, W", 2),
    "approach_speed": ("speed before, m/s", 3),
    "yielding_speed": ("speed after, m/s", 3),
}
"""Numbers in the tables: title and digits."""


def write_contacts(
    records: Sequence[Record],
    task: Task,
    config: ContactConfig,
    left_out: Sequence[str],
    folder: Path,
) -> list[Path]:
    """Write everything and return the paths.

    Args:
        records: One per policy.
        task: What they did.
        config: How they were recorded.
        left_out: A sentence about every run that was left out.
        folder: Where to.
    """
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "contact.json"
    write_json(
        file,
        {
            "schema": SCHEMA,
            "title": TITLE,
            "caption": make_caption(records, task, config),
            "table": make_table(records, successful=False),
            "successful_table": make_table(records, successful=True),
            "config": to_dict(config),
            "task": asdict(task),
            "left_out": list(left_out),
            "runs": [_record(record) for record in records],
            "provenance": collect_provenance(),
        },
    )
    with rc_context(STYLE):
        figure = draw_contacts(records, f"“{task.instruction}”: force and speed at first contact")
        picture = save_png(figure, folder / "contact.png")
    return [file, picture]


def make_table(records: Sequence[Record], *, successful: bool) -> dict[str, Any]:
    """Return the numbers by arm, of all episodes with contact or of the successful ones alone."""
    rows = []
    for arm, group in by_arm(records).items():
        episodes = [one for record in group for one in record.episodes]
        solved = sum(one.outcome.success for one in episodes)
        counted = [one for one in episodes if one.outcome.success or not successful]
        touched = sum(one.contact is not None for one in counted)
        rate = wilson(solved, len(episodes))
        success = (
            f"{100 * solved / len(episodes):.0f} [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
        )
        cells = []
        for name, (_, digits) in _COLUMNS.items():
            found = measure(group, name, successful=successful)
            cells.append("–" if found is None else found.write(digits))
        rows.append([arm, str(len(group)), success, f"{touched} of {len(counted)}", *cells])
    titles = [title for title, _ in _COLUMNS.values()]
    return {"columns": ["arm", "policies", "success, %", "with contact", *titles], "rows": rows}


def make_caption(records: Sequence[Record], task: Task, config: ContactConfig) -> str:
    """Say what the numbers are."""
    seeds = max(len(group) for group in by_arm(records).values())
    spread = (
        f"± is the SD over up to {seeds} training seeds"
        if seeds > 1
        else "brackets are 95 % bootstrap intervals over episodes of one policy an arm, so nothing "
        "here says how training seeds differ"
    )
    dt = records[0].episodes[0].trace.control_seconds
    soft = "" if config.stiffness is None else f" with Kp {config.stiffness:g} for all arms"
    return (
        f"{task.key}, “{task.instruction}”, {config.episodes} fixed initial states a policy{soft}. "
        f"Force is the largest on any one body of the hand; first contact is the first step with "
        f"{THRESHOLD:g} N or more. Impulse (sum F dt), work (sum F |dx|), contact power (mean F "
        f"|v|) and peak force run from there to {config.linger} steps after success, or to the "
        f"horizon; the peak over {AFTER} steps and the speeds over {BEFORE} steps before and "
        f"{AFTER} after ({BEFORE * dt:g} s) do not depend on how long an episode lasts. Work and "
        f"power use norms, so they are upper bounds. Means over episodes with contact; {spread}."
    )


def _record(record: Record) -> dict[str, Any]:
    return {
        **record.about,
        "arm": record.arm,
        "episodes": [_episode(one) for one in record.episodes],
        "aligned": {
            "time": [
                round(step * record.episodes[0].trace.control_seconds, 6)
                for step in range(-BEFORE, AFTER + 1)
            ],
            "force": _plain(aligned([record], "largest_force")),
            "speed": _plain(aligned([record], "speed")),
        },
    }


def _episode(one: Episode) -> dict[str, Any]:
    contact = None if one.contact is None else asdict(one.contact)
    return {"initial_state": one.initial_state, **asdict(one.outcome), "contact": contact}


def _plain(values: np.ndarray) -> list[list[float | None]]:
    """Return numbers for JSON, short, with ``None`` outside an episode."""
    return [[round(float(v), 4) if np.isfinite(v) else None for v in row] for row in values]
