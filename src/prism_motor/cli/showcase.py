"""``prism demo`` and ``prism physics``: something to see without your own runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from prism_motor._ranges import Count, between


def demo(out: Path = Path("outputs/demo"), updates: Count = 300) -> None:
    """Train PRISM and an MLP of the same size to walk, with videos (about 6 minutes).

    A second call continues where the first one stopped.

    Args:
        out: Folder for runs, videos and the page.
        updates: Updates per policy, each about a second.
    """
    from prism_motor.campaigns.demo import DemoConfig, run_demo
    from prism_motor.report import terminal_table

    config = DemoConfig(updates=updates)
    words = ["prism", "demo"] + (["--out", str(out)] if out != Path("outputs/demo") else [])
    words += ["--updates", str(updates)] if updates != DemoConfig.updates else []
    try:
        made = run_demo(config, out, shlex.join(words))
    except KeyboardInterrupt:
        print(
            f"\nStopped. The same command continues from here: {shlex.join(words)}", file=sys.stderr
        )
        raise
    print(f"\n{terminal_table(made.table)}")
    print(f"\nOpen {made.page} in a browser.")


def physics(
    out: Path = Path("outputs/physics"),
    seeds: Annotated[int | None, between(2, 1000)] = None,
    arms: tuple[str, ...] = (),
    quick: bool = False,
) -> None:
    """Compare PRISM with MLPs and other layers at learning a robot arm's physics (two minutes).

    Args:
        out: Output folder for results.json, figure.png and index.html. A second run with the same
            settings continues where the first one stopped.
        seeds: Reported seeds per arm, at least 2; default: 5 (2 with --quick).
        arms: Which arms to compare, e.g. mlp-matched prism; default: all.
        quick: Only check that everything works; the numbers mean nothing.
    """
    from dataclasses import replace

    from prism_motor.studies.physics.config import QUICK, PhysicsConfig
    from prism_motor.studies.physics.study import run_physics

    preset = QUICK if quick else PhysicsConfig()
    config = replace(preset, arms=arms, seeds=preset.seeds if seeds is None else seeds)
    command = ["prism", "physics", "--seeds", str(config.seeds)]
    command += ["--arms", *arms] if arms else []
    command += ["--quick"] if quick else []
    try:
        page = run_physics(config, out, shlex.join(command))
    except KeyboardInterrupt:
        print(
            f"\nInterrupted. Finished runs are kept in {out}; the same command continues.",
            file=sys.stderr,
        )
        raise
    print(f"\nOpen {page} in a browser.")
