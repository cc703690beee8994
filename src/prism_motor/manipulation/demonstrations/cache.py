"""Demonstrations ready for training: any LeRobotDataset, read once.

Reading a LeRobotDataset item by item costs tens of milliseconds; here all numbers are in memory,
and images too unless they are too many.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.dataset import (
    ACTION,
    OBJECTS,
    ORIGIN,
    STATE,
    image_key,
)
from prism_motor.manipulation.demonstrations.images import (
    MOST_BYTES,
    ImageColumn,
    StoredImages,
    join_images,
)
from prism_motor.manipulation.environment import SMALLEST_RANGE

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment
    from prism_motor.manipulation.tasks import Task

_STATED_RATES = {("panda", 20): 10}
"""Rate that public demonstrations of LIBERO state, by their robot and the rate at which it runs."""


class DemonstrationsError(InputError):
    """A dataset is missing or does not fit the task."""


@dataclass(frozen=True)
class Demonstrations:
    """All steps of all episodes, concatenated."""

    vectors: dict[str, Tensor]
    """Steps x size, by column: state, action and, if present, object poses."""
    images: dict[str, Tensor | StoredImages]
    """Steps x 3 x height x width in 0 to 255, by column."""
    ends: Tensor
    """End of each episode: one past its last step."""
    instructions: tuple[str, ...] = ()
    """Instruction of each episode."""
    smallest_range: float = SMALLEST_RANGE
    """Narrower ranges of state and action are widened to this when they are scaled."""

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
    tasks: Sequence[Task] | None = None,
) -> Demonstrations:
    """Read the episodes of an environment's task, after checking that they fit it.

    Args:
        source: A dataset's folder, or its name on the hub, e.g. ``HuggingFaceVLA/libero``.
        environment: The task, with the desired cameras and image size.
        images: Whether to read images; they are scaled to the environment's size.
        objects: Whether to read object poses.
        episodes: How many of the episodes of each task to read; default: all.
        tasks: Tasks of the same robot to read instead of the environment's.
    """
    chosen = tasks or (environment.task,)
    opened = open_demonstrations(source, environment, chosen, images, objects, episodes)
    return opened.read()


@dataclass(frozen=True)
class OpenDemonstrations:
    """Demonstrations that were checked and can be read."""

    source: str | Path
    """Where they are."""
    metadata: Any
    """LeRobot's description of the dataset."""
    options: dict[str, Any]
    """How LeRobot opens it."""
    episodes: dict[int, str]
    """Instructions of the chosen episodes by number, in the order of the dataset."""
    vectors: tuple[str, ...]
    """Numeric columns to read."""
    cameras: tuple[str, ...]
    """Image columns to read."""
    image_size: int
    """Side that images are scaled to, pixels."""
    smallest_range: float
    """Narrower ranges of state and action are widened to this when they are scaled."""

    def read(self) -> Demonstrations:
        """Read everything; this may take minutes."""
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        chosen = list(self.episodes)
        every = len(chosen) == self.metadata.total_episodes
        dataset = LeRobotDataset(episodes=None if every else chosen, **self.options)
        # Read all numeric columns at once.
        table: Any = dataset.hf_dataset
        columns = table.select_columns(list(self.vectors)).with_format("numpy")[:]
        vectors = {
            key: torch.from_numpy(np.stack(columns[key]).astype(np.float32)) for key in self.vectors
        }
        for key, values in vectors.items():
            if not torch.isfinite(values).all():
                raise DemonstrationsError(
                    f"Column {key} of {self.source} has values that are not finite."
                )
        lengths = [int(self.metadata.episodes[index]["length"]) for index in chosen]
        stored = {key: ImageColumn(dataset, key, self.image_size) for key in self.cameras}
        fits = sum(column.bytes for column in stored.values()) <= MOST_BYTES
        images: dict[str, Tensor | StoredImages] = {
            key: column.decode() if fits else StoredImages([column])
            for key, column in stored.items()
        }
        said = tuple(self.episodes.values())
        ends = torch.tensor(lengths).cumsum(0)
        return Demonstrations(vectors, images, ends, said, self.smallest_range)


