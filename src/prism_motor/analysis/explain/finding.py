"""An explanation as tables, caption, figures and plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from torch import Tensor

from prism_motor.analysis.explain.figures import draw_curve, draw_firing, draw_groups
from prism_motor.analysis.explain.groups import PAIRS
from prism_motor.analysis.explain.names import GROUPS
from prism_motor.analysis.study import Finding, ResultTable

if TYPE_CHECKING:
    from prism_motor.analysis.explain.closed_loop import WalkSummary
    from prism_motor.analysis.explain.effects import ProductEffect
    from prism_motor.analysis.explain.explanation import Explanation

_COLUMNS = (
    "learned product",
    "role",
    "joint moved most",
    "L2 change, rad",
    "95 % interval",
    "mean |change|, rad",
    "named, %",
)


def make_finding(explanation: Explanation) -> Finding:
    """Return everything that is shown and stored about an explanation."""
    tables = {"": product_table(explanation.products, explanation.config.top)}
    if explanation.closed_loop is not None:
        tables["closed_loop"] = closed_loop_table(explanation.closed_loop)
    return Finding(
        title=_title(explanation),
        caption=_caption(explanation),
        tables=tables,
        notes=describe_gates(explanation.gates),
        data=_data(explanation),
        figures={
            "groups": lambda: draw_groups(explanation),
            "firing": lambda: draw_firing(explanation),
            "removal": lambda: draw_curve(explanation.curve, explanation.gates),
        },
    )


def product_table(products: Sequence[ProductEffect], top: int) -> ResultTable:
    """Return the strongest products."""
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
        for entry in products[:top]
    ]
    return ResultTable(_COLUMNS, rows)


def closed_loop_table(found: dict[str, WalkSummary]) -> ResultTable:
    """Return how the robots walk without products."""
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
    return ResultTable(columns, rows)


def _title(explanation: Explanation) -> str:
    """Name the policy."""
    about = explanation.about
    return (
        f"Learned products of {about['arm']} ({about['preset']}, training seed "
        f"{about['training_seed']}, update {about['checkpoint']})"
    )


def _caption(explanation: Explanation) -> str:
    """Explain the table, and how much the products matter at all."""
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


def describe_gates(gates: tuple[Tensor, float] | None) -> list[str]:
    """Describe how large the gates are now."""
    if gates is None:
        return []
    values, start = gates
    low, middle, high = values.abs().quantile(values.new_tensor([0.1, 0.5, 0.9])).tolist()
    return [
        f"Gates started at {start:g}; 10 %, 50 % and 90 % of their sizes are now below {low:.3f}, "
        f"{middle:.3f}, {high:.3f}."
    ]


def _data(explanation: Explanation) -> dict[str, Any]:
    """Return all numbers as plain data."""
    walked = explanation.closed_loop
    return {
        "about": explanation.about,
        "target_spread_rad": explanation.target_spread,
        "all_removed": asdict(explanation.removed),
        "all_linear": asdict(explanation.linear),
        "gates": _gates(explanation.gates),
        "products": [record_product(entry) for entry in explanation.products],
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
    }


def record_product(entry: ProductEffect) -> dict[str, Any]:
    """Return a product and its effect as plain data."""
    return {
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


def _gates(gates: tuple[Tensor, float] | None) -> dict[str, Any] | None:
    """Return how far the gates moved from where they started."""
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


def _walking(summary: WalkSummary) -> dict[str, Any]:
    return {
        "episodes": summary.episodes,
        "survived": summary.survived,
        "survival_interval": summary.interval,
        **{name: asdict(spread) for name, spread in summary.spreads.items()},
    }
