"""Traces as files: traces.json, tracking.png and mechanics.png."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._errors import InputError
from prism_motor.analysis.style import STYLE, save_png
from prism_motor.analysis.traces import ERRORS, MECHANICS, VELOCITIES, Trace, TraceConfig
from prism_motor.analysis.traces_figures import by_arm, draw_mechanics, draw_tracking
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.atomic import write_json
from prism_motor.sim.robots import make_robot
from prism_motor.statistics import estimate

SCHEMA = 1
"""Version of the file; raised when its meaning changes."""

TITLE = "Traces on the same commands"

_COLUMNS = {
    "tracking_error": ("linear error, m/s", 3),
    "yaw_error": ("yaw error, rad/s", 3),
    "joint_power": ("joint power, W", 1),
    "slip_velocity": ("slip, m/s", 3),
    "normal_force": ("normal force, N", 0),
    "contact_power": ("contact power, W", 1),
}
"""Means in the table: quantity, title and digits."""


@dataclass(frozen=True)
class Detail:
    """The few steps whose mechanics are drawn."""

    start: float = 4.0
    """From when, s."""
    end: float = 6.0
    """To when, s."""

    def check(self, seconds: float) -> None:
        """Refuse times that are not in a script of some length."""
        if not 0 <= self.start < self.end <= seconds:
            raise InputError(
                f"Traces: the detail must begin before it ends and lie within the script's "
                f"{seconds:g} s, got {self.start:g} to {self.end:g} s."
            )


def write_traces(
    traces: Sequence[Trace],
    config: TraceConfig,
    detail: Detail,
    left_out: Sequence[str],
    folder: Path,
) -> list[Path]:
    """Write everything and return the paths.

    Args:
        traces: One per policy.
        config: How they were recorded.
        detail: The few steps whose mechanics are drawn and kept step by step.
        left_out: A sentence about every run that was left out.
        folder: Where to.
    """
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    foot = make_robot(traces[0].subject.policy.config.task.robot).feet[0]
    file = folder / "traces.json"
    write_json(
        file,
        {
            "schema": SCHEMA,
            "title": TITLE,
            "caption": make_caption(traces, config),
            "table": make_table(traces),
            "config": to_dict(config),
            "left_out": list(left_out),
            "runs": [{**trace.subject.about, **_record(trace, detail, foot)} for trace in traces],
            "provenance": collect_provenance(),
        },
    )
    with rc_context(STYLE):
        tracking = save_png(draw_tracking(traces), folder / "tracking.png")
        figure = draw_mechanics(traces, (detail.start, detail.end), foot)
        mechanics = save_png(figure, folder / "mechanics.png")
    return [file, tracking, mechanics]


def make_table(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return means along the script by arm."""
    rows = []
    for arm, group in by_arm(traces).items():
        fallen, robots = sum(t.fallen for t in group), sum(t.robots for t in group)
        cells = [_cell([t.mean(name) for t in group], d) for name, (_, d) in _COLUMNS.items()]
        rows.append([arm, str(len(group)), f"{fallen} of {robots}", *cells])
    titles = [title for title, _ in _COLUMNS.values()]
    return {"columns": ["arm", "policies", "robots fallen", *titles], "rows": rows}


def _cell(values: list[float], digits: int) -> str:
    found = estimate(values)
    spread = "" if found.sd is None else f" ± {found.sd:.{digits}f}"
    return f"{found.centre:.{digits}f}{spread}"


def make_caption(traces: Sequence[Trace], config: TraceConfig) -> str:
    """Say what the numbers are."""
    seeds = max(len(group) for group in by_arm(traces).values())
    spread = (
        f"± is the SD over up to {seeds} training seeds"
        if seeds > 1
        else "one policy an arm, so nothing here says how training seeds differ"
    )
    return (
        f"Means over {config.envs} robots a policy and {config.script.seconds:g} s of the same "
        f"commands from the same initial states (condition {config.condition}, seed "
        f"{config.seed}), up to a fall; {spread}. Slip and contact power are of foot frames in "
        "contact, contact power is force times velocity, negative where the ground brakes."
    )


def _record(trace: Trace, detail: Detail, foot: str) -> dict[str, Any]:
    shown = (trace.time >= detail.start) & (trace.time <= detail.end)
    names = (*MECHANICS, f"foot_impulse_{foot}", *VELOCITIES.values())
    steps = {name: _plain(trace.quantities[name][0][shown]) for name in names}
    smooth = {
        name: {
            "mean": _plain(_quietly(np.nanmean, trace.smooth(name))),
            "low": _plain(_quietly(np.nanquantile, trace.smooth(name), 0.1)),
            "high": _plain(_quietly(np.nanquantile, trace.smooth(name), 0.9)),
        }
        for name in VELOCITIES.values()
    }
    return {
        "robots": trace.robots,
        "fallen": trace.fallen,
        "means": {name: trace.mean(name) for name in (*ERRORS, *MECHANICS, "normal_force")},
        "time": _plain(trace.time),
        "commands": {name: _plain(trace.commands[:, i]) for i, name in enumerate(VELOCITIES)},
        "velocities": smooth,
        "detail": {"time": _plain(trace.time[shown]), **steps},
    }


def _quietly(function: Any, values: np.ndarray, *options: float) -> np.ndarray:
    """Reduce over robots; times when none is left give NaN."""
    found = np.full(values.shape[1], np.nan)
    alive = np.isfinite(values).any(0)
    found[alive] = function(values[:, alive], *options, axis=0)
    return found


def _plain(values: np.ndarray) -> list[float | None]:
    """Return numbers for JSON, short, with ``None`` where there is none."""
    return [round(float(v), 5) if np.isfinite(v) else None for v in values]
