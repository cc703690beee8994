"""What probes found: tables, caption, figure and the data for the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._figures import BAND, INK, PALE, new_figure
from prism_motor.analysis.probe.fit import SCORES, score
from prism_motor.analysis.probe.probes import (
    ANY_ARM,
    UNTRAINED,
    Probe,
    ProbeConfig,
    ProbeSet,
    ProbeSubjects,
    ProbeTargets,
)
from prism_motor.analysis.probe.summary import (
    ProbeGain,
    ProbeRow,
    collect_gains,
    collect_rows,
    feature_rank,
    measure_leakage,
)
from prism_motor.analysis.study import Finding, ResultTable
from prism_motor.arms import arm_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_motor.analysis.subjects import ArmMean

_LABELS = {
    "raw": "raw observation",
    "first_order": "first-order latent",
    "polynomial": "polynomial latent",
    "conditioner": "conditioner output",
}
"""What figures call features."""

_PANELS = 3
"""Most panels side by side."""


def make_finding(
    found: ProbeSet, config: ProbeConfig, who: ProbeSubjects, control_dt: float
) -> Finding:
    """Return everything that is shown and stored about probes.

    Args:
        found: The probes.
        config: How they were made.
        who: The policies.
        control_dt: Control step, s.
    """
    rows = collect_rows(found)
    gains = collect_gains(rows, across=not config.own)
    leakage = measure_leakage(found)
    scope = found.scope
    ahead = f"t+1..t+{config.horizon}"
    subtitle = f"{ahead}, {found.units} {scope.units}, {found.windows} windows"
    return Finding(
        title="Linear probes of future mechanics",
        caption=_caption(found, config, rows, control_dt),
        tables={"": _score_table(rows, scope), "gains": _gain_table(gains, scope)},
        screen=_screen(rows, gains, scope),
        notes=[str(leakage)],
        figures={"probe": lambda: draw_probes(rows, scope, subtitle)},
        data={
            "leakage": {**asdict(leakage), "text": str(leakage)},
            "targets": [asdict(target) for target in scope.targets],
            "windows": found.windows,
            "episodes": found.episodes,
            scope.units: found.units,
            "runs": [one.about for one in who.probed],
            "recorded": [str(one.path) for one in who.acting],
            "probes": [_record(probe, scope) for row in rows for probe in row.probes],
            "gains": [_gain_record(one, scope) for one in gains],
        },
    )


def _score_table(rows: Sequence[ProbeRow], scope: ProbeTargets) -> ResultTable:
    """Return the table of all scores: error with its interval, then r."""
    lines = []
    for row in rows:
        pairs = zip(row.scores["mse"], row.scores["r"], strict=True)
        cells = [f"{mse.write(3)}, r {r.value:.2f}" for mse, r in pairs]
        lines.append([row.arm, row.features, str(row.probes[0].rank), *cells])
    return ResultTable(["arm", "features", "directions", *_titles(scope)], lines)


def _gain_table(gains: Sequence[ProbeGain], scope: ProbeTargets) -> ResultTable:
    """Return the table of relative gains: error, then r, in per cent."""
    lines = []
    for one in gains:
        pairs = zip(one.changes["mse"], one.changes["r"], strict=True)
        lines.append([one.title, *(f"{_percent(mse)}; r {_percent(r)}" for mse, r in pairs)])
    return ResultTable(["relative change of error; of r, %", *_titles(scope)], lines)


def _screen(
    rows: Sequence[ProbeRow], gains: Sequence[ProbeGain], scope: ProbeTargets
) -> dict[str, ResultTable]:
    """Return both tables without the scores' intervals, which are too wide for a terminal."""
    lines = []
    for row in rows:
        pairs = zip(row.scores["mse"], row.scores["r"], strict=True)
        cells = [f"{mse.value:.3f} ({r.value:.2f})" for mse, r in pairs]
        lines.append([f"{row.arm}: {row.features}", str(row.probes[0].rank), *cells])
    changes = [[one.title, *map(_percent, one.changes["mse"])] for one in gains]
    return {
        "squared error / variance (Pearson r)": ResultTable(
            ["", "directions", *_titles(scope)], lines
        ),
        "relative change of the squared error, %": ResultTable(["", *_titles(scope)], changes),
    }


def _titles(scope: ProbeTargets) -> list[str]:
    return [target.label for target in scope.targets]


def _percent(change: ArmMean) -> str:
    return change.write(1, scale=100, sign="+")


