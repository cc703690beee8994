"""What the columns of a dataset are called, in LeRobot's words."""

from __future__ import annotations

from typing import Any

from prism_motor.manipulation.environment import Environment

STATE = "observation.state"
OBJECTS = "observation.environment_state"
ACTION = "action"

_LIBERO_CAMERAS = {"agentview": "image", "robot0_eye_in_hand": "image2"}
"""LeRobot's names in its LIBERO environment and on the hub; policies that use them run there."""


def image_key(camera: str) -> str:
    """Return the column of a camera's images."""
    return f"observation.images.{_LIBERO_CAMERAS.get(camera, camera)}"


def make_features(environment: Environment, images: bool) -> dict[str, dict[str, Any]]:
    """Describe all columns of demonstrations in an environment."""
    vectors = {
        STATE: environment.state_names,
        OBJECTS: environment.object_names,
        ACTION: environment.action_names,
    }
    features: dict[str, dict[str, Any]] = {
        key: {"dtype": "float32", "shape": (len(names),), "names": list(names)}
        for key, names in vectors.items()
    }
    size = environment.image_size
    for camera in environment.cameras if images else ():
        features[image_key(camera)] = {
            "dtype": "image",
            "shape": (size, size, 3),
            "names": ["height", "width", "channels"],
        }
    return features
