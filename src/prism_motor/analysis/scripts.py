"""Which commands a trace follows: a tour, a fixed one, or those of a file."""

from __future__ import annotations

import math
from pathlib import Path

from prism_motor._checks import InputError
from prism_motor.analysis.recording import CommandScript

TOUR = CommandScript(
    points=(
        (0.0, 0.0, 0.0, 0.0),
        (2.0, 0.5, 0.0, 0.0),
        (7.0, 0.3, 0.0, 0.5),
        (11.0, 0.0, 0.25, 0.0),
        (15.0, -0.25, 0.0, 0.0),
        (18.0, 0.0, 0.0, 0.0),
    ),
    seconds=20.0,
)
"""Stand, walk, turn, side-step, walk back, stand: all within the training commands."""


def read_script(file: Path, seconds: float) -> CommandScript:
    """Read a script: lines of time, forward, sideways and yaw rate, separated by commas or spaces.

    Args:
        file: The file; lines that start with ``#`` are comments.
        seconds: When the script ends.
    """
    if not file.is_file():
        raise InputError(f"There is no script {file}.")
    points = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        cells = line.split("#")[0].replace(",", " ").split()
        if not cells:
            continue
        try:
            time, forward, sideways, yaw = map(float, cells)
        except ValueError:
            raise InputError(
                f"{file}, line {number}: expected time, forward, sideways and yaw rate as four "
                f"numbers, got {line.strip()!r}."
            ) from None
        points.append((time, forward, sideways, yaw))
    return CommandScript(tuple(points), seconds)


def make_script(
    file: Path | None = None,
    forward: float | None = None,
    *,
    seconds: float = TOUR.seconds,
    turn: float = math.inf,
) -> CommandScript:
    """Return a script: of a file, of a fixed forward velocity, or :data:`TOUR`.

    Args:
        file: See :func:`read_script`.
        forward: Forward velocity to hold, m/s.
        seconds: When the script ends.
        turn: Largest yaw rate of the tour, rad/s.
    """
    if file is not None and forward is not None:
        raise InputError("Traces: give a script or a fixed forward velocity, not both.")
    if file is not None:
        return read_script(file, seconds)
    if forward is not None:
        return CommandScript(((0.0, forward, 0.0, 0.0),), seconds)
    points = [(t, x, y, min(yaw, turn)) for t, x, y, yaw in TOUR.points if t < seconds]
    return CommandScript(tuple(points), seconds)
