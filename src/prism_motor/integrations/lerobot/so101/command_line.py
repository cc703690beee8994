"""What the LeRobot command that runs asks of the twin: its rate, its policy and its dataset."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lerobot.configs import parser
from lerobot.utils.constants import HF_LEROBOT_HOME

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101.compatibility import check_dataset, check_policy

_USUAL = 30
_RATES = {"lerobot-teleoperate": 60}
"""Commands a second of LeRobot's commands that do not have the usual rate."""


_RECORDING = ("lerobot-record", "lerobot-rollout")
_LASTS = 60.0
"""Seconds of an episode, and of the reset after it, if LeRobot is not told otherwise."""


@dataclass(frozen=True)
class LeRobotCommand:
    """What the command that runs will do with the robot."""

    fps: int = _USUAL
    """Commands a second."""
    episode_seconds: float | None = None
    """Seconds of an episode with the reset after it; ``None`` if no episodes are saved."""


def check_command_line(fps: int | None, cameras: Sequence[str]) -> LeRobotCommand:
    """Return what the command will do, or raise if policy, dataset or rate do not fit the robot.

    Args:
        fps: What the user wants; default: what the command uses.
        cameras: Names of the robot's cameras.
    """
    policy = parser.get_path_arg("policy")
    if policy and Path(policy).is_dir():
        check_policy(Path(policy), cameras)
    rates = [(f"--{flag}={rate}", rate) for flag, rate in _given_rates()]
    dataset = _dataset_folder()
    if dataset is not None:
        rate = json.loads((dataset / "meta" / "info.json").read_text())["fps"]
        rates.insert(0, (f"the dataset {dataset} has {rate} frames a second", rate))
    program = Path(sys.argv[0]).stem.replace("_", "-")
    if fps is None:
        fps = int(rates[0][1]) if rates else _RATES.get(program, _USUAL)
    for where, rate in rates:
        if rate != fps:
            raise InputError(
                f"so101_sim takes a command for 1/{fps} s, but {where}. Use --robot.fps={rate:g}, "
                "and the same rate everywhere."
            )
    if dataset is not None:
        check_dataset(dataset, fps)
    recorded = program in _RECORDING and parser.parse_arg("dataset.repo_id")
    return LeRobotCommand(fps, _episode_seconds() if recorded else None)


def _episode_seconds() -> float:
    given = [parser.parse_arg(f"dataset.{part}_time_s") for part in ("episode", "reset")]
    return sum(_LASTS if seconds is None else float(seconds) for seconds in given)


def _given_rates() -> list[tuple[str, float]]:
    given = [(flag, parser.parse_arg(flag)) for flag in ("dataset.fps", "fps")]
    return [(flag, float(value)) for flag, value in given if value is not None]


def _dataset_folder() -> Path | None:
    """Return the folder of the command's dataset, if it is there already."""
    root, name = parser.parse_arg("dataset.root"), parser.parse_arg("dataset.repo_id")
    folder = Path(root) if root else HF_LEROBOT_HOME / name if name else None
    return folder if folder is not None and (folder / "meta" / "info.json").is_file() else None
