"""What a trial leaves on disk: states, actions, and a video of every camera."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prism_motor.pilots.layout import trial_file
from prism_motor.runs.atomic import atomic_file
from prism_motor.sim.video_files import write_video

Image = NDArray[np.uint8]


class _Film:
    """Writes a video in a thread, so that the control loop does not wait for it."""

    def __init__(self, file: Path, rate: float) -> None:
        self._frames: queue.Queue[Image | None] = queue.Queue()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._write, args=(file, rate), daemon=True)
        self._thread.start()

    def add(self, image: Image) -> None:
        self._frames.put(image.copy())  # a camera may reuse its memory

    def close(self) -> None:
        self._frames.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write(self, file: Path, rate: float) -> None:
        try:
            write_video(file, self._iterate(), rate)
        except Exception as error:
            self._error = error

    def _iterate(self) -> Iterator[Image]:
        while (image := self._frames.get()) is not None:
            yield image


class Recorder:
    """Records one trial.

    Args:
        folder: The pilot's folder.
        number: The trial.
        cameras: Names of the cameras.
        fps: Control steps per second.
    """

    def __init__(self, folder: Path, number: int, cameras: tuple[str, ...], fps: int) -> None:
        self.folder, self.number, self.cameras, self.fps = folder, number, cameras, fps
        self._films: dict[str, _Film] = {}
        self._rows: list[tuple[float, NDArray, NDArray, NDArray]] = []

    def add(
        self,
        time: float,
        state: NDArray[np.floating],
        images: Mapping[str, Image],
        action: NDArray[np.floating],
        sent: NDArray[np.floating],
    ) -> None:
        """Add a control step.

        Args:
            time: Seconds since the start, by the wall clock.
            state: The robot's state.
            images: Images by camera.
            action: What the policy wanted.
            sent: What the robot was told, which may be limited.
        """
        self._rows.append((time, state, action, sent))
        for camera in self.cameras:
            if camera not in self._films:  # with the first image: a video needs one
                file = trial_file(self.folder, self.number, f"-{camera}.mp4")
                self._films[camera] = _Film(file, self.fps)
            self._films[camera].add(images[camera])

    @property
    def times(self) -> list[float]:
        """Times of the control steps."""
        return [row[0] for row in self._rows]

    def close(self, names: Mapping[str, tuple[str, ...]]) -> None:
        """Write everything; each file appears when it is complete.

        Args:
            names: Names of the coordinates of ``state`` and ``action``.
        """
        for film in self._films.values():
            film.close()
        columns = list(zip(*self._rows, strict=True)) or [(), (), (), ()]
        arrays = {
            "time": np.array(columns[0], dtype=np.float64),
            "state": np.array(columns[1], dtype=np.float32),
            "action": np.array(columns[2], dtype=np.float32),
            "sent": np.array(columns[3], dtype=np.float32),
            **{f"{key}_names": np.array(value) for key, value in names.items()},
        }
        with atomic_file(trial_file(self.folder, self.number, ".npz")) as stream:
            np.savez_compressed(stream, **arrays)