def open_demonstrations(
    source: str | Path,
    environment: Environment,
    tasks: Sequence[Task],
    images: bool,
    objects: bool,
    episodes: int | None,
) -> OpenDemonstrations:
    """Check that a dataset has what is needed, before reading, which may take minutes."""
    metadata, options = _open(source)
    wanted = {STATE: len(environment.state_names), ACTION: len(environment.action_names)}
    if objects:
        wanted[OBJECTS] = len(environment.object_names)
    cameras = [image_key(camera) for camera in environment.cameras] if images else []
    _check_origin(Path(metadata.root), tasks)
    _check_columns(source, metadata.features, wanted, cameras, environment.task)
    _check_rate(source, metadata, environment)
    chosen: dict[int, str] = {}
    for task in tasks:
        found = _episodes_of(source, metadata, task)
        if episodes is not None and episodes > len(found):
            raise DemonstrationsError(
                f"{source} has {len(found)} demonstration{'' if len(found) == 1 else 's'} of "
                f"{task.name}, fewer than the {episodes} requested."
            )
        chosen |= dict.fromkeys(found[:episodes], task.instruction)
    return OpenDemonstrations(
        source, metadata, options, dict(sorted(chosen.items())), tuple(wanted), tuple(cameras),
        environment.image_size, environment.smallest_range,
    )  # fmt: skip


def join_demonstrations(parts: Sequence[Demonstrations]) -> Demonstrations:
    """Return several demonstrations, of the same columns, as one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    ends: list[Tensor] = []
    for part in parts:
        ends.append(part.ends + (ends[-1][-1] if ends else 0))
    return Demonstrations(
        {key: torch.cat([part.vectors[key] for part in parts]) for key in first.vectors},
        {key: join_images([part.images[key] for part in parts]) for key in first.images},
        torch.cat(ends),
        tuple(said for part in parts for said in part.instructions),
        first.smallest_range,
    )


class Drawing(NamedTuple):
    """How the images of demonstrations were drawn."""

    renderer: str
    """``fast`` or ``stock``."""
    size: int
    """Side, pixels."""


def read_drawing(source: str | Path, cameras: Sequence[str]) -> Drawing | None:
    """Return how the images of a dataset were drawn; ``None`` if it has none of these cameras.

    What prism did not record was drawn by the suite's own renderer.

    Args:
        source: A dataset's folder or its name on the hub.
        cameras: Names of the cameras.
    """
    metadata, _ = _open(source)
    found = [metadata.features.get(image_key(camera)) for camera in cameras]
    sizes = [int(feature["shape"][0]) for feature in found if feature]
    if not sizes:
        return None
    made = _origin(Path(metadata.root))
    return Drawing("stock" if made is None else made.get("renderer", "fast"), sizes[0])


def _origin(root: Path) -> dict[str, Any] | None:
    """Return the settings with which prism recorded a dataset; ``None`` if it did not."""
    file = root / ORIGIN
    return json.loads(file.read_text())["collection"] if file.is_file() else None


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


def _check_origin(root: Path, tasks: Sequence[Task]) -> None:
    """Reject demonstrations that prism recorded for another task."""
    made = _origin(root)
    if made is None:
        return
    if (made["suite"], made["task"]) not in [(task.suite, task.name) for task in tasks]:
        wanted = ", ".join(f"{task.suite} {task.name}" for task in tasks)
        raise DemonstrationsError(
            f"{root} shows {made['suite']} {made['task']}, not {wanted}. Give "
            f"other demonstrations, or train on that task."
        )


def _check_rate(source: str | Path, metadata: Any, environment: Environment) -> None:
    """Reject datasets of another control rate, whose actions would mean other motions."""
    rate = round(1 / environment.control_seconds)
    if metadata.fps not in (rate, _STATED_RATES.get((metadata.robot_type, rate))):
        raise DemonstrationsError(
            f"{source} has {metadata.fps:g} steps per second, but {environment.task.suite} has "
            f"{rate}: it was recorded on another robot, or not at every step."
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
