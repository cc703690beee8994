"""A probe study as files: probe.json with its tables, and probe.png."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor.analysis.probe_core import FitConfig, Probe, Study
from prism_motor.analysis.probe_data import Domain
from prism_motor.analysis.probe_figure import draw_probes
from prism_motor.analysis.probe_fit import SCORES, score
from prism_motor.analysis.probe_summary import (
    Gain,
    Leakage,
    Row,
    Summary,
    collect_gains,
    collect_rows,
    measure_leakage,
)
from prism_motor.analysis.style import STYLE, save_png
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.atomic import write_json

SCHEMA = 1
"""Version of the file; raised when its meaning changes."""

TITLE = "Linear probes of future mechanics"


@dataclass(frozen=True)
class Findings:
    """A study with everything that is shown of it."""

    study: Study
    config: FitConfig
    control_dt: float
    """Control step, s."""
    rows: list[Row]
    gains: list[Gain]
    leakage: Leakage

    @property
    def seeds(self) -> int:
        """Most training seeds of an arm."""
        return max(len(row.probes) for row in self.rows)


def collect_findings(study: Study, config: FitConfig, control_dt: float) -> Findings:
    """Work out all that is shown of a study."""
    rows = collect_rows(study)
    gains = collect_gains(rows, across=not config.own)
    return Findings(study, config, control_dt, rows, gains, measure_leakage(study))


def write_probes(
    findings: Findings,
    runs: Sequence[dict[str, Any]],
    sources: Sequence[Path],
    left_out: Sequence[str],
    folder: Path,
) -> list[Path]:
    """Write probe.json and probe.png; return their paths.

    Args:
        findings: The study.
        runs: About the policies that were probed.
        sources: Runs whose policies acted for the recording.
        left_out: A sentence about every run that was left out.
        folder: Where to.
    """
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    study = findings.study
    domain = study.domain
    file = folder / "probe.json"
    write_json(
        file,
        {
            "schema": SCHEMA,
            "title": TITLE,
            "caption": make_caption(findings),
            "table": make_table(findings.rows, domain),
            "gains_table": make_gain_table(findings.gains, domain),
            "leakage": {**asdict(findings.leakage), "text": str(findings.leakage)},
            "config": to_dict(findings.config),
            "targets": [asdict(target) for target in domain.targets],
            "windows": study.windows,
            "episodes": study.episodes,
            domain.units: study.units,
            "runs": list(runs),
            "recorded": [str(source) for source in sources],
            "left_out": list(left_out),
            "probes": [_record(probe, domain) for row in findings.rows for probe in row.probes],
            "gains": [_gain_record(one, domain) for one in findings.gains],
            "provenance": collect_provenance(),
        },
    )
    ahead = f"t+1..t+{findings.config.horizon}"
    subtitle = f"{ahead}, {study.units} {domain.units}, {study.windows} windows"
    with rc_context(STYLE):
        picture = save_png(draw_probes(findings.rows, domain, subtitle), folder / "probe.png")
    return [file, picture]


def make_table(rows: Sequence[Row], domain: Domain) -> dict[str, Any]:
    """Return the table of all scores: error with its interval, then r."""
    columns = ["arm", "features", "directions", *(target.label for target in domain.targets)]
    lines = []
    for row in rows:
        pairs = zip(row.scores["mse"], row.scores["r"], strict=True)
        cells = [f"{mse}, r {r.value:.2f}" for mse, r in pairs]
        lines.append([row.arm, row.features, str(row.probes[0].rank), *cells])
    return {"columns": columns, "rows": lines}


def make_gain_table(gains: Sequence[Gain], domain: Domain) -> dict[str, Any]:
    """Return the table of relative gains: error, then r, in per cent."""
    columns = ["relative change of error; of r, %", *(target.label for target in domain.targets)]
    lines = []
    for one in gains:
        pairs = zip(one.changes["mse"], one.changes["r"], strict=True)
        lines.append([one.title, *(f"{percent(mse)}; r {percent(r)}" for mse, r in pairs)])
    return {"columns": columns, "rows": lines}


def percent(change: Summary) -> str:
    """Write a relative change."""
    if change.seeds > 1:
        return f"{100 * change.value:+.1f} ± {100 * (change.high - change.value):.1f}"
    return f"{100 * change.value:+.1f} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"


def make_caption(findings: Findings) -> str:
    """Say what the numbers are."""
    study, config, seeds = findings.study, findings.config, findings.seeds
    unit, units = study.domain.unit, study.domain.units
    whose = "its own" if config.own else "the same for all arms"
    fair = (
        "Features with more directions can predict more: compare equal ones."
        if config.directions is None
        else f"Of every feature, up to {config.directions} principal directions are used."
    )
    ahead = config.horizon * findings.control_dt
    bars = (
        f"mean ± SD over training seeds (up to {seeds}); for an arm with one policy, the 95 % "
        f"bootstrap interval over {units}; gains between arms are over common training seeds"
        if seeds > 1
        else f"95 % bootstrap intervals over {units}; one policy an arm, so nothing here says how "
        "training seeds differ"
    )
    return (
        f"Least-squares probes of frozen features for the {config.horizon} control steps "
        f"({ahead:.2f} s) after t. {study.windows} {study.domain.windows}, {whose}, from "
        f"{config.origin(study)}. "
        f"Squared error in units of the target's variance, Pearson r; every {unit} is predicted by "
        f"probes that never saw it (5 parts). Values: {bars}. {fair}"
    )


def _record(probe: Probe, domain: Domain) -> dict[str, Any]:
    found = {}
    for i, target in enumerate(domain.targets):
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


def _gain_record(one: Gain, domain: Domain) -> dict[str, Any]:
    return {
        "arm": one.row.arm,
        "features": one.row.features,
        "base_arm": one.base.arm,
        "base_features": one.base.features,
        "targets": {
            target.name: {name: vars(values[i]) for name, values in one.changes.items()}
            for i, target in enumerate(domain.targets)
        },
    }
