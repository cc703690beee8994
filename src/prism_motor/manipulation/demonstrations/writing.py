"""Demonstrations as a LeRobotDataset on disk, without the hub."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.episode import Episode
from prism_motor.manipulation.demonstrations.features import ACTION, OBJECTS, STATE, image_key
from prism_motor.runs.atomic import write_json

ORIGIN = Path("meta") / "prism.json"
"""Where a dataset says which task it shows and how it was made."""


def write_dataset(
    root: Path,
    episodes: Iterable[Episode],
    *,
    features: dict[str, dict[str, Any]],
    frames_per_second: int,
    suite: str,
    instruction: str,
    origin: dict[str, Any],
    report: Callable[[], None] | None = None,
) -> None:
    """Write a dataset, which appears at ``root`` when it is whole.

    Args:
        root: The new folder.
        episodes: What to write.
        features: Columns, from :func:`prism_motor.manipulation.demonstrations.features.make_features`.
        frames_per_second: Control steps a second.
        suite: Written as the robot's type.
        instruction: What language-conditioned policies are told.
        origin: How it was made, for people and for checks.
        report: Called after every episode.
    """
    try:
        import datasets
        from lerobot.datasets.lerobot_dataset import LeRobotDataset
    except ImportError as error:
        raise missing_extra("Writing demonstrations", "manipulation", error) from error
    datasets.disable_progress_bars()  # one of ours is enough
    temporary = root.with_name(f".{root.name}.writing")
    shutil.rmtree(temporary, ignore_errors=True)  # of a call that was killed
    dataset = LeRobotDataset.create(
        repo_id=f"local/{root.name}",
        root=temporary,
        fps=frames_per_second,
        robot_type=suite,
        features=features,
        use_videos=False,
    )
    for episode in episodes:
        for index in range(len(episode)):
            frame: dict[str, Any] = {
                STATE: episode.states[index],
                OBJECTS: episode.objects[index],
                ACTION: episode.actions[index],
                "task": instruction,
            }
            for camera, pictures in episode.images.items():
                frame[image_key(camera)] = pictures[index]
            dataset.add_frame(frame)
        dataset.save_episode()
        if report is not None:
            report()
    dataset.finalize()
    shutil.rmtree(temporary / "images", ignore_errors=True)  # empty: they are in the tables
    write_json(temporary / ORIGIN, origin)
    temporary.replace(root)
