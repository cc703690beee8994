"""Runs many episodes, in this process or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prism_motor._checks import InputError
from prism_motor._workers import JobResult, WorkerPool
from prism_motor.manipulation.tasks import Task, registered_modules

Result = TypeVar("Result")


@dataclass(frozen=True)
class EpisodeJob:
    """An episode of a task from one of its fixed initial states or from a random reset."""

    task: Task
    """Which task."""
    initial_state: int | None = None
    """Number of a fixed initial state."""
    seed: int | None = None
    """Seed of a random reset."""

    def __str__(self) -> str:
        start = f"seed {self.seed}" if self.initial_state is None else f"state {self.initial_state}"
        return f"{self.task.key}, {start}"


EpisodeResult = JobResult[EpisodeJob, Result]
"""The result of an episode."""

Runner = Callable[[EpisodeJob], Result]
"""Runs one episode. The result must depend only on the job, not on earlier ones."""


def run_episodes(
    make_runner: Callable[[], Runner[Result]],
    jobs: Sequence[EpisodeJob],
    *,
    workers: int = 1,
    on_done: Callable[[EpisodeResult[Result]], None] | None = None,
) -> list[EpisodeResult[Result]]:
    """Run all episodes and return their results in the order of ``jobs``.

    Args:
        make_runner: Called once in every worker; must be picklable, as must the results. It loads
            what an episode needs, and its runner reuses environments across episodes.
        jobs: What to run; episodes of the same task next to each other share environments.
        workers: Number of processes; 0 runs everything in this one, without crash protection.
        on_done: Called in this process with each result as it arrives, in no fixed order.
    """
    if workers < 0:
        raise InputError(f"workers must be 0 (this process) or more, got {workers}.")
    if workers:
        with WorkerPool(make_runner, workers, registered_modules()) as pool:
            return pool.run(jobs, on_done)
    done = []
    runner = make_runner()
    for job in jobs:
        done.append(JobResult(job, runner(job)))
        if on_done is not None:
            on_done(done[-1])
    return done
