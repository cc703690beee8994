"""``prism compliance``: settings of a compliance baseline, chosen on a validation split."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tyro.conf import Positional


def compliance(
    runs: Positional[tuple[Path, ...]],
    out: Path | None = None,
    baseline: Literal["mcc-sensorless", "mcc-oracle"] = "mcc-sensorless",
    gains: tuple[float, ...] = (0.005, 0.015, 0.045),
    smoothings: tuple[float, ...] = (0.8, 0.9),
    clips: tuple[float, ...] = (0.05,),
    episodes: int = 10,
    seed: int = 501,
    stiffness: float | None = None,
    checkpoint: int | None = None,
) -> None:
    """Try settings of a compliance baseline around trained policies and choose the best.

    Episodes begin from random resets, never from the fixed initial states of evaluations. The
    choice is the setting with most successes, then with the least contact impulse in successful
    episodes. Writes compliance.json, which prism eval and prism contact take as a baseline.

    Args:
        runs: Run folders of one task; their episodes count together.
        out: Where to write; default: FIRST RUN/analysis/compliance.
        baseline: Which baseline.
        gains: Values of k_f, the change of the action per newton.
        smoothings: Values of the share of the past in the moving average.
        clips: Values of the largest change of an action.
        episodes: Random resets of every setting and policy.
        seed: Seed of the resets and of all noise.
        stiffness: Kp of LIBERO's controller; the paper has 50. Default: LIBERO's own, 150.
        checkpoint: Which checkpoint; default: the newest.
    """
    from textwrap import fill

    from prism_motor._progress import Progress
    from prism_motor.analysis.compliance_sweep import (
        SweepConfig,
        make_caption,
        make_table,
        run_sweep,
        write_sweep,
    )
    from prism_motor.analysis.manipulators import load_manipulators
    from prism_motor.analysis.text import align
    from prism_motor.manipulation.compliance import ComplianceGrid
    from prism_motor.manipulation.data import environment_of

    config = SweepConfig(
        baseline, ComplianceGrid(gains, smoothings, clips), episodes, seed, stiffness
    )
    manipulators, left_out = load_manipulators(runs, checkpoint)
    for line in left_out:
        print(line)
    folder = out or runs[0] / "analysis" / "compliance"
    folder.mkdir(parents=True, exist_ok=True)
    environment = environment_of(manipulators[0].policy.config, stiffness)
    total = len(gains) * len(smoothings) * len(clips) * len(manipulators) * episodes
    try:
        with Progress("Compliance", total) as progress:
            trials = run_sweep(manipulators, environment, config, progress.step)
    finally:
        environment.close()
    file = write_sweep(trials, manipulators, config, left_out, folder)
    content = make_table(trials)
    print("\n" + align([content["columns"], *content["rows"]], numbers=0))
    print("\n" + fill(make_caption(trials, config), 100))
    print(f"\n{file}")
