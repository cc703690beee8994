"""Runs many jobs in worker processes; after a crash, only that job is tried again."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from prism_motor._checks import PrismError, find_mistake
from prism_motor._processes import Stopped, end_with_parent, hold_signals, on_stop

Job = TypeVar("Job")
Result = TypeVar("Result")

TRIES = 2
"""Number of attempts before a job counts as failed."""


class WorkerError(PrismError, ChildProcessError):
    """The workers cannot do their jobs."""


@dataclass(frozen=True)
class JobResult(Generic[Job, Result]):
    """The result of a job."""

    job: Job
    """The job."""
    result: Result | None
    """What the runner returned; ``None`` if it failed."""
    failure: str = ""
    """Why there is no result."""
    trace: str = ""
    """The traceback of an exception; empty if the worker died."""


class _Worker:
    """A worker process and its current job."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # rendering and torch do not survive a fork
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, os.getpid()), daemon=True)
        with hold_signals():
            self.process.start()
        other.close()
        self.index: int | None = None

    def send(self, message: Any) -> None:
        with contextlib.suppress(ConnectionError):  # already dead, as _hear will find out
            self.connection.send(message)

    def end(self) -> None:
        self.connection.close()
        self.process.join(timeout=0.0 if self.index is not None else 5.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class WorkerPool(Generic[Job, Result]):
    """Does jobs in worker processes and replaces those that die; use as a context manager.

    What a user can fix stops everything with its message; a worker that dies does not. Workers
    leave stop signals to this process, and end with it even if it is killed.

    Args:
        make_runner: Called once in every worker; must be picklable, as must jobs and results.
        workers: Largest number of processes.
        modules: What the workers import first.
    """

    def __init__(
        self,
        make_runner: Callable[[], Callable[[Job], Result]],
        workers: int,
        modules: Sequence[str] = (),
    ) -> None:
        self._preparation, self._most = (tuple(modules), make_runner), workers
        self._workers: list[_Worker] = []

    def __enter__(self) -> WorkerPool[Job, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        # A second Ctrl-C must not leave any of them behind.
        stops: list[int] = []
        with on_stop(stops.append):
            for worker in self._workers:
                worker.end()
        if stops:
            raise Stopped(stops[0])

    def run(
        self,
        jobs: Sequence[Job],
        on_done: Callable[[JobResult[Job, Result]], None] | None = None,
    ) -> list[JobResult[Job, Result]]:
        """Do jobs and return their results in the same order.

        Args:
            jobs: What to do; ``str`` names one in messages.
            on_done: Called in this process with each result as it arrives, in no fixed order.
        """
        self._jobs, self._on_done = jobs, on_done
        self._done: dict[int, JobResult[Job, Result]] = {}
        self._waiting = deque(range(len(jobs)))
        self._tries = [0] * len(jobs)
        former = list(self._workers)
        missing = min(self._most, len(jobs)) - len(former)
        self._workers.extend(_Worker() for _ in range(missing))
        for worker in self._workers:  # which all start up meanwhile
            self._give(worker) if worker in former else self._begin(worker)
        while busy := [worker for worker in self._workers if worker.index is not None]:
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                if not self._hear(worker):
                    self._workers.remove(worker)
                    worker.end()
                    if self._waiting:
                        self._workers.append(_Worker())
                        self._begin(self._workers[-1])
        return [self._done[index] for index in range(len(jobs))]

    def _begin(self, worker: _Worker) -> None:
        # Not with the arguments of the process: if it dies before it has read them, starting it
        # never ends.
        worker.send(self._preparation)
        self._give(worker)

    def _give(self, worker: _Worker) -> None:
        worker.index = None
        if self._waiting:
            worker.index = self._waiting.popleft()
            self._tries[worker.index] += 1
            worker.send(self._jobs[worker.index])

    def _hear(self, worker: _Worker) -> bool:
        """Receive a worker's message; return whether it is still alive."""
        index = worker.index
        assert index is not None
        try:
            kind, content = worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            self._fail(index, f"the worker died ({describe_exit(worker.process.exitcode)})")
            return False
        if kind == "mistake":
            raise WorkerError(content)
        if kind == "cannot start":
            raise WorkerError(f"A worker could not start: {content}")
        if kind == "result":
            self._finish(index, JobResult(self._jobs[index], content))
        else:
            self._fail(index, *content)
        self._give(worker)
        return True

    def _finish(self, index: int, result: JobResult[Job, Result]) -> None:
        self._done[index] = result
        if self._on_done is not None:
            self._on_done(result)

    def _fail(self, index: int, reason: str, trace: str = "") -> None:
        again = self._tries[index] < TRIES
        after = "trying again" if again else "recorded as failed"
        print(f"{self._jobs[index]}: {reason}; {after}.", file=sys.stderr)
        if again:
            self._waiting.appendleft(index)
        else:
            self._finish(index, JobResult(self._jobs[index], None, reason, trace))


def describe_exit(code: int | None) -> str:
    """Describe how a process ended: ``exit code 1``, ``SIGKILL``."""
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"{name}, perhaps for want of memory" if -code == signal.SIGKILL else name


def _work(connection: Connection, parent: int) -> None:
    """Do jobs until the parent closes the connection."""
    end_with_parent(parent, grace=0.0)
    runner: Callable[[Any], Any] | None = None
    while True:
        try:
            message = connection.recv()
            if runner is None:
                modules, make_runner = message
                # What plugins registered is known in the parent alone.
                for module in modules:
                    importlib.import_module(module)
                runner = make_runner()
                continue
            answer = ("result", runner(message))
        except (EOFError, ConnectionError):
            return
        except Exception as error:
            mistake = find_mistake(error)
            if mistake is not None:
                answer = ("mistake", mistake)
            elif runner is None:
                answer = ("cannot start", f"{type(error).__name__}: {error}")
            else:
                what = f"{type(error).__name__}: {error}"
                answer = ("failure", (what, traceback.format_exc()))
        with contextlib.suppress(ConnectionError):  # the parent is gone or stopping
            connection.send(answer)
        if runner is None:
            return
