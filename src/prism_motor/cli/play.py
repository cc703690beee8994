"""``prism play``: watch trained policies walk, live in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from prism_motor._errors import InputError

SHIPPED_PAIR = ("g1-mlp-larger", "g1-gated")
"""What is played if nothing is given: a plain and a polynomial policy of equal size."""


def play(
    runs: Positional[tuple[Path, ...]] = (),
    command: tuple[float, float, float] | Literal["task"] = (0.4, 0.0, 0.0),
    host: str = "127.0.0.1",
    port: int = 8080,
    seconds: float | None = None,
    primitives: bool = False,
) -> None:
    """Watch one policy, or two side by side, live in the browser: command, push, load them.

    Args:
        runs: One or two run folders or names of shipped policies; default: the shipped pair.
        command: Forward and sideways velocity (m/s) and yaw rate (rad/s) to start with, or task
            for commands as in training.
        host: Address to listen on; the default is reachable from this machine alone.
        port: Port to listen on; the next free one if it is taken.
        seconds: Stop after this time; default: go on until Ctrl-C.
        primitives: Draw simple shapes even where a package with meshes of the robot is installed.
    """
    from prism_motor.viewer.app import App, find_port
    from prism_motor.viewer.loading import load_walkers
    from prism_motor.viewer.session import Session

    if seconds is not None and seconds <= 0:
        raise InputError(f"seconds must be above 0, got {seconds}.")
    free = find_port(host, port)
    walkers, products = zip(*load_walkers(runs or _shipped()), strict=True)
    session = Session(walkers, None if command == "task" else command)
    app = App(session, products, host=host, port=free, primitives=primitives)
    taken = f" (port {port} is in use)" if port not in (0, app.port) else ""
    try:
        print(f"Open {app.url} in a browser{taken}; Ctrl-C ends.", flush=True)
        app.run(seconds)
    except KeyboardInterrupt:
        print()
    finally:
        app.stop()


def _shipped() -> tuple[Path, ...]:
    from prism_motor.runs.shipped import shipped_names

    known = shipped_names()
    pair = tuple(Path(name) for name in SHIPPED_PAIR if name in known)
    if not pair:
        raise InputError(
            "No policy comes with this version of prism. Give a run folder of your own: "
            "prism play RUN, or two to compare them."
        )
    return pair
