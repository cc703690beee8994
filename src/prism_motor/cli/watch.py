"""``prism play`` and ``prism sim2sim``: watch policies."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

from prism_motor._checks import InputError
from prism_motor._devices import Device
from prism_motor._extras import missing_extra
from prism_motor._ranges import Seed, between, length
from prism_motor._registry import resolve
from prism_motor.domains import PlayRequest, open_run

if TYPE_CHECKING:
    from prism_motor.viewer.app import Show

Seconds = Annotated[float, between(0.01, 86_400)]
Velocities = Annotated[tuple[float, float, float], between(-100, 100)]

SHIPPED_PAIR = ("g1-mlp-matched", "g1-prism")
"""Default policies to play: a plain and a polynomial one of equal size."""


def play(
    runs: Positional[tuple[Path, ...]] = (),
    command: Velocities | Literal["random"] | None = None,
    prompts: Annotated[tuple[str, ...], length(0, 100)] = (),
    host: str = "127.0.0.1",
    port: Annotated[int, between(0, 65535)] = 8080,
    seconds: Seconds | None = None,
    primitives: bool = False,
    device: Device | None = None,
) -> None:
    """Watch policies live in the browser: command walking ones, prompt tracking ones, push both.

    Args:
        runs: One or two runs of walking policies, or one of a tracking policy: folders or names of
            shipped policies; default: the shipped pair of walking ones.
        command: Forward and sideways velocity (m/s) and yaw rate (rad/s) that walking starts with,
            or random for commands as in training; default: 0.4 0 0.
        prompts: What tracking starts with: a motion (wave, or a file), a pose of one
            (goal:wave@1.5, at 1.5 s) or a reward (reward:raisearms-m-l); several take turns.
        host: Address to listen on; the default is reachable only from this machine. Whoever can
            reach it also needs the token in the printed address.
        port: Port to listen on; the next free one if it is taken.
        seconds: Stop after this time; default: run until Ctrl-C.
        primitives: Draw simple shapes even if a package with meshes of the robot is installed.
        device: Torch device of the policies; default: that of their training, or the CPU where it
            is missing.
    """
    request = PlayRequest(runs or _shipped(), command, prompts, primitives, device)
    if len(request.runs) > 2:
        raise InputError(f"One or two policies can be watched, got {len(request.runs)} runs.")
    first = next(iter(request.runs))
    _, domain, _ = open_run(first)
    if not domain.player:
        raise InputError(
            f"{first} is a {domain.name} run, which cannot be played live. Evaluate it: "
            f"prism eval {first}"
        )
    make_show = resolve(domain.player)
    serve(lambda: make_show(request), host, port, seconds)


def serve(make_show: Callable[[], Show], host: str, port: int, seconds: float | None) -> None:
    """Serve a show to browsers until Ctrl-C.

    Args:
        make_show: Makes it, once it is clear that it can be served.
        host: Address to listen on.
        port: Port to listen on; the next free one if it is taken.
        seconds: Stop after this time; default: never.
    """
    from prism_motor.viewer.app import App, find_port

    free = find_port(host, port)
    app = App(make_show(), host=host, port=free)
    taken = f" (port {port} is in use)" if port not in (0, app.port) else ""
    try:
        print(f"Open {app.url} in a browser{taken}; stop with Ctrl-C.", flush=True)
        if app.public_url:
            print(
                f"Other machines can reach it, but only with the token: {app.public_url}",
                flush=True,
            )
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
            "No policies ship with this version of prism. Give your own run folder: "
            "prism play RUN, or two to compare them."
        )
    return pair


def sim2sim(
    export: Positional[Path],
    seconds: Seconds | None = None,
    seed: Seed = 0,
    command: Velocities | Literal["random"] = "random",
    clip: str | None = None,
) -> None:
    """Run an exported policy in MuJoCo without any of the training code.

    Exit code 3 means that the runner stopped for safety and held the joints where they were.

    Args:
        export: The folder written by prism export.
        seconds: Length of the episode; default: 24 of walking, or the whole clip.
        seed: Seed of start pose and commands of walking.
        command: For walking: forward and sideways velocity (m/s) and yaw rate (rad/s) to hold, or
            random for commands as in training.
        clip: For tracking: which of the exported clips; default: the first one.
    """
    from prism_motor.export import runner

    try:
        runner.run(export, seconds, seed, None if command == "random" else command, clip)
    except runner.SafetyStop as stop:
        print(f"prism: stopped {stop}", file=sys.stderr)
        sys.exit(runner.STOPPED)
    except runner.RunnerError as error:
        raise InputError(str(error)) from error
    except ImportError as error:
        raise missing_extra("prism sim2sim", "deploy", error) from error
