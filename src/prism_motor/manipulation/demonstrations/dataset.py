"""Demonstrations as a local LeRobotDataset: its columns, and writing it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import remove_folder, write_json

if TYPE_CHECKING:
    from prism_motor.manipulation.demonstrations.recording import Demonstration
    from prism_motor.manipulation.environment import Environment

STATE = "observation.state"
OBJECTS = "observation.environment_state"
ACTION = "action"
"""LeRobot's names of the columns."""

ORIGIN = Path("meta") / "prism.json"
"""File that says which task a dataset shows and how it was made."""

_LIBERO_CAMERAS = {"agentview": "image", "robot0_eye_in_hand": "image2"}
"""LeRobot's camera names for LIBERO; policies that use them run in its environments."""


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


def write_dataset(
    root: Path,
    demonstrations: Iterable[Demonstration],
    *,
    features: dict[str, dict[str, Any]],
    frames_per_second: int,
    suite: str,
    instruction: str,
    origin: dict[str, Any],
    report: Callable[[], None] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a dataset, which appears at ``root`` once it is complete.

    Args:
        root: The new folder.
        demonstrations: What to write.
        features: Columns, from :func:`make_features`.
        frames_per_second: Control steps per second.
        suite: Written as the robot's type.
        instruction: Instruction for language-conditioned policies.
        origin: How it was made, for readers and for checks.
        report: Called after every demonstration.
        overwrite: Whether it takes the place of an older one.
    """
    try:
        import datasets
        from lerobot.datasets.lerobot_dataset import LeRobotDataset
    except ImportError as error:
        raise missing_extra("Writing demonstrations", "manipulation", error) from error
    datasets.disable_progress_bars()  # prism shows its own
    temporary = root.with_name(f".{root.name}.writing")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a killed process
    # Write under a temporary name, one frame per step.
    dataset = LeRobotDataset.create(
        repo_id=f"local/{root.name}",
        root=temporary,
        fps=frames_per_second,
        robot_type=suite,
        features=features,
        use_videos=False,
    )
    for demonstration in demonstrations:
        for index in range(len(demonstration)):
            frame: dict[str, Any] = {
                STATE: demonstration.states[index],
                OBJECTS: demonstration.objects[index],
                ACTION: demonstration.actions[index],
                "task": instruction,
            }
            for camera, images in demonstration.images.items():
                frame[image_key(camera)] = images[index]
            dataset.add_frame(frame)
        dataset.save_episode()
        if report is not None:
            report()
    dataset.finalize()
    shutil.rmtree(temporary / "images", ignore_errors=True)  # empty: images are in the tables
    write_json(temporary / ORIGIN, origin)
    if overwrite:
        remove_folder(root)
    temporary.replace(root)
