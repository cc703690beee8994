"""``prism probe``: what can be read linearly from the features of trained policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

if TYPE_CHECKING:
    from prism.analysis.probe_files import Findings


def probe(
    runs: Positional[tuple[Path, ...]],
    out: Path | None = None,
    reference: Path | None = None,
    own: bool = False,
    untrained: bool = False,
    directions: int | None = None,
    condition: str = "pushes",
    horizon: int = 5,
    envs: int = 96,
    seconds: float = 8.0,
    seed: int = 201,
    checkpoint: int | None = None,
    threads: int = 1,
) -> None:
    """Probe frozen features for slip, power, impulse and errors of the next control steps.

    All networks see the same observations, to which every policy contributes equally, so that
    targets are the same for all. Robots are held out with all their episodes. Gains are relative
    to the first run. Writes probe.json and probe.png.

    Args:
        runs: Run folders, of any number of arms and training seeds.
        out: Where to write; default: FIRST RUN/analysis/probe.
        reference: Run whose policy alone walks for all.
        own: Probe every policy on the states of its own walks instead.
        untrained: Also probe every network with random weights, as a control.
        directions: Use only so many principal directions of every feature, so that wide ones have
            no advantage.
        condition: One of nominal, low-friction, payload, pushes (every second), training.
        horizon: Control steps that targets look ahead.
        envs: Robots; of each policy with --own, of all together without.
        seconds: How long they walk.
        seed: Seed of walks and held-out parts.
        checkpoint: Which checkpoint; default: the newest.
        threads: Simulation threads.
    """
    from prism._progress import Progress
    from prism.analysis.probe_files import collect_findings, write_probes
    from prism.analysis.probe_study import ProbeConfig, count_work, run_study
    from prism.analysis.style import check_matplotlib
    from prism.analysis.subjects import load_subjects, same_layout
    from prism.cli._shipped import writable

    check_matplotlib("prism probe")
    config = ProbeConfig(
        own, horizon, seed, untrained, directions, condition, envs, seconds, threads
    )
    if reference is not None and own:
        raise ValueError("Give either --reference or --own: one policy walks for all, or each.")
    subjects, left_out = load_subjects(runs, checkpoint)
    walkers = load_subjects([reference])[0] if reference else []
    if not own:
        subjects, differing = same_layout(subjects, *walkers)
        left_out += differing
    for line in left_out:
        print(line)
    if not subjects:
        raise ValueError(f"No run sees the same observations as {reference}.")
    walkers = walkers or subjects
    folder = out or writable(runs[0]) / "analysis" / "probe"
    folder.mkdir(parents=True, exist_ok=True)
    with Progress("Probes", count_work(subjects, config, len(walkers))) as progress:
        study = run_study(subjects, config, walkers, progress.step)
    dt = subjects[0].policy.config.task.simulation.control_dt
    findings = collect_findings(study, config, dt)
    files = write_probes(
        findings, [s.about for s in subjects], [w.path for w in walkers], left_out, folder
    )
    _show(findings)
    print("\n" + "\n".join(map(str, files)))


def _show(findings: Findings) -> None:
    from textwrap import fill

    from prism.analysis.probe_files import make_caption, percent
    from prism.analysis.text import align

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
