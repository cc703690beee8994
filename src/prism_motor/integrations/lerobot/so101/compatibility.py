"""Whether a policy or a dataset belongs to an SO-101 that counts in degrees.

LeRobot checks neither: the SO-100, the SO-101, the Koch arm and their simulations all have six
joints with the same names, in degrees, in -100 to 100 or in radians.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism_motor._checks import InputError
from prism_motor.sim.so101.units import ACTION_HIGH, ACTION_LOW, FEATURES, JOINTS

ROBOTS = ("so101", "so100", "so_follower")
"""How the names of robots with these joints in these units begin, in datasets."""

_STATE, _ACTION, _IMAGES = "observation.state", "action", "observation.images."
_RADIANS = 3.5
"""No joint of an arm in use stays within as many degrees of zero."""
_BEYOND = 10.0
"""Degrees by which arms differ in their ranges."""
_FULL = 100.0
"""Where positions counted from -100 to 100 stop."""
_TELLING = np.abs(ACTION_HIGH - _FULL) > 1
"""Joints that do not stop there in degrees."""


def check_policy(folder: Path, cameras: Sequence[str]) -> None:
    """Raise unless a policy of LeRobot fits an SO-101.

    Args:
        folder: With ``config.json`` and the processors.
        cameras: Names of the robot's cameras.
    """
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise InputError(f"{folder} is not a policy of LeRobot: {error}.") from error
    inputs, outputs = config.get("input_features") or {}, config.get("output_features") or {}
    for features, name in ((inputs, _STATE), (outputs, _ACTION)):
        if name in features:
            _check_shape(f"The policy {folder}", name, features[name]["shape"])
    _check_cameras(f"The policy {folder}", inputs, cameras)
    for name in (_STATE, _ACTION):
        stored = _stored_range(folder, name)
        if stored is not None:
            check_units(f"The policy {folder}", name, *stored)


def check_dataset(folder: Path, fps: int) -> None:
    """Raise unless a dataset of LeRobot is of an SO-101, at a rate.

    Args:
        folder: Of the dataset.
        fps: Commands a second of the robot.
    """
    info = json.loads((folder / "meta" / "info.json").read_text())
    what = f"The dataset {folder}"
    if info["fps"] != fps:
        raise InputError(
            f"{what} has {info['fps']} frames a second, and the robot takes {fps} commands a "
            f"second. Add --robot.fps={info['fps']}."
        )
    robot = info.get("robot_type")
    if robot and not robot.startswith(ROBOTS):
        raise InputError(f"{what} was recorded on {robot}, not on an SO-101.")
    for name in (_STATE, _ACTION):
        feature = info["features"].get(name)
        if feature is not None:
            _check_shape(what, name, feature["shape"])
            names = feature.get("names")
            if isinstance(names, list) and tuple(names) != FEATURES:
                raise InputError(
                    f"{what} has {name} of {', '.join(map(str, names))}, and an SO-101 has "
                    f"{', '.join(FEATURES)}."
                )
    stored = folder / "meta" / "stats.json"
    if stored.is_file():
        stats = json.loads(stored.read_text())
        for name in (_STATE, _ACTION):
            if name in stats:
                check_units(what, name, stats[name]["min"], stats[name]["max"])


def check_units(what: str, name: str, low: ArrayLike, high: ArrayLike) -> None:
    """Raise unless lowest and highest positions (6) can be degrees, and percent of the gripper.

    Args:
        what: What they belong to, for the message.
        name: What LeRobot calls the positions.
        low: Lowest values.
        high: Highest values.
    """
    lowest, highest = (np.asarray(values, dtype=np.float64).ravel() for values in (low, high))
    if len(lowest) != len(JOINTS) or not np.isfinite([lowest, highest]).all():
        return
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    wrong = ""
    if largest.max() < _RADIANS:
        wrong = f"they stay within {largest.max():.3g}, so they are radians or normalised"
    elif (stops := np.isclose(largest, _FULL, atol=1e-3) & _TELLING).any():
        joint = JOINTS[int(np.argmax(stops))]
        wrong = f"{joint} stops at 100, so they are counted from -100 to 100 (use_degrees=false)"
    else:
        beyond = (lowest < ACTION_LOW - _BEYOND) | (highest > ACTION_HIGH + _BEYOND)
        if beyond.any():
            joint = int(np.argmax(beyond))
            wrong = (
                f"{JOINTS[joint]} goes from {lowest[joint]:.1f} to {highest[joint]:.1f}, and the "
                f"arm from {ACTION_LOW[joint]:.1f} to {ACTION_HIGH[joint]:.1f}"
            )
    if wrong:
        raise InputError(
            f"{what} has positions in other units than the robot ({name}): {wrong}. The SO-101 "
            "counts joints in degrees and the gripper from 0 to 100; record and train again with "
            "use_degrees=true."
        )


def _check_shape(what: str, name: str, shape: Sequence[int]) -> None:
    if tuple(shape) != (len(JOINTS),):
        raise InputError(
            f"{what} has {name} of shape {tuple(shape)}, and an SO-101 has {len(JOINTS)} joints: "
            "it is for another robot."
        )


def _check_cameras(what: str, inputs: Mapping[str, Any], cameras: Sequence[str]) -> None:
    needed = [name.removeprefix(_IMAGES) for name in inputs if name.startswith(_IMAGES)]
    missing = [name for name in needed if name not in cameras]
    if missing:
        raise InputError(
            f"{what} needs the cameras {', '.join(needed)}, and the robot has "
            f"{', '.join(cameras) or 'none'}: {', '.join(missing)} is missing."
        )


def _stored_range(folder: Path, name: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the lowest and highest values with which a policy normalises, if it stores them."""
    from safetensors import safe_open

    for path in sorted(folder.glob("policy_*processor_step_*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            keys = set(file.keys())
            if {f"{name}.min", f"{name}.max"} <= keys:
                return file.get_tensor(f"{name}.min"), file.get_tensor(f"{name}.max")
    return None
