"""Demonstrations in memory: any LeRobotDataset of one task, ready for training on a CPU.

Reading a LeRobotDataset item by item costs tens of milliseconds; here everything is decoded once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor._console import Progress
from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.dataset import (
    ACTION,
    OBJECTS,
    ORIGIN,
    STATE,
    image_key,
)

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment
    from prism_motor.manipulation.tasks import Task


class DemonstrationsError(InputError):
    """A dataset is missing or does not fit the task."""


@dataclass(frozen=True)
class Demonstrations:
    """All steps of all episodes, concatenated."""

    vectors: dict[str, Tensor]
    """Steps x size, by column: state, action and, if present, object poses."""
    images: dict[str, Tensor]
    """Steps x 3 x height x width in 0 to 255, by column."""
    ends: Tensor
    """End of each episode: one past its last step."""

    @property
    def starts(self) -> Tensor:
        """First step of each episode."""
        return torch.cat([torch.zeros(1, dtype=torch.long), self.ends[:-1]])


def load_demonstrations(
    source: str | Path,
    environment: Environment,
    *,
    images: bool,
    objects: bool,
    episodes: int | None = None,
) -> Demonstrations:
    """Read the episodes of an environment's task, after checking that they fit it.

    Args:
        source: A dataset's folder, or its name on the hub, e.g. ``HuggingFaceVLA/libero``.
        environment: The task, with the desired cameras and image size.
        images: Whether to read images; they are scaled to the environment's size.
        objects: Whether to read object poses.
        episodes: How many of the episodes to read; default: all.
    """
    # Do all checks before reading, which may take minutes.
    metadata, options = _open(source)
    wanted = {STATE: len(environment.state_names), ACTION: len(environment.action_names)}
    if objects:
        wanted[OBJECTS] = len(environment.object_names)
    cameras = [image_key(camera) for camera in environment.cameras] if images else []
    _check_origin(Path(metadata.root), environment.task)
    _check_columns(source, metadata.features, wanted, cameras, environment.task)
    chosen = _episodes_of(source, metadata, environment.task)
    if episodes is not None and episodes > len(chosen):
        raise DemonstrationsError(
            f"{source} has {len(chosen)} demonstration{'' if len(chosen) == 1 else 's'} of "
            f"{environment.task.name}, fewer than the {episodes} requested."
        )
    chosen = chosen[:episodes]
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    # Read all numeric columns at once; images are decoded one by one.
    every = len(chosen) == metadata.total_episodes
    dataset = LeRobotDataset(episodes=None if every else chosen, **options)
    table: Any = dataset.hf_dataset
    columns = table.select_columns(list(wanted)).with_format("numpy")[:]
    vectors = {key: torch.from_numpy(np.stack(columns[key]).astype(np.float32)) for key in wanted}
    for key, values in vectors.items():
        if not torch.isfinite(values).all():
            raise DemonstrationsError(f"Column {key} of {source} has values that are not finite.")
    lengths = [int(metadata.episodes[index]["length"]) for index in chosen]
    images_of = {key: _read_images(dataset, key, environment.image_size) for key in cameras}
    return Demonstrations(vectors, images_of, torch.tensor(lengths).cumsum(0))


def _open(source: str | Path) -> tuple[Any, dict[str, Any]]:
    """Return a dataset's metadata and how to open it."""
    try:
        from lerobot.datasets.lerobot_dataset import LeRobotDatasetMetadata
    except ImportError as error:
        raise missing_extra("Reading demonstrations", "manipulation", error) from error
    folder = Path(source)
    if (folder / "meta" / "info.json").is_file():
        options: dict[str, Any] = {"repo_id": f"local/{folder.name}", "root": folder}
    elif folder.exists():
        raise DemonstrationsError(
            f"{folder} is not a LeRobotDataset (no meta/info.json). Create one with prism record."
        )
    elif (partial := folder.with_name(f"{folder.name}.partial")).exists():
        raise DemonstrationsError(
            f"{folder} is not complete yet: its demonstrations are in {partial}. Run the "
            "interrupted prism record command again."
        )
    else:
        options = {"repo_id": str(source)}
    try:
        return LeRobotDatasetMetadata(**options), options
    except Exception as error:  # the hub fails in many ways
        if "root" in options:
            raise DemonstrationsError(f"{folder} cannot be read: {error}") from error
        raise DemonstrationsError(
            f"No dataset found at {source}, and it cannot be fetched from the hub "
            f"({type(error).__name__}). Create one with prism record, or connect to the hub."
        ) from error


def _check_origin(root: Path, task: Task) -> None:
    """Reject demonstrations that prism recorded for another task."""
    file = root / ORIGIN
    if not file.is_file():
        return
    made = json.loads(file.read_text())["collection"]
    if (made["suite"], made["task"]) != (task.suite, task.name):
        raise DemonstrationsError(
            f"{root} shows {made['suite']} {made['task']}, not {task.suite} {task.name}. Give "
            f"other demonstrations, or train on that task."
        )


def _check_columns(
    source: str | Path,
    features: dict[str, Any],
    vectors: dict[str, int],
    images: Sequence[str],
    task: Task,
) -> None:
    """Reject datasets that lack a column or are from another robot."""
    for key in (*vectors, *images):
        if key not in features:
            hint = ""
            if key == OBJECTS:
                hint = (
                    " Only prism record records object poses; to use images, choose another preset."
                )
            elif key in images:
                hint = " Record images with prism record --image-size 64."
            raise DemonstrationsError(
                f"{source} has no column {key}; it has: {', '.join(sorted(features))}.{hint}"
            )
    for key, size in vectors.items():
        found = tuple(features[key]["shape"])
        if found != (size,):
            raise DemonstrationsError(
                f"Column {key} of {source} has shape {list(found)}, but {task.suite} {task.name} "
                f"has {size} values there. The dataset was made for another robot or task."
            )


def _episodes_of(source: str | Path, metadata: Any, task: Task) -> list[int]:
    """Return the episodes with the task's instruction."""
    instruction = task.instruction.strip().lower()
    chosen = [
        index
        for index in range(metadata.total_episodes)
        if instruction in (text.strip().lower() for text in metadata.episodes[index]["tasks"])
    ]
    if not chosen:
        known = sorted(str(name) for name in metadata.tasks.index)
        raise DemonstrationsError(
            f"{source} has no demonstration of '{task.instruction}'; it has: "
            f"{'; '.join(known[:5])}{' and more' if len(known) > 5 else ''}."
        )
    return chosen


def _read_images(dataset: Any, key: str, size: int) -> Tensor:
    """Decode all images of a camera."""
    from PIL import Image

    decoded = torch.empty((len(dataset), 3, size, size), dtype=torch.uint8)
    if dataset.meta.features[key]["dtype"] == "video":
        source = ((dataset[index][key] * 255).byte().permute(1, 2, 0).numpy()
                  for index in range(len(dataset)))  # fmt: skip
        images = (Image.fromarray(array) for array in source)
    else:
        rows = dataset.hf_dataset.select_columns([key]).with_format(None)
        images = (row[key] for row in rows)
    with Progress(f"Reading {key}", len(dataset)) as progress:
        for index, image in enumerate(images):
            if image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BOX)
            array = np.array(image.convert("RGB"))
            decoded[index] = torch.from_numpy(array).permute(2, 0, 1)
            progress.step()
    return decoded
