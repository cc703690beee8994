"""Episodes that a person records one by one, and the dataset that is made of them.

A take is on disk as soon as it is kept. The dataset is written anew from all takes, in a thread,
after every change, because LeRobot can neither take an episode back nor survive a kill while it
appends. While a session lasts, its takes are beside the dataset::

    OUT                      the dataset, with the takes of a moment ago
    OUT.takes/
        takes.json           what is recorded, and the takes in their order
        000000.npz           a take

They go when the session ends in order. The next one gets them back from the dataset, whose images
are stored without loss; after a kill it finds them where they are.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import InputError, PrismError, find_mistake
from prism_motor._extras import missing_extra
from prism_motor.manipulation.demonstrations.dataset import (
    ACTION,
    OBJECTS,
    ORIGIN,
    STATE,
    image_key,
    make_features,
    write_dataset,
)
from prism_motor.manipulation.demonstrations.images import ImageColumn
from prism_motor.manipulation.demonstrations.recording import (
    Demonstration,
    load_demonstration,
    save_demonstration,
)
from prism_motor.runs import collect_provenance
from prism_motor.runs.atomic import remove_folder, write_json
from prism_motor.runs.locks import Lock

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment

BY_HAND = "prism teleop"
"""Who recorded a dataset, in its origin."""


@dataclass(frozen=True)
class Take:
    """A kept episode."""

    number: int
    """Number of its file."""
    seed: int
    """Seed of the reset."""
    frames: int
    """Number of steps."""
    success: bool
    """Whether the task was solved at its end."""


class Takes:
    """The kept episodes of one dataset; nobody else may change it meanwhile.

    Args:
        out: Folder of the dataset; it may exist if it is one of the same kind.
        environment: Where the episodes are recorded.

    Attributes:
        kept: The episodes so far.
        failure: Why the dataset could not be written; empty if it could.
    """

    def __init__(self, out: Path, environment: Environment) -> None:
        _import_dataset()  # before a person works for nothing
        self.out, self.task = out, environment.task
        self._rate = round(1 / environment.control_seconds)
        self._features = make_features(environment, images=True)
        self._cameras, self._size = tuple(environment.cameras), environment.image_size
        self.folder = out.with_name(f"{out.name}.takes")
        self._index = self.folder / "takes.json"
        found = self._index.is_file()
        kept = self._read_index() if found else self._read_origin()
        # From here on, this session owns the dataset.
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(
            self.folder / "lock", f"{out} is being recorded by {{owner}}. Choose another folder."
        )
        self._lock.acquire()
        self.kept: list[Take] = kept
        self.failure = ""
        self._next = 1 + max((take.number for take in kept), default=-1)
        if not found:
            self._unpack()
            self._write_index()
        # After a kill, the dataset may lack the newest takes.
        self._changes = threading.Condition()
        self._wanted, self._written, self._closing = int(found), 0, False
        self._free = threading.Event()
        self._free.set()
        self._writer = threading.Thread(target=self._write_changes, name="takes", daemon=True)
        self._writer.start()

    @property
    def writing(self) -> bool:
        """Whether the dataset lacks the newest changes."""
        return self._written != self._wanted

    def keep(self, demonstration: Demonstration, *, seed: int, success: bool) -> Take:
        """Put an episode on disk; the dataset follows."""
        take = Take(self._next, seed, len(demonstration), success)
        save_demonstration(demonstration, self._file(take))
        self._change([*self.kept, take])
        self._next += 1
        return take

    def undo(self) -> Take:
        """Remove the last episode and return what it was."""
        if not self.kept:
            raise InputError("There is no kept episode to take back.")
        *others, last = self.kept
        self._change(others)
        return last

    def hold(self, still: bool) -> None:
        """Let the writer rest while an episode is recorded; it would make the arm stutter."""
        if still:
            self._free.clear()
        else:
            self._free.set()

    def close(self) -> None:
        """Wait until the dataset is complete; raise if it cannot be."""
        with self._changes:
            self._closing = True
            self._changes.notify()
        self._free.set()
        self._writer.join()
        if not self.failure:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()
        if self.failure:
            raise PrismError(
                f"{self.out} could not be written: {self.failure} The episodes stay in "
                f"{self.folder}; the same command continues with them."
            )

    def _change(self, kept: list[Take]) -> None:
        before, self.kept = self.kept, kept
        try:
            self._write_index()
        except OSError:
            self.kept = before
            raise
        with self._changes:
            self._wanted += 1
            self._changes.notify()

    def _write_changes(self) -> None:
        """Write the dataset after changes, until the end; runs in its own thread."""
        while True:
            with self._changes:
                while not (self.writing or self._closing):
                    self._changes.wait()
                if not self.writing:
                    return
                change, kept = self._wanted, self.kept
            self._free.wait()
            try:
                self._write(kept)
                self.failure = ""
            except Exception as error:
                self.failure = find_mistake(error) or f"{type(error).__name__}: {error}"
            self._written = change

    def _write(self, kept: list[Take]) -> None:
        if not kept:
            remove_folder(self.out)
        else:
            write_dataset(
                self.out,
                (load_demonstration(self._file(take)) for take in kept),
                features=self._features,
                frames_per_second=self._rate,
                suite=self.task.suite,
                instruction=self.task.instruction,
                origin=self._origin(kept),
                report=self._rest,
                overwrite=True,
            )
        # Files of takes that were taken back; newer ones have higher numbers.
        wanted = {self._file(take) for take in (*kept, *self.kept)}
        for file in self.folder.glob("*.npz"):
            if file not in wanted and int(file.stem) < self._next:
                file.unlink(missing_ok=True)

    def _rest(self) -> None:
        self._free.wait()

    def _origin(self, kept: list[Take]) -> dict[str, Any]:
        return {
            "collection": {
                "suite": self.task.suite,
                "task": self.task.name,
                "episodes": len(kept),
                "image_size": self._size,
                "renderer": "fast",
            },
            "recorded_with": BY_HAND,
            "takes": [asdict(take) for take in kept],
            "provenance": collect_provenance(),
        }

    def _file(self, take: Take) -> Path:
        return self.folder / f"{take.number:06d}.npz"

    def _settings(self) -> dict[str, Any]:
        """Return what all episodes of a dataset have in common."""
        return {
            "suite": self.task.suite,
            "task": self.task.name,
            "frames per second": self._rate,
            "cameras": list(self._cameras),
            "image size": self._size,
            "joints and units": self._features[ACTION]["names"],
        }

    def _check(self, where: Path, found: dict[str, Any]) -> None:
        """Refuse to append to episodes of another kind."""
        for what, wanted in self._settings().items():
            if found.get(what) != wanted:
                raise InputError(
                    f"{where} was recorded with {what} {_say(found.get(what))}, not "
                    f"{_say(wanted)}. Give the same settings, or another folder."
                )

    def _write_index(self) -> None:
        takes = [asdict(take) for take in self.kept]
        write_json(self._index, {"settings": self._settings(), "takes": takes})

    def _read_index(self) -> list[Take]:
        index = _read_json(self._index)
        self._check(self.folder, index.get("settings", {}))
        kept = _read_takes(self._index, index)
        for take in kept:
            try:
                load_demonstration(self._file(take))  # better now than after an hour of recording
            except (OSError, InputError) as error:
                raise InputError(
                    f"{self._file(take)} is missing or damaged. Delete {self.folder} to go on with "
                    f"the episodes that {self.out} has."
                ) from error
        return kept

    def _read_origin(self) -> list[Take]:
        """Return the takes of an existing dataset, after checking that more fit into it."""
        if not self.out.exists():
            return []
        info, origin = self.out / "meta" / "info.json", self.out / ORIGIN
        if self.out.is_dir() and not any(self.out.iterdir()):
            self.out.rmdir()
            return []
        made = _read_json(origin) if origin.is_file() and info.is_file() else {}
        if made.get("recorded_with") != BY_HAND:
            raise InputError(
                f"{self.out} exists and was not recorded with {BY_HAND}. Choose another folder."
            )
        stored = _read_json(info)
        features = stored["features"]
        shown = [one for one in self._cameras if image_key(one) in features]
        others = {key for key in features if key.startswith("observation.images.")}
        others -= {image_key(one) for one in shown}
        sizes = {features[image_key(one)]["shape"][0] for one in shown}
        self._check(
            self.out,
            {
                "suite": made["collection"]["suite"],
                "task": made["collection"]["task"],
                "frames per second": stored["fps"],
                "cameras": [*shown, *(key.rpartition(".")[2] for key in sorted(others))],
                "image size": sizes.pop() if len(sizes) == 1 else None,
                "joints and units": features[ACTION]["names"],
            },
        )
        takes = _read_takes(origin, made)
        if len(takes) != stored["total_episodes"]:
            raise InputError(
                f"{self.out} has {stored['total_episodes']} episodes, but {ORIGIN} lists "
                f"{len(takes)}: something else changed it. Choose another folder."
            )
        return takes

    def _unpack(self) -> None:
        """Get the takes of an existing dataset back."""
        for take, demonstration in zip(self.kept, self._stored(), strict=True):
            save_demonstration(demonstration, self._file(take))

    def _stored(self) -> Iterator[Demonstration]:
        """Yield the episodes of the dataset."""
        if not self.kept:
            return
        dataset = _import_dataset()(f"local/{self.out.name}", root=self.out)
        table: Any = dataset.hf_dataset
        columns = table.select_columns([STATE, OBJECTS, ACTION]).with_format("numpy")[:]
        vectors = {key: np.stack(values).astype(np.float32) for key, values in columns.items()}
        images = {
            camera: ImageColumn(dataset, image_key(camera), self._size) for camera in self._cameras
        }
        start = 0
        for take in self.kept:
            steps = range(start, start + take.frames)
            start += take.frames
            yield Demonstration(
                vectors[STATE][steps],
                vectors[OBJECTS][steps],
                vectors[ACTION][steps],
                {
                    camera: np.stack([column[i].permute(1, 2, 0).numpy() for i in steps])
                    for camera, column in images.items()
                },
            )


def _import_dataset() -> Any:
    try:
        from lerobot.datasets.lerobot_dataset import LeRobotDataset
    except ImportError as error:
        raise missing_extra("Recording demonstrations", "manipulation", error) from error
    return LeRobotDataset


def _read_takes(file: Path, found: dict[str, Any]) -> list[Take]:
    try:
        return [Take(**take) for take in found["takes"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{file} lists no takes: {error}. Choose another folder.") from error


def _read_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
        assert isinstance(found, dict)
    except (ValueError, AssertionError) as error:
        raise InputError(f"{file} cannot be read: {error}. Choose another folder.") from error
    return found


def _say(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
