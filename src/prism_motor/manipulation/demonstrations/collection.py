"""Collecting demonstrations: interrupted at any time, it goes on where it was.

Every attempt has its own seed, so a collection that was interrupted ends with the same episodes as
one that was not. Attempts are kept beside the dataset until all are there::

    OUT.partial/
        collection.json      what is being collected
        000000.npz           a demonstration
        000001.failed        an attempt that did not solve the task
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from prism_motor._errors import InputError
from prism_motor.manipulation import workers as pool
from prism_motor.manipulation.demonstrations.episode import load_episode, record, save_episode
from prism_motor.manipulation.demonstrations.features import make_features
from prism_motor.manipulation.demonstrations.writing import ORIGIN, write_dataset
from prism_motor.manipulation.environment import Environment
from prism_motor.manipulation.make import make_environment, make_expert
from prism_motor.manipulation.tasks import Task, find_task
from prism_motor.nn.checks import check_size
from prism_motor.runs import collect_provenance
from prism_motor.runs.atomic import write_json

SEEDS_APART = 1_000_000
"""Attempts that fit between two seeds."""


@dataclass(frozen=True)
class CollectionConfig:
    """What to collect."""

    suite: str
    """The suite."""
    task: str
    """Name of the task."""
    episodes: int = 50
    """Demonstrations that solve the task."""
    image_size: int = 64
    """Side of the images, pixels; 0 for none."""
    seed: int = 1
    """Seed of resets and experts."""
    hold: int = 8
    """Steps recorded after success."""
    noise: float = 0.0
    """Standard deviation of what is added to the hand's actions when they are executed."""

    def __post_init__(self) -> None:
        check_size("demonstrations", "episodes", self.episodes)
        for name in ("image_size", "seed", "hold", "noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be 0 or more, got {getattr(self, name)}.")

    @property
    def most_attempts(self) -> int:
        """After how many attempts an expert that fails too often is given up on."""
        return 3 * self.episodes + 10


class Collection:
    """Demonstrations being collected for a dataset.

    Args:
        config: What to collect.
        out: The dataset's folder; it must not exist.
        workers: Processes that record; 0 for this one.
    """

    def __init__(self, config: CollectionConfig, out: Path, workers: int = 0) -> None:
        self.config, self.out = config, out
        self.task: Task = find_task(config.suite, config.task)
        if out.exists():
            raise InputError(
                f"{out} exists already{_describe(out)}. Choose another folder by --out."
            )
        self.workers = workers
        self.folder = out.with_name(f"{out.name}.partial")
        file = self.folder / "collection.json"
        wanted = asdict(config)
        if file.is_file():
            found = json.loads(file.read_text())
            if found != wanted:
                raise InputError(
                    f"{self.folder} holds an unfinished collection with other settings: {found}. "
                    "Go on with the same settings, delete it, or choose another folder by --out."
                )
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(file, wanted)

    @property
    def done(self) -> list[Path]:
        """Demonstrations so far."""
        return sorted(self.folder.glob("*.npz"))

    @property
    def failures(self) -> list[int]:
        """Attempts that did not solve the task."""
        return sorted(int(file.stem) for file in self.folder.glob("*.failed"))

    def collect(self, report: Callable[[bool], None] | None = None) -> None:
        """Record what is missing; ``report`` is told after every attempt whether it succeeded."""
        crashed: list[str] = []

        def note(done: pool.Outcome[bool]) -> None:
            if done.record is None:
                crashed.append(f"{done.episode}: {done.failure}")
            elif report is not None:
                report(done.record)

        make_recorder = partial(Recorder, self.task, self.config, self.folder)
        recorder = None if self.workers or not self._next_attempts() else make_recorder()
        try:
            while attempts := self._next_attempts():
                seeds = [SEEDS_APART * self.config.seed + attempt for attempt in attempts]
                pool.run_episodes(
                    make_recorder if recorder is None else recorder.itself,
                    [pool.Episode(self.task, seed=seed) for seed in seeds],
                    workers=self.workers,
                    on_done=note,
                )
                if crashed:
                    raise ChildProcessError(
                        f"The simulator crashed again and again ({crashed[0]}). What is done stays "
                        f"in {self.folder}; the same command goes on."
                    )
        finally:
            if recorder is not None:
                recorder.environment.close()

    def _next_attempts(self) -> list[int]:
        """Return as many attempts as there are demonstrations missing, the first not made yet.

        However attempts are spread over processes and calls, the same ones are made in the end.
        """
        missing = self.config.episodes - len(self.done)
        made = {int(file.stem) for file in self.done} | set(self.failures)
        if missing > 0 and len(made) >= self.config.most_attempts:
            raise InputError(
                f"The expert solved {self.task.name} in {len(self.done)} of {len(made)} attempts "
                f"only, too few for {self.config.episodes} demonstrations. Those there are stay in "
                f"{self.folder}; ask for fewer episodes."
            )
        free = (attempt for attempt in count() if attempt not in made)
        return list(islice(free, max(0, missing)))

    def finish(self, report: Callable[[], None] | None = None) -> dict[str, Any]:
        """Write the dataset, remove the attempts and return what the dataset says of itself."""
        environment = _make_environment(self.task, self.config)
        try:
            features = make_features(environment, images=self.config.image_size > 0)
            rate = round(1 / environment.control_seconds)
        finally:
            environment.close()
        failures = self.failures
        origin = {
            "collection": asdict(self.config),
            "attempts": len(self.done) + len(failures),
            "failed_attempts": failures,
            "provenance": collect_provenance(),
        }
        write_dataset(
            self.out,
            (load_episode(file) for file in self.done),
            features=features,
            frames_per_second=rate,
            suite=self.task.suite,
            instruction=self.task.instruction,
            origin=origin,
            report=report,
        )
        shutil.rmtree(self.folder)
        return origin


class Recorder:
    """Makes attempts and keeps what came of them, here or in a process of its own.

    Args:
        task: What to record.
        config: How.
        folder: Where to keep it.
    """

    def __init__(self, task: Task, config: CollectionConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.environment = _make_environment(task, config)

    def itself(self) -> Recorder:
        """Return this, for rounds of attempts that share it."""
        return self

    def __call__(self, episode: pool.Episode) -> bool:
        """Make one attempt; say whether it solved the task."""
        assert episode.seed is not None
        attempt = episode.seed - SEEDS_APART * self.config.seed
        expert = make_expert(self.environment)
        found = record(
            self.environment,
            expert,
            seed=episode.seed,
            hold=self.config.hold,
            images=self.config.image_size > 0,
            noise=self.config.noise,
        )
        if found is None:
            (self.folder / f"{attempt:06d}.failed").touch()
            return False
        save_episode(found, self.folder / f"{attempt:06d}.npz")
        return True


def _make_environment(task: Task, config: CollectionConfig) -> Environment:
    if config.image_size == 0:
        return make_environment(task, cameras=())
    return make_environment(task, image_size=config.image_size)


def _describe(out: Path) -> str:
    """Say what a folder holds, if it is a dataset of ours."""
    try:
        found = json.loads((out / ORIGIN).read_text())["collection"]
        return f" with {found['episodes']} demonstrations of {found['suite']} {found['task']}"
    except (OSError, ValueError, KeyError):
        return ""
