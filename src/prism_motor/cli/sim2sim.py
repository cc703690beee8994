"""``prism sim2sim``: run an export in MuJoCo, from its contract alone."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from prism_motor._extras import missing_extra


def sim2sim(
    export: Positional[Path],
    seconds: float = 24.0,
    seed: int = 0,
    command: tuple[float, float, float] | None = None,
) -> None:
    """Run an exported policy in MuJoCo without any of the training code.

    Args:
        export: The folder that prism export wrote.
        seconds: Length of the episode.
        seed: Seed of start pose and commands.
        command: Forward and sideways velocity (m/s) and heading (rad) to hold; default: drawn as
            in training.
    """
    from prism_motor.export import runner

    try:
        runner.run(export, seconds, seed, command)
    except ImportError as error:
        raise missing_extra("prism sim2sim", "deploy", error) from error
