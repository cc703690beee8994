"""Many episodes in processes of their own; a crash costs one episode a second try, no more."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from prism_motor._errors import InputError, PrismError
from prism_motor.manipulation.tasks import Task

Record = TypeVar("Record")

TRIES = 2
"""How often an episode is started before it counts as failed."""


class WorkerError(PrismError, ChildProcessError):
    """A worker could not even begin, so no episode will run."""


@dataclass(frozen=True)
class Episode:
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
class Outcome(Generic[Record]):
    """What became of an episode."""

    episode: Episode
    """Which one."""
    record: Record | None
    """What the runner returned; None if it failed."""
    failure: str = ""
    """Why there is no record."""


Runner = Callable[[Episode], Record]
"""Runs one episode. The result must depend on the episode alone, not on those before."""


def run_episodes(
    make_runner: Callable[[], Runner[Record]],
    episodes: Sequence[Episode],
    *,
    workers: int = 1,
    on_done: Callable[[Outcome[Record]], None] | None = None,
) -> list[Outcome[Record]]:
    """Run all episodes and return their outcomes in the order of ``episodes``.

    Args:
        make_runner: Called once in every worker; must be picklable, as must the records. It loads
            what an episode needs, and its runner keeps environments from episode to episode.
        episodes: What to run; episodes of the same task next to each other share environments.
        workers: Processes at a time; 0 runs everything in this process, without protection.
        on_done: Called here with each outcome as it arrives, in no fixed order: save it at once.
    """
    if workers < 0:
        raise InputError(f"workers must be 0 (this process) or more, got {workers}.")
    done: dict[int, Outcome[Record]] = {}

    def finish(index: int, outcome: Outcome[Record]) -> None:
        done[index] = outcome
        if on_done is not None:
            on_done(outcome)

    if workers == 0:
        runner = make_runner()
        for index, episode in enumerate(episodes):
            finish(index, Outcome(episode, runner(episode)))
    elif episodes:
        _Pool(make_runner, episodes, finish).run(min(workers, len(episodes)))
    return [done[index] for index in range(len(episodes))]


class _Worker:
    """One process and the episode it is at."""

    def __init__(self, make_runner: Callable[[], Runner[Any]]) -> None:
        context = multiprocessing.get_context("spawn")  # drawing and torch do not survive a fork
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(make_runner, other), daemon=True)
        self.process.start()
        other.close()
        self.index: int | None = None

    def give(self, index: int, episode: Episode) -> None:
        self.index = index
        with contextlib.suppress(ConnectionError):  # it died already: hearing from it will tell
            self.connection.send(episode)

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
        episodes: Sequence[Episode],
        finish: Callable[[int, Outcome[Any]], None],
    ) -> None:
        self._make_runner, self._episodes, self._finish = make_runner, episodes, finish
        self._waiting = deque(range(len(episodes)))
        self._tries = [0] * len(episodes)

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
            worker.give(index, self._episodes[index])

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
        if kind == "hopeless":
            raise WorkerError(f"A worker could not start: {content}")
        if kind == "record":
            self._finish(index, Outcome(self._episodes[index], content))
        else:
            self._fail(index, content)
        self._give(worker)
        return True

    def _fail(self, index: int, reason: str) -> None:
        again = self._tries[index] < TRIES
        after = "trying it again" if again else "recorded as failed"
        print(f"Episode {self._episodes[index]}: {reason}; {after}.", file=sys.stderr)
        if again:
            self._waiting.appendleft(index)
        else:
            self._finish(index, Outcome(self._episodes[index], None, reason))


def _work(make_runner: Callable[[], Runner[Any]], connection: Connection) -> None:
    """Run episodes until the other side hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started us
    try:
        runner = make_runner()
    except Exception as error:
        connection.send(("hopeless", f"{type(error).__name__}: {error}"))
        return
    while True:
        try:
            episode = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            answer = ("record", runner(episode))
        except Exception as error:
            answer = ("failure", f"{type(error).__name__}: {error}")
        connection.send(answer)
