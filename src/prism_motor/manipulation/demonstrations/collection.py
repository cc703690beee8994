"""Collecting demonstrations; an interrupted collection continues where it stopped.

Every attempt has its own seed, so an interrupted collection ends with the same episodes as an
uninterrupted one. Attempts are stored next to the dataset until all are done::

    OUT.partial/
        collection.json      what is being collected
        000000.npz           a demonstration
        000001.failed        an attempt that did not solve the task
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from prism_motor._checks import InputError, check_choice
from prism_motor._ranges import Checked, Seed, between
from prism_motor._workers import WorkerError
from prism_motor.manipulation.demonstrations.dataset import ORIGIN, make_features, write_dataset
from prism_motor.manipulation.demonstrations.recording import (
    load_demonstration,
    record_demonstration,
    save_demonstration,
)
from prism_motor.manipulation.tasks import Task, find_task, make_environment, make_expert
from prism_motor.manipulation.workers import EpisodeJob, EpisodeResult, run_episodes
from prism_motor.runs import collect_provenance
from prism_motor.runs.atomic import write_json
from prism_motor.sim.sensing import RENDERERS

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment

SEEDS_APART = 1_000_000
"""Number of attempts reserved per seed."""


def demonstrations(number: int) -> str:
    """Return e.g. "1 demonstration" or "2 demonstrations"."""
    return f"{number} demonstration{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class CollectionConfig(Checked):
    """What to collect; every field is an option of the command."""

    suite: str = "metaworld"
    """The suite; metaworld needs no downloads."""
    task: str = "reach-v3"
    """Name or number of the task."""
    episodes: Annotated[int, between(1, 100_000)] = 50
    """Number of demonstrations; only attempts that solve the task count."""
    image_size: Annotated[int, between(0, 4096)] = 64
    """Side of the images, pixels; 0 records none, which is faster and enough for the preset
    state."""
    renderer: str = "fast"
    """How images are drawn: fast, or stock (by the suite's own renderer, for the preset paper)."""
    seed: Seed = 1
    """Seed of resets and noise."""
    hold: Annotated[int, between(0, 100_000)] = 8
    """Steps recorded after success."""
    noise: Annotated[float, between(0, 100)] = 0.0
    """Standard deviation of noise on the executed actions of the hand, in their unit (so101:
    degrees); the actions are recorded without it, so that demonstrations show how to recover."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("renderer", self.renderer, RENDERERS)

    @property
    def most_attempts(self) -> int:
        """Number of attempts after which to give up."""
        return 3 * self.episodes + 10


class DemonstrationCollection:
    """Demonstrations being collected for a dataset.

    Args:
        config: What to collect; its task may be a name or a number.
        out: The dataset's folder; it must not exist.
        workers: Number of processes that record; 0: this one.
    """

    def __init__(self, config: CollectionConfig, out: Path, workers: int = 0) -> None:
        self.task: Task = find_task(config.suite, config.task)
        self.config, self.out = replace(config, task=self.task.name), out
        if out.exists():
            raise InputError(
                f"{out} already exists{_describe(out)}. Choose another folder with --out."
            )
        self.workers = workers
        self.folder = out.with_name(f"{out.name}.partial")
        file = self.folder / "collection.json"
        wanted = asdict(self.config)
        if file.is_file():
            found = {"renderer": "fast", **json.loads(file.read_text())}
            if found != wanted:
                raise InputError(
                    f"{self.folder} holds an unfinished collection with other settings: {found}. "
                    "Continue with the same settings, delete it, or choose another folder with "
                    "--out."
                )
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(file, wanted)

    @property
    def done(self) -> list[Path]:
        """Files of the demonstrations so far."""
        return sorted(self.folder.glob("*.npz"))

    @property
    def failures(self) -> list[int]:
        """Numbers of the attempts that did not solve the task."""
        return sorted(int(file.stem) for file in self.folder.glob("*.failed"))

    def collect(self, report: Callable[[bool], None] | None = None) -> None:
        """Record what is missing; ``report`` is told after every attempt if it succeeded."""
        crashed: list[str] = []

        def note(done: EpisodeResult[bool]) -> None:
            if done.result is None:
                crashed.append(f"{done.job}: {done.failure}")
            elif report is not None:
                report(done.result)

        make_recorder = partial(AttemptRecorder, self.task, self.config, self.folder)
        # Without workers, all rounds of attempts share one environment.
        shared = None if self.workers or not self._next_attempts() else make_recorder()
        try:
            while attempts := self._next_attempts():
                seeds = [SEEDS_APART * self.config.seed + attempt for attempt in attempts]
                run_episodes(
                    make_recorder if shared is None else lambda: shared,
                    [EpisodeJob(self.task, seed=seed) for seed in seeds],
                    workers=self.workers,
                    on_done=note,
                )
                if crashed:
                    raise WorkerError(
                        f"The simulator crashed repeatedly ({crashed[0]}). Finished attempts stay "
                        f"in {self.folder}; the same command continues."
                    )
        finally:
            if shared is not None:
                shared.environment.close()

    def _next_attempts(self) -> list[int]:
        """Return the next attempts to make, as many as there are demonstrations missing.

        The set of attempts made in the end does not depend on processes and interruptions.
        """
        missing = self.config.episodes - len(self.done)
        made = {int(file.stem) for file in self.done} | set(self.failures)
        if missing > 0 and len(made) >= self.config.most_attempts:
            raise InputError(
                f"The expert solved {self.task.name} in only {len(self.done)} of {len(made)} "
                f"attempts, too few for {demonstrations(self.config.episodes)}. Those stay in "
                f"{self.folder}; ask for fewer episodes."
            )
        free = (attempt for attempt in count() if attempt not in made)
        return list(islice(free, max(0, missing)))

    def finish(self, report: Callable[[], None] | None = None) -> dict[str, Any]:
        """Write the dataset, remove the attempts and return the dataset's origin."""
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
            (load_demonstration(file) for file in self.done),
            features=features,
            frames_per_second=rate,
            suite=self.task.suite,
            instruction=self.task.instruction,
            origin=origin,
            report=report,
        )
        shutil.rmtree(self.folder)
        return origin


class AttemptRecorder:
    """Makes attempts and writes their results, in this process or in a worker.

    Args:
        task: What to record.
        config: Settings of the collection.
        folder: Output folder.
    """

    def __init__(self, task: Task, config: CollectionConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.environment = _make_environment(task, config)

    def __call__(self, job: EpisodeJob) -> bool:
        """Make one attempt; return whether it solved the task."""
        assert job.seed is not None
        attempt = job.seed - SEEDS_APART * self.config.seed
        demonstration = record_demonstration(
            self.environment,
            make_expert(self.environment),
            seed=job.seed,
            hold=self.config.hold,
            images=self.config.image_size > 0,
            noise=self.config.noise,
        )
        if demonstration is None:
            (self.folder / f"{attempt:06d}.failed").touch()
            return False
        save_demonstration(demonstration, self.folder / f"{attempt:06d}.npz")
        return True


def _make_environment(task: Task, config: CollectionConfig) -> Environment:
    if config.image_size == 0:
        return make_environment(task, cameras=())
    renderer = None if config.renderer == "fast" else config.renderer  # all suites have that one
    return make_environment(task, image_size=config.image_size, renderer=renderer)


def _describe(out: Path) -> str:
    """Describe the contents of a folder, if it is a dataset written by prism."""
    try:
        found = json.loads((out / ORIGIN).read_text())["collection"]
        return f" with {demonstrations(found['episodes'])} of {found['suite']} {found['task']}"
    except (OSError, ValueError, KeyError):
        return ""
