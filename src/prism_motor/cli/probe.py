"""``prism probe``: what can be read linearly from the features of trained policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from prism_motor._errors import InputError

if TYPE_CHECKING:
    from prism_motor.analysis.probe_files import Findings


def probe(
    runs: Positional[tuple[Path, ...]],
    out: Path | None = None,
    reference: Path | None = None,
    own: bool = False,
    untrained: bool = False,
    directions: int | None = None,
    condition: str | None = None,
    horizon: int = 5,
    envs: int | None = None,
    seconds: float | None = None,
    episodes: int | None = None,
    seed: int = 201,
    checkpoint: int | None = None,
    threads: int = 1,
) -> None:
    """Probe frozen features for the mechanics of the next control steps.

    Walking policies are probed for slip, power, impulse and errors, policies that learned from
    demonstrations for contact impulse and contact work. All networks see the same observations, to
    which every policy contributes equally, so that targets are the same for all. Robots, or
    episodes, are held out whole. Gains are relative to the first run. Writes probe.json and
    probe.png.

    Args:
        runs: Run folders, of any number of arms and training seeds; the first decides whether they
            walk or handle things.
        out: Where to write; default: FIRST RUN/analysis/probe.
        reference: Run whose policy alone acts for all.
        own: Probe every policy on the states of its own rollouts instead.
        untrained: Also probe every network with random weights, as a control.
        directions: Use only so many principal directions of every feature, so that wide ones have
            no advantage.
        condition: Walking: one of nominal, low-friction, payload, pushes (every second, default),
            training.
        horizon: Control steps that targets look ahead.
        envs: Walking: robots, default 96; of each policy with --own, of all together without.
        seconds: Walking: how long they walk, default 8.
        episodes: Manipulation: random resets, default 40; of each policy or of all, like --envs.
        seed: Seed of rollouts and held-out parts.
        checkpoint: Which checkpoint; default: the newest.
        threads: Threads of the simulation, or of a manipulation policy.
    """
    from prism_motor.analysis.manipulators import is_manipulation
    from prism_motor.analysis.probe_files import write_probes
    from prism_motor.analysis.style import check_matplotlib
    from prism_motor.cli._shipped import writable

    check_matplotlib("prism probe")
    if reference is not None and own:
        raise InputError("Give either --reference or --own: one policy acts for all, or each.")
    if not runs:
        raise InputError("Give at least one run folder.")
    common = {
        "own": own,
        "horizon": horizon,
        "seed": seed,
        "untrained": untrained,
        "directions": directions,
    }
    folder = out or writable(runs[0]) / "analysis" / "probe"
    walking = {"condition": condition, "envs": envs, "seconds": seconds}
    if is_manipulation(runs[0]):
        _refuse(walking, "for walking, and the first run handles things: use --episodes")
        common |= {} if episodes is None else {"episodes": episodes}
        study = _probe_contact(runs, reference, checkpoint, threads, common)
    else:
        _refuse({"episodes": episodes}, "for manipulation, and the first run walks: use --envs")
        common |= {name: value for name, value in walking.items() if value is not None}
        study = _probe_walking(runs, reference, checkpoint, {**common, "threads": threads})
    files = write_probes(*study, folder)
    _show(study[0])
    print("\n" + "\n".join(map(str, files)))


_Result = tuple["Findings", list[dict[str, Any]], list[Path], list[str]]
"""Findings, what the policies are, whose rollouts were used, and what was left out."""


def _refuse(options: dict[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} is {why}.")


def _probe_walking(
    runs: tuple[Path, ...],
    reference: Path | None,
    checkpoint: int | None,
    options: dict[str, Any],
) -> _Result:
    from prism_motor._progress import Progress
    from prism_motor.analysis.probe_files import collect_findings
    from prism_motor.analysis.probe_study import ProbeConfig, count_work, run_study
    from prism_motor.analysis.subjects import load_subjects, same_layout

    config = ProbeConfig(**options)
    subjects, left_out = load_subjects(runs, checkpoint)
    walkers = load_subjects([reference])[0] if reference else []
    if not config.own:
        subjects, differing = same_layout(subjects, *walkers)
        left_out += differing
    for line in left_out:
        print(line)
    if not subjects:
        raise InputError(f"No run sees the same observations as {reference}.")
    walkers = walkers or subjects
    with Progress("Probes", count_work(subjects, config, len(walkers))) as progress:
        study = run_study(subjects, config, walkers, progress.step)
    dt = subjects[0].policy.config.task.simulation.control_dt
    findings = collect_findings(study, config, dt)
    return findings, [s.about for s in subjects], [w.path for w in walkers], left_out


def _probe_contact(
    runs: tuple[Path, ...],
    reference: Path | None,
    checkpoint: int | None,
    threads: int,
    options: dict[str, Any],
) -> _Result:
    import torch

    from prism_motor._progress import Progress
    from prism_motor.analysis.manipulators import load_manipulators
    from prism_motor.analysis.probe_contact import (
        ContactProbeConfig,
        count_contact_work,
        run_contact_study,
    )
    from prism_motor.analysis.probe_files import collect_findings
    from prism_motor.manipulation.data import environment_of

    config = ContactProbeConfig(**options)
    torch.set_num_threads(threads)
    manipulators, left_out = load_manipulators(runs, checkpoint)
    sources = load_manipulators([reference])[0] if reference else manipulators
    for line in left_out:
        print(line)
    environment = environment_of(sources[0].policy.config)
    try:
        total = count_contact_work(manipulators, config, len(sources))
        with Progress("Probes", total) as progress:
            study = run_contact_study(manipulators, config, sources, environment, progress.step)
    finally:
        environment.close()
    findings = collect_findings(study, config, environment.control_seconds)
    return findings, [m.about for m in manipulators], [s.path for s in sources], left_out


def _show(findings: Findings) -> None:
    from textwrap import fill

    from prism_motor.analysis.probe_files import make_caption, percent
    from prism_motor.analysis.text import align

    header = [
        "arm",
        "features",
        "directions",
        *(target.label for target in findings.study.domain.targets),
    ]
    lines = []
    for row in findings.rows:
        pairs = zip(row.scores["mse"], row.scores["r"], strict=True)
        cells = [f"{mse.value:.3f} ({r.value:.2f})" for mse, r in pairs]
        lines.append([row.arm, row.features, str(row.probes[0].rank), *cells])
    print("\nSquared error / variance (Pearson r)\n")
    print(align([header, *lines]))
    if findings.gains:
        print("\nRelative change of the squared error, %\n")
        changes = [
            [one.title, *(percent(change) for change in one.changes["mse"])]
            for one in findings.gains
        ]
        print(align([["", *header[3:]], *changes], numbers=1))
    print("\n" + fill(make_caption(findings), 100))
    print(fill(str(findings.leakage), 100))
