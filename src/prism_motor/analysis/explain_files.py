"""An explanation as a file and as a table."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from prism_motor.analysis.explain_figures import (
    draw_curve,
    draw_firing,
    draw_groups,
)
from prism_motor.analysis.explanation import Explanation
from prism_motor.analysis.groups import PAIRS
from prism_motor.analysis.names import GROUPS
from prism_motor.analysis.style import STYLE, save_png
from prism_motor.locomotion.summary import Summary
from prism_motor.runs import to_dict
from prism_motor.runs.atomic import write_json

SCHEMA = 1
"""Version of the file; raised when its meaning changes."""

_COLUMNS = (
    "learned product",
    "role",
    "joint moved most",
    "L2 change, rad",
    "95 % interval",
    "mean |change|, rad",
    "named, %",
)


def write_explanation(explanation: Explanation, folder: Path) -> list[Path]:
    """Write explain.json and its figures; returns their paths."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "explain.json"
    write_json(file, to_json(explanation))
    files = [file]
    with rc_context(STYLE):
        for name, draw in (
            ("groups", draw_groups),
            ("firing", draw_firing),
            ("removal", draw_curve),
        ):
            files.append(save_png(draw(explanation), folder / f"{name}.png"))
    return files


def table(explanation: Explanation) -> dict[str, Any]:
    """Return the strongest products as columns and rows of text."""
    rows = [
        [
            str(entry.product),
            entry.product.role,
            entry.joint,
            f"{entry.effect.distance:.4f}",
            "" if entry.interval is None else "[{:.4f}, {:.4f}]".format(*entry.interval),
            f"{entry.effect.absolute:.4f}",
            f"{100 * entry.product.share:.0f}",
        ]
        for entry in explanation.products[: explanation.config.top]
    ]
    return {"columns": list(_COLUMNS), "rows": rows}


def closed_loop_table(found: dict[str, Summary]) -> dict[str, Any]:
    """Return how the robots walk without products as columns and rows of text."""
    columns = ["closed loop", "walked to the end", "95 % interval"]
    columns += ["linear error, m/s", "yaw error, rad/s"]
    rows = []
    for title, summary in found.items():
        low, high = summary.interval
        errors = (summary.spreads[name].mean for name in ("linear_error", "yaw_error"))
        rows.append(
            [
                title,
                f"{summary.survived} of {summary.episodes}",
                f"[{100 * low:.0f} %, {100 * high:.0f} %]",
                *(f"{error:.3f}" for error in errors),
            ]
        )
    return {"columns": columns, "rows": rows}


def title_of(explanation: Explanation) -> str:
    """Name the policy."""
    about = explanation.about
    return (
        f"Learned products of {about['arm']} ({about['preset']}, training seed "
        f"{about['training_seed']}, update {about['checkpoint']})"
    )


def caption_of(explanation: Explanation) -> str:
    """Say what the table shows, and how much the products matter at all."""
    config, removed, linear = explanation.config, explanation.removed, explanation.linear
    return (
        "Change of the joint target when one product is removed, on states of "
        f"{config.envs} robots ({config.condition}); the interval is over robots of this one "
        "policy. A product is named by the input with the largest weight of each factor, per "
        "standard deviation of the input; the last column says how much of the weight the names "
        f"stand for. All {len(explanation.products)} products removed at once move the target by "
        f"{removed.distance:.3f} rad, which is {100 * removed.variance_share:.1f} % of its "
        "variance. With a linear map of the observation in their place, fitted on other robots, "
        f"{100 * linear.variance_share:.2f} % of the variance remains unexplained."
    )


def to_json(explanation: Explanation) -> dict[str, Any]:
    """Return everything as plain data."""
    walked = explanation.closed_loop
    return {
        "schema": SCHEMA,
        "title": title_of(explanation),
        "caption": caption_of(explanation),
        "table": table(explanation),
        "config": to_dict(explanation.config),
        "about": explanation.about,
        "target_spread_rad": explanation.target_spread,
        "all_removed": asdict(explanation.removed),
        "all_linear": asdict(explanation.linear),
        "gates": _gates(explanation.gates),
        "products": [
            {
                "feature": entry.product.feature,
                "inputs": [name.key for name in entry.product.inputs],
                "name": str(entry.product),
                "role": entry.product.role,
                "share": entry.product.share,
                "strength": entry.product.strength,
                "joint": entry.joint,
                **asdict(entry.effect),
                "interval": entry.interval,
            }
            for entry in explanation.products
        ],
        "removal_curve": asdict(explanation.curve),
        "groups": {
            "names": list(GROUPS),
            "effect_rad": _triangle(explanation.groups.effect),
            "strength_rad": _triangle(explanation.groups.strength),
            "concentration": _triangle(explanation.groups.concentration),
            "beyond_pairs_rad": explanation.groups.beyond,
        },
        "firing": {
            "seconds": explanation.firing.seconds.tolist(),
            "contacts": {foot: on.tolist() for foot, on in explanation.firing.contacts.items()},
            "traces": [
                {
                    "name": str(trace.product),
                    "feature": trace.product.feature,
                    "joint": trace.joint,
                    "change_rad": trace.change.tolist(),
                }
                for trace in explanation.firing.traces
            ],
        },
        "closed_loop": walked and {title: _walking(one) for title, one in walked.items()},
        "closed_loop_table": walked and closed_loop_table(walked),
    }


def _gates(gates: tuple[Tensor, float] | None) -> dict[str, Any] | None:
    """Say how far the gates went from where they started."""
    if gates is None:
        return None
    values, start = gates
    moved = (values - start).abs()
    return {
        "start": start,
        "values": values.tolist(),
        "mean_absolute": float(values.abs().mean()),
        "mean_moved": float(moved.mean()),
        "most_moved": float(moved.max()),
        "share_negative": float((values < 0).float().mean()),
    }


def _triangle(values: Tensor) -> list[list[float | None]]:
    """Return the lower triangle of a symmetric table, row by row; NaN becomes ``None``."""
    rows: list[list[float | None]] = [[] for _ in GROUPS]
    for row, column in PAIRS:
        value = float(values[row, column])
        rows[row].append(value if math.isfinite(value) else None)
    return rows


def _walking(summary: Summary) -> dict[str, Any]:
    return {
        "episodes": summary.episodes,
        "survived": summary.survived,
        "survival_interval": summary.interval,
        **{name: asdict(spread) for name, spread in summary.spreads.items()},
    }
