"""``prism physics``: learn physical quantities of a simulated arm from first-order signals."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def physics(
    out: Path = Path("outputs/physics"),
    seeds: int | None = None,
    arms: tuple[str, ...] = (),
    quick: bool = False,
) -> None:
    """Compare PRISM with MLPs and other layers at learning a robot arm's physics (two minutes).

    Args:
        out: Output folder for results.json, figure.png and index.html. A second run with the same
            settings goes on where the first one ended.
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
            f"\nInterrupted. Finished runs are kept in {out}; the same command goes on from there.",
            file=sys.stderr,
        )
        raise
    print(f"\nOpen {page} in a browser.")
