"""Whether a policy and a robot belong together, before a motor moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor._console import count, note
from prism_motor.pilots.policies import (
    ACTION,
    IMAGES,
    STATE,
    DemonstrationFacts,
    PilotPolicy,
)

_NORMALISED = 100.0
"""Largest position of a LeRobot motor that is not in degrees."""
_GRIPPER = "gripper"
"""Part of the names of joints that LeRobot never gives in degrees."""
_FAR = 1.0
"""A state counts as outside of the demonstrations beyond this multiple of their range..."""
_NEAR = 5.0
"""... or this distance, if a joint hardly moved in them."""


@dataclass(frozen=True)
class RobotFeatures:
    """What a robot measures and what it is told, as LeRobot describes it."""

    state: tuple[str, ...]
    """Names of the coordinates of its state."""
    cameras: Mapping[str, tuple[int, ...]]
    """Shapes (height, width, 3) of images by camera."""
    actions: tuple[str, ...]
    """Names of the coordinates of its actions."""
    degrees: bool | None
    """Whether joints are in degrees, not in -100 to 100; ``None`` if it has no such setting."""
    rates: Mapping[str, float]
    """Frames per second by camera, where they are set."""


def read_features(robot: Any) -> RobotFeatures:
    """Return the features of a robot, connected or not."""
    seen = robot.observation_features
    config = getattr(robot, "config", None)
    cameras = getattr(config, "cameras", None) or {}
    rates = {name: getattr(camera, "fps", None) for name, camera in cameras.items()}
    return RobotFeatures(
        state=tuple(name for name, kind in seen.items() if not isinstance(kind, tuple)),
        cameras={name: kind for name, kind in seen.items() if isinstance(kind, tuple)},
        actions=tuple(robot.action_features),
        degrees=getattr(config, "use_degrees", None),
        rates={name: float(rate) for name, rate in rates.items() if rate},
    )


def check_fit(
    who: str, policy: PilotPolicy, demos: DemonstrationFacts | None, robot: RobotFeatures, fps: int
) -> None:
    """Raise unless a policy can act on a robot at this rate.

    Args:
        who: What to call the policy in the message.
        policy: The policy.
        demos: What is known of its demonstrations.
        robot: The robot.
        fps: Control steps per second of the pilot.
    """
    _check_sizes(who, policy, robot)
    _check_images(who, policy, demos, robot)
    if demos is not None:
        _check_names(who, demos, robot)
        if demos.fps != fps:
            raise InputError(
                f"{who} was trained on demonstrations at {demos.fps} frames per second, but the "
                f"pilot runs at {fps}. Give --fps {demos.fps}, or train on other demonstrations."
            )
    for camera in policy.cameras:
        if robot.rates.get(camera, fps) < fps:
            raise InputError(
                f"The camera {camera} gives {robot.rates[camera]:g} frames per second, but the "
                f"pilot runs at {fps}. Set its fps in --robot.cameras."
            )
    _check_units(who, policy, robot)


def check_start(
    who: str, policy: PilotPolicy, names: tuple[str, ...], state: NDArray[np.floating]
) -> None:
    """Raise if the robot is far from everything in a policy's demonstrations.

    Args:
        who: What to call the policy in the message.
        policy: The policy.
        names: Names of the state's coordinates.
        state: The robot's state at home.
    """
    known = policy.range_of(STATE)
    if known is None or STATE not in policy.inputs:
        return
    low, high = known
    margin = np.maximum(_FAR * (high - low), _NEAR)
    far = np.flatnonzero((state < low - margin) | (state > high + margin))
    if len(far):
        joint = int(far[0])
        raise InputError(
            f"{names[joint]} is at {state[joint]:.1f}, but in the demonstrations of {who} it was "
            f"from {low[joint]:.1f} to {high[joint]:.1f} ({count(len(far), 'coordinate')} so far "
            "off). Are robot and policy in the same units, and is the robot at home? Check "
            "--robot.use_degrees and the calibration, or move the robot."
        )


def _check_sizes(who: str, policy: PilotPolicy, robot: RobotFeatures) -> None:
    for what, wanted, names in (
        ("state", policy.inputs.get(STATE, (len(robot.state),))[0], robot.state),
        ("action", policy.actions, robot.actions),
    ):
        if wanted != len(names):
            raise InputError(
                f"{who} was trained with {count(wanted, 'value')} of {what}, but the robot has "
                f"{len(names)}: {', '.join(names)}. It is a policy of another robot."
            )
    others = [key for key in policy.inputs if key != STATE and not key.startswith(IMAGES)]
    if others:
        raise InputError(
            f"{who} needs {', '.join(others)}, which no robot measures. Train a policy that sees "
            "images and the robot's own state."
        )


def _check_images(
    who: str, policy: PilotPolicy, demos: DemonstrationFacts | None, robot: RobotFeatures
) -> None:
    for camera, (_, *sides) in policy.cameras.items():
        if camera not in robot.cameras:
            raise InputError(
                f"{who} looks through the camera {camera}, but the robot has "
                f"{', '.join(robot.cameras) or 'no camera'}. Set --robot.cameras as in the "
                "demonstrations."
            )
        there = robot.cameras[camera][:2]
        trained = tuple(sides) if demos is None else demos.images.get(camera, tuple(sides))
        if there == trained:
            continue
        text = (
            f"{who} was trained on images of {trained[1]} x {trained[0]} from the camera {camera}, "
            f"but the robot's have {there[1]} x {there[0]}."
        )
        if demos is None and policy.resizes:  # the demonstrations may have been of that size
            note(f"{text} They are resized; make sure that those of the demonstrations were, too.")
        else:
            raise InputError(
                f"{text} Set width and height in --robot.cameras (--robot.image_size of the twin) "
                "as in the demonstrations."
            )


def _check_names(who: str, demos: DemonstrationFacts, robot: RobotFeatures) -> None:
    for column, names in ((STATE, robot.state), (ACTION, robot.actions)):
        known = demos.names.get(column)
        if known is not None and tuple(known) != names:
            raise InputError(
                f"{who} was trained on {column} = {', '.join(known)}, but the robot has "
                f"{', '.join(names)}. It is a policy of another robot."
            )


def _check_units(who: str, policy: PilotPolicy, robot: RobotFeatures) -> None:
    """Compare degrees with -100 to 100 by what the demonstrations reached.

    Degrees may go beyond 100. Positions in -100 to 100 are cut there, so that demonstrations reach
    the limits exactly; one joint may do so in degrees as well, several hardly.
    """
    if robot.degrees is None:
        return
    for column, names in ((STATE, robot.state), (ACTION, robot.actions)):
        known = policy.range_of(column)
        if known is None or len(known[0]) != len(names):
            continue
        joints = {
            name: (low, high)
            for name, low, high in zip(names, *known, strict=True)
            if name.endswith(".pos") and _GRIPPER not in name
        }
        beyond = [n for n, ends in joints.items() if max(map(abs, ends)) > _NORMALISED + 1e-3]
        cut = [n for n, ends in joints.items() if abs(max(map(abs, ends)) - _NORMALISED) < 1e-3]
        if not robot.degrees and beyond:
            low, high = joints[beyond[0]]
            raise InputError(
                f"{who} was trained in degrees ({beyond[0]} from {low:.1f} to {high:.1f}), but the "
                "robot gives -100 to 100. Set --robot.use_degrees=true."
            )
        if robot.degrees and not beyond and len(cut) > 1:
            raise InputError(
                f"{who} was trained on positions of -100 to 100 ({', '.join(cut)} reach exactly "
                "100), but the robot gives degrees. Set --robot.use_degrees=false."
            )
