"""index.html: the study on one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._figures import to_svg
from prism_motor._page import render_page
from prism_motor.studies.physics import figures
from prism_motor.studies.physics.config import TUNING_SEED, PhysicsConfig
from prism_motor.studies.physics.robot import JOINTS, TARGETS, signal_names
from prism_motor.studies.physics.summary import (
    PhysicsSummary,
    best_arm,
    percent,
    verdict,
    write_bounds,
)

if TYPE_CHECKING:
    from prism_motor.studies.physics.dataset import Dataset
    from prism_motor.studies.physics.results import PhysicsResults

_LISTED = 10
"""Number of products of two signals to list."""


def draw_pictures(
    config: PhysicsConfig,
    dataset: Dataset,
    results: PhysicsResults,
    summaries: Sequence[PhysicsSummary],
) -> dict[str, bytes]:
    """Return the figures of the page as SVG, by name; some need certain arms."""
    runs = [(s.arm, results.of_arm(s.arm.name)) for s in summaries]
    drawn = {target.name: figures.draw_target(target, summaries) for target in TARGETS}
    drawn["strobe"] = figures.draw_strobe(dataset, config.sample_seconds)
    drawn["curves"] = figures.draw_curves(runs)
    entries = {arm.name: (arm.label, found) for arm, found in runs}
    if {"mlp-matched", "prism"} <= entries.keys():
        predictions = {
            label: np.array(found[0]["trace"], dtype=float)
            for label, found in (entries["mlp-matched"], entries["prism"])
        }
        drawn["traces"] = figures.draw_traces(dataset, predictions, config.sample_seconds)
    if "prism" in entries:
        strength = np.mean([run["pair_strength"] for run in entries["prism"][1]], axis=0)
        drawn["pairs"] = figures.draw_pairs(strength)
    return {name: to_svg(figure) for name, figure in drawn.items()}


def render_physics(
    config: PhysicsConfig,
    results: PhysicsResults,
    summaries: Sequence[PhysicsSummary],
    pictures: Mapping[str, bytes],
    command: str,
) -> str:
    """Return the page as text.

    Args:
        config: What was run.
        results: All runs.
        summaries: One per arm.
        pictures: SVG by name, see :func:`draw_pictures`.
        command: The command that reproduces this page.
    """
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    return render_page(
        "physics.html",
        title="Physics from first-order signals",
        config=config,
        tuning_seed=TUNING_SEED,
        targets=[
            {
                "name": target.name,
                "label": target.label,
                "formula": target.formula,
                "definition": (target.compute.__doc__ or "").splitlines()[0],
            }
            for target in TARGETS
        ],
        colours={"mlp": figures.MLP, "prism": figures.PRISM, "other": figures.OTHER},
        findings=verdict(summaries),
        tables=[_table(summaries, name) for name in ("test", "extrapolation")],
        edges=[s.arm.label for s in summaries if s.at_edge],
        products=_products(results) if "pairs" in pictures else None,
        pictures=pictures,
        command=command,
        versions=versions,
        jobs=len(results.jobs),
        seconds=sum(job["seconds"] for job in results.jobs.values()) / len(results.jobs),
    )


def _table(summaries: Sequence[PhysicsSummary], dataset: str) -> list[dict[str, Any]]:
    """Return the rows of one table."""
    equal = [s for s in summaries if s.arm.budget_scale == 1.0]
    best = {t.name: best_arm(equal or summaries, dataset, t.name) for t in TARGETS}
    rows = []
    for s in summaries:
        cells = []
        for target in TARGETS:
            found = s.estimate(dataset, target.name)
            cells.append(
                {
                    "best": best[target.name] is s,
                    "text": "diverged" if found is None else percent(found.centre),
                    "detail": "" if found is None else write_bounds(found),
                }
            )
        rows.append({"summary": s, "cells": cells, "equal": s.arm.budget_scale == 1.0})
    return rows


def _products(results: PhysicsResults) -> dict[str, Any]:
    """Return what PRISM of degree 2 found: the strongest products of two signals."""
    runs = results.of_arm("prism")
    strength = np.mean([run["pair_strength"] for run in runs], axis=0)
    names = signal_names()
    ranked = sorted(
        ((strength[i, j], names[i], names[j]) for i in range(len(names)) for j in range(i + 1)),
        reverse=True,
    )[:_LISTED]
    return {
        "seeds": len(runs),
        "strongest": [(a, b, value / ranked[0][0]) for value, a, b in ranked],
        "power_ranks": _power_ranks(strength),
        "pairs": len(names) * (len(names) + 1) // 2,
        "features": [
            f"{product['coefficient']:+.2f} {' · '.join(product['inputs'])} "
            f"(share {product['share']:.0%})"
            for product in runs[0]["products"][:6]
        ],
    }


def _power_ranks(strength: np.ndarray) -> list[int]:
    """Return the ranks of each joint's torque times velocity among all pairs."""
    joints = len(JOINTS)
    every = strength[np.tril_indices(len(strength))]
    powers = (strength[2 * joints + i, joints + i] for i in range(joints))
    return sorted(1 + int((every > power).sum()) for power in powers)