def _caption(
    found: ProbeSet, config: ProbeConfig, rows: Sequence[ProbeRow], control_dt: float
) -> str:
    """Explain the numbers."""
    seeds = max(len(row.probes) for row in rows)
    unit, units = found.scope.unit, found.scope.units
    whose = "its own" if config.own else "the same for all arms"
    fair = (
        "Features with more directions can predict more: compare features of equal size."
        if config.directions is None
        else f"Of every feature, up to {config.directions} principal directions are used."
    )
    bars = (
        f"mean ± SD over training seeds (up to {seeds}); for an arm with one policy, the 95 % "
        f"bootstrap interval over {units}; gains between arms are over common training seeds"
        if seeds > 1
        else f"95 % bootstrap intervals over {units}; one policy per arm, so nothing here says how "
        "training seeds differ"
    )
    return (
        f"Least-squares probes of frozen features for the {config.horizon} control steps "
        f"({config.horizon * control_dt:.2f} s) after t. {found.windows} {found.scope.windows}, "
        f"{whose}, from {config.origin(found)}. "
        f"Squared error in units of the target's variance, Pearson r; every {unit} is predicted by "
        f"probes that never saw it (5 parts). Values: {bars}. {fair}"
    )


def _record(probe: Probe, scope: ProbeTargets) -> dict[str, Any]:
    found = {}
    for i, target in enumerate(scope.targets):
        scores = {name: vars(score(probe.sums[:, i], name)) for name in SCORES}
        leaky = SCORES["mse"](np.sum(probe.leaky_sums[:, i], axis=0))
        found[target.name] = {**scores, "random_split_mse": float(leaky)}
    return {
        "arm": probe.arm,
        "training_seed": probe.training_seed,
        "features": probe.features,
        "width": probe.width,
        "rank": probe.rank,
        "targets": found,
    }


def _gain_record(one: ProbeGain, scope: ProbeTargets) -> dict[str, Any]:
    return {
        "arm": one.row.arm,
        "features": one.row.features,
        "base_arm": one.base.arm,
        "base_features": one.base.features,
        "targets": {
            target.name: {name: vars(values[i]) for name, values in one.changes.items()}
            for i, target in enumerate(scope.targets)
        },
    }


def draw_probes(rows: Sequence[ProbeRow], scope: ProbeTargets, subtitle: str) -> Figure:
    """Draw the error of every feature and arm, one panel per target."""
    features = sorted({row.features for row in rows}, key=feature_rank)
    arms = [arm for arm in dict.fromkeys(row.arm for row in rows) if arm != ANY_ARM]
    colours = arm_colours(arm for arm in arms if not arm.endswith(UNTRAINED))
    colours |= {arm: colours[arm.removesuffix(UNTRAINED)] for arm in arms}
    across = min(_PANELS, len(scope.targets))
    down = -(-len(scope.targets) // across)
    height = 1.5 + down * (0.6 + len(features) * max(0.28, 0.1 * len(arms) + 0.06))
    figure = new_figure(10.5, height)
    axes = figure.subplots(down, across, sharey=True, squeeze=False)
    for spare in axes.flat[len(scope.targets) :]:
        spare.set_axis_off()
    for axis, (index, target) in zip(axes.flat, enumerate(scope.targets), strict=False):
        for row in rows:
            _mark(axis, row, index, features.index(row.features), arms, colours)
        for place in range(0, len(features), 2):
            axis.axhspan(place - 0.5, place + 0.5, color=BAND, lw=0, zorder=0)
        axis.set_title(target.label)
        axis.set_xlim(left=0.0)
        axis.grid(axis="x", color=PALE, lw=0.8)
        axis.tick_params(axis="y", length=0)
    labels = [_LABELS.get(name, name.replace("_", " layer ")) for name in features]
    axes[0, 0].set_yticks(range(len(features)), labels)
    axes[0, 0].set_ylim(len(features) - 0.5, -0.5)
    bars = f"bars: 95 % over {scope.units}"
    if any(len(row.probes) > 1 for row in rows):
        bars = f"bars: SD over training seeds, or 95 % over {scope.units} where there is one seed"
    # Above all panels, because a single panel is too narrow for it.
    figure.suptitle(
        f"How well future mechanics can be read linearly   ({subtitle})\n"
        f"squared error / variance on held-out {scope.units}, lower is better; {bars}",
        fontsize=10,
    )
    handles = [_handle(colours[arm], arm) for arm in arms]
    columns = min(6, len(arms))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _mark(
    axis: Axes, row: ProbeRow, target: int, place: int, arms: list[str], colours: dict[str, str]
) -> None:
    found = row.scores["mse"][target]
    shift = 0.0
    if row.arm != ANY_ARM:
        shift = 0.9 * ((arms.index(row.arm) + 0.5) / len(arms) - 0.5)
    colour = colours.get(row.arm, INK)
    fill = "white" if row.arm.endswith(UNTRAINED) else colour
    axis.plot(found.bounds, [place + shift] * 2, color=colour, lw=1.6, zorder=2)
    axis.plot(found.value, place + shift, "o", ms=5, color=colour, mfc=fill, mew=1.3, zorder=3)
    if row.arm == ANY_ARM:
        axis.axvline(found.value, color=INK, lw=0.8, ls=":", zorder=1)


def _handle(colour: str, arm: str) -> object:
    from matplotlib.lines import Line2D

    fill = "white" if arm.endswith(UNTRAINED) else colour
    return Line2D([], [], color=colour, marker="o", ms=5, mfc=fill, lw=1.6, label=arm)
