"""Run an exported policy in MuJoCo, using only its contract.

This file and the folder ``runner_parts`` beside it import nothing from prism. Copied anywhere
together, they need only an export, numpy, onnxruntime and mujoco::

    python runner.py EXPORT --seconds 24 --command 0.5 0 0
    python runner.py EXPORT --clip wave

It exits with 0 after an episode, 2 if the export or an argument is wrong (nothing has moved then),
3 if it stopped for safety.

:class:`Controller` (walking) and :class:`Tracker` (tracking) are the parts that would run on a
robot; :func:`simulate` and :func:`track` put MuJoCo in the robot's place and step it as the
contract says. A controller acts only on what is finite and within the contract's limits; anything
else makes it hold the joints where they are, for good.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from prism_motor.export import runner_parts as parts
else:  # a copy, whose parts are beside it
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import runner_parts as parts

CONTRACT, POLICY, MODEL = parts.rules.CONTRACT, parts.networks.POLICY, parts.files.MODEL
BACKWARD, CLIPS = parts.files.BACKWARD, parts.files.CLIPS
SCHEMA, TRACKING = parts.contracts.SCHEMA, parts.contracts.TRACKING
SOURCES = parts.walking.SOURCES
RunnerError, SafetyStop = parts.rules.RunnerError, parts.rules.SafetyStop
check_contract, parse_json = parts.contracts.check_contract, parts.rules.parse_json
Export, load_export, bind = parts.files.Export, parts.files.load_export, parts.files.bind
open_policy, check_policy = parts.networks.open_policy, parts.networks.check_policy
Reading, Watchdog, read = parts.control.Reading, parts.control.Watchdog, parts.simulation.read
Controller, Episode, simulate = (
    parts.walking.Controller,
    parts.walking.Episode,
    parts.walking.simulate,
)
draw_commands, draw_start = parts.walking.draw_commands, parts.walking.draw_start
Clip, encode = parts.clips.Clip, parts.tracking.encode
Tracker, TrackedClip, track = (
    parts.tracking.Tracker,
    parts.tracking.TrackedClip,
    parts.tracking.track,
)
earth_movers_distance = parts.tracking.earth_movers_distance

STOPPED = 3
"""Exit code after a stop for safety; 2 is for an export or an argument that is wrong."""

SECONDS = 24.0
"""Length of an episode of walking unless another is asked for."""


def run(
    path: str | Path,
    seconds: float | None = None,
    seed: int = 0,
    command: tuple[float, float, float] | None = None,
    clip: str | None = None,
) -> parts.walking.Episode | parts.tracking.TrackedClip:
    """Run one episode of an export and print what happened; a stop is raised after that.

    Args:
        path: The export.
        seconds: How long; default: 24 s of walking, or all of a clip.
        seed: Seed of start pose and commands of walking.
        command: One command for walking, m/s, m/s and a yaw rate, rad/s; default: drawn ones.
        clip: The clip to track; default: the first one.
    """
    if seconds is not None and not 0 < seconds <= 86400:
        raise RunnerError(f"--seconds must be positive, up to a day (86400), got {seconds}.")
    if seed < 0:
        raise RunnerError(f"--seed must be 0 or more, got {seed}.")
    export = load_export(path)
    if parts.contracts.is_tracking(export.contract):
        if command is not None:
            raise RunnerError("--command is for walking; this policy tracks clips: give --clip.")
        episode = parts.tracking.run_tracking(export, seconds, clip)
    else:
        if clip is not None:
            raise RunnerError("--clip is for tracking; this policy walks: give --command.")
        length = SECONDS if seconds is None else seconds
        episode = parts.walking.run_walking(export, length, seed, command)
    if episode.stop:
        bug = episode.stop.__cause__
        if bug is not None and not isinstance(bug, RunnerError):
            traceback.print_exception(bug)
        raise episode.stop
    return episode


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="Run an exported policy in MuJoCo.")
    parser.add_argument("export", help="folder with contract.json, policy.onnx and robot.xml")
    parser.add_argument(
        "--seconds", type=float, help="length of the episode; default: 24, or the whole clip"
    )
    parser.add_argument("--seed", type=int, default=0, help="of start pose and commands")
    parser.add_argument(
        "--command", type=float, nargs=3, metavar=("VX", "VY", "YAW_RATE"),
        help="one fixed command instead of drawn ones: forward and sideways velocity (m/s) and yaw "
        "rate (rad/s)",
    )  # fmt: skip
    parser.add_argument("--clip", help="which clip to track; default: the first one")
    words = parser.parse_args()
    try:
        run(words.export, words.seconds, words.seed, words.command, words.clip)
    except SafetyStop as stop:
        print(f"runner: stopped {stop}", file=sys.stderr)
        sys.exit(STOPPED)
    except (ValueError, OSError) as error:
        print(f"runner: error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
