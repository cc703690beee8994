"""Any robot that LeRobot knows: from its flags to a connected device.

Flags under ``--robot.`` mean what they mean to LeRobot's own commands, and robots and cameras of
installed plugins are found as there.
"""

import importlib
import io
import json
import pkgutil
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from prism_motor._checks import InputError, PrismError, check_choice
from prism_motor._extras import missing_extra

try:
    import lerobot.cameras
    import lerobot.robots
    from draccus.argparsing import parse
    from draccus.parsers.encoding import encode
    from lerobot.configs import parser
    from lerobot.robots import Robot, RobotConfig, make_robot_from_config
    from lerobot.utils.import_utils import register_third_party_plugins
except ImportError as error:
    raise missing_extra("Robots of LeRobot", "manipulation", error) from error

PREFIX = "--robot."
"""What flags of a robot begin with."""
_PLUGIN = f"{PREFIX}{parser.PLUGIN_DISCOVERY_SUFFIX}="
"""LeRobot's flag for a package that registers robots and is not installed under a known name."""


class RobotError(PrismError, RuntimeError):
    """A robot cannot be made, reached or used."""


@dataclass
class _Holder:
    robot: RobotConfig


@cache
def register_devices() -> None:
    """Let LeRobot know its own robots and cameras and those of installed plugins.

    Those whose packages are missing stay unknown.
    """
    for package in (lerobot.robots, lerobot.cameras):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if module.ispkg:
                with suppress(Exception):
                    importlib.import_module(module.name)
    register_third_party_plugins()


def parse_robot(words: Sequence[str]) -> RobotConfig:
    """Return the settings of a robot from flags like ``--robot.type=so101_follower``.

    Args:
        words: Flags under ``--robot.``, as LeRobot's commands take them.
    """
    register_devices()
    for word in words:
        if word.startswith(_PLUGIN):
            try:
                parser.load_plugin(word.removeprefix(_PLUGIN))
            except parser.PluginLoadError as error:
                raise InputError(str(error)) from error
    types = [word.partition("=")[2] for word in words if word.startswith(f"{PREFIX}type=")]
    if not types:
        raise InputError(
            f"Give a robot: {PREFIX}type=NAME, one of {', '.join(known_robots())}, and its "
            "settings as LeRobot's commands take them."
        )
    kind = RobotConfig.get_choice_class(check_choice("robot type", types[-1], known_robots()))
    # Parsing this class alone: with all robots to choose from, LeRobot's parser takes seconds.
    flags = [
        f"--{word.removeprefix(PREFIX)}"
        for word in words
        if not word.startswith((_PLUGIN, f"{PREFIX}type="))
    ]
    said = io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            return parse(config_class=kind, args=flags)
    except SystemExit as stop:  # what argparse does about a flag that it does not know
        message = said.getvalue().strip().rpartition("error: ")[2]
        raise InputError(f"LeRobot does not accept these flags of {types[-1]}: {message}") from stop
    except Exception as error:
        raise InputError(f"LeRobot does not accept these flags of {types[-1]}: {error}") from error


def known_robots() -> list[str]:
    """Return the types of robots that are installed here."""
    register_devices()
    return sorted(RobotConfig.get_known_choices())


def encode_robot(config: RobotConfig) -> dict[str, Any]:
    """Return all settings of a robot, defaults included, as plain data."""

    def plain(value: object) -> object:
        return value.value if isinstance(value, Enum) else str(value)

    return json.loads(json.dumps(encode(_Holder(config)), default=plain))["robot"]


def make_robot(config: RobotConfig) -> Robot:
    """Return the robot, which is not connected yet."""
    try:
        return make_robot_from_config(config)
    except Exception as error:
        raise RobotError(f"LeRobot cannot make the robot {config.type}: {_line(error)}") from error


def connect_robot(robot: Robot) -> None:
    """Connect a robot that is calibrated; nothing is asked and nothing moves."""
    try:
        robot.connect(calibrate=False)
    except Exception as error:
        disconnect_robot(robot)
        raise RobotError(f"The robot cannot be connected: {_line(error)}") from error
    if not robot.is_calibrated:
        disconnect_robot(robot)
        raise RobotError(
            f"The robot {robot.id} is not calibrated, or its motors differ from its calibration "
            f"file {robot.calibration_fpath}. Run lerobot-calibrate with the same --robot flags."
        )


def disconnect_robot(robot: Robot) -> None:
    """Disconnect a robot, also one that is only partly connected."""
    with suppress(Exception):
        robot.disconnect()
    # LeRobot refuses to disconnect a robot of which one camera is missing.
    for part in (getattr(robot, "bus", None), *_cameras(robot).values()):
        with suppress(Exception):
            if part is not None and part.is_connected:
                part.disconnect()


def _cameras(robot: Robot) -> Mapping[str, Any]:
    return getattr(robot, "cameras", None) or {}


def _line(error: Exception) -> str:
    """Return an error's message as one line."""
    return " ".join(str(error).split()) or type(error).__name__
