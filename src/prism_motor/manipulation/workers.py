"""Runs many episodes in worker processes; after a crash, only that episode is retried."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from prism_motor._checks import InputError, PrismError
from prism_motor.manipulation.tasks import Task, registered_modules

Result = TypeVar("Result")

TRIES = 2
"""Number of attempts before an episode counts as failed."""


class WorkerError(PrismError, ChildProcessError):
    """A worker could not start, so no episode can run."""


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


@dataclass(frozen=True)
class JobResult(Generic[Result]):
    """The result of an episode."""

    job: EpisodeJob
    """The job."""
    result: Result | None
    """What the runner returned; ``None`` if it failed."""
    failure: str = ""
    """Why there is no result."""


Runner = Callable[[EpisodeJob], Result]
"""Runs one episode. The result must depend only on the job, not on earlier ones."""


def run_episodes(
    make_runner: Callable[[], Runner[Result]],
    jobs: Sequence[EpisodeJob],
    *,
    workers: int = 1,
    on_done: Callable[[JobResult[Result]], None] | None = None,
) -> list[JobResult[Result]]:
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
    done: dict[int, JobResult[Result]] = {}

    def finish(index: int, result: JobResult[Result]) -> None:
        done[index] = result
        if on_done is not None:
            on_done(result)

    if workers == 0:
        runner = make_runner()
        for index, job in enumerate(jobs):
            finish(index, JobResult(job, runner(job)))
    elif jobs:
        _Pool(make_runner, jobs, finish).run(min(workers, len(jobs)))
    return [done[index] for index in range(len(jobs))]


class _Worker:
    """A worker process and its current job."""

    def __init__(self, make_runner: Callable[[], Runner[Any]]) -> None:
        context = multiprocessing.get_context("spawn")  # rendering and torch do not survive a fork
        self.connection, other = context.Pipe()
        arguments = (make_runner, other, registered_modules())
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other.close()
        self.index: int | None = None

    def give(self, index: int, job: EpisodeJob) -> None:
        self.index = index
        with contextlib.suppress(ConnectionError):  # already dead, as _hear will find out
            self.connection.send(job)

    def end(self) -> None:
        self.connection.close()
        self.process.join(timeout=5.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class _Pool:
    """Keeps workers busy and replaces those that die."""

    def __init__(
        self,
        make_runner: Callable[[], Runner[Any]],
        jobs: Sequence[EpisodeJob],
        finish: Callable[[int, JobResult[Any]], None],
    ) -> None:
        self._make_runner, self._jobs, self._finish = make_runner, jobs, finish
        self._waiting = deque(range(len(jobs)))
        self._tries = [0] * len(jobs)

    def run(self, count: int) -> None:
        workers = [_Worker(self._make_runner) for _ in range(count)]
        try:
            for worker in workers:
                self._give(worker)
            while any(worker.index is not None for worker in workers):
                busy = [worker for worker in workers if worker.index is not None]
                ready = wait([worker.connection for worker in busy])
                for worker in [worker for worker in busy if worker.connection in ready]:
                    if not self._hear(worker):
                        workers.remove(worker)
                        worker.end()
                        if self._waiting:
                            workers.append(_Worker(self._make_runner))
                            self._give(workers[-1])
        finally:
            for worker in workers:
                worker.end()

    def _give(self, worker: _Worker) -> None:
        worker.index = None
        if self._waiting:
            index = self._waiting.popleft()
            self._tries[index] += 1
            worker.give(index, self._jobs[index])

    def _hear(self, worker: _Worker) -> bool:
        """Receive a worker's message; return whether it is still alive."""
        index = worker.index
        assert index is not None
        try:
            kind, content = worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            self._fail(index, f"the worker died (exit code {worker.process.exitcode})")
            return False
        if kind == "cannot start":
            raise WorkerError(f"A worker could not start: {content}")
        if kind == "result":
            self._finish(index, JobResult(self._jobs[index], content))
        else:
            self._fail(index, content)
        self._give(worker)
        return True

    def _fail(self, index: int, reason: str) -> None:
        again = self._tries[index] < TRIES
        after = "trying again" if again else "recorded as failed"
        print(f"Episode {self._jobs[index]}: {reason}; {after}.", file=sys.stderr)
        if again:
            self._waiting.appendleft(index)
        else:
            self._finish(index, JobResult(self._jobs[index], None, reason))


def _work(
    make_runner: Callable[[], Runner[Any]], connection: Connection, modules: Sequence[str]
) -> None:
    """Run episodes until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    try:
        # Custom suites are registered only in the parent, so import their modules here.
        for module in modules:
            importlib.import_module(module)
        runner = make_runner()
    except Exception as error:
        connection.send(("cannot start", f"{type(error).__name__}: {error}"))
        return
    while True:
        try:
            job = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            answer = ("result", runner(job))
        except Exception as error:
            answer = ("failure", f"{type(error).__name__}: {error}")
        connection.send(answer)
