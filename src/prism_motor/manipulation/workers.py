"""Many episodes in processes of their own; a crash costs one episode a second try, no more."""

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
"""How often an episode is started before it counts as failed."""


class WorkerError(PrismError, ChildProcessError):
    """A worker could not even begin, so no episode will run."""


@dataclass(frozen=True)
class EpisodeJob:
    """What to run: a task from one of its fixed initial states, or from a random reset."""

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
    """What became of an episode."""

    job: EpisodeJob
    """Which one."""
    result: Result | None
    """What the runner returned; None if it failed."""
    failure: str = ""
    """Why there is no result."""


Runner = Callable[[EpisodeJob], Result]
"""Runs one episode. The result must depend on the job alone, not on those before it."""


def run_episodes(
    make_runner: Callable[[], Runner[Result]],
    jobs: Sequence[EpisodeJob],
    *,
    workers: int = 1,
    on_done: Callable[[JobResult[Result]], None] | None = None,
) -> list[JobResult[Result]]:
    """Run all episodes and return what became of them, in the order of ``jobs``.

    Args:
        make_runner: Called once in every worker; must be picklable, as must the results. It loads
            what an episode needs, and its runner keeps environments from episode to episode.
        jobs: What to run; episodes of the same task next to each other share environments.
        workers: Processes at a time; 0 runs everything in this process, without protection.
        on_done: Called here with each result as it arrives, in no fixed order: save it at once.
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
    """One process and the job it is at."""

    def __init__(self, make_runner: Callable[[], Runner[Any]]) -> None:
        context = multiprocessing.get_context("spawn")  # drawing and torch do not survive a fork
        self.connection, other = context.Pipe()
        arguments = (make_runner, other, registered_modules())
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other.close()
        self.index: int | None = None

    def give(self, index: int, job: EpisodeJob) -> None:
        self.index = index
        with contextlib.suppress(ConnectionError):  # it died already: hearing from it will tell
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
        """Take what a worker has to say; False if it died."""
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
        after = "trying it again" if again else "recorded as failed"
        print(f"Episode {self._jobs[index]}: {reason}; {after}.", file=sys.stderr)
        if again:
            self._waiting.appendleft(index)
        else:
            self._finish(index, JobResult(self._jobs[index], None, reason))


def _work(
    make_runner: Callable[[], Runner[Any]], connection: Connection, modules: Sequence[str]
) -> None:
    """Run episodes until the other side hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started us
    try:
        # A user's suites are in the table of the first process alone until they are imported.
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
