"""Runs what is missing of a campaign, several jobs at a time, and survives being stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from prism_motor.campaigns.book import Book
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.display import Display, say_duration
from prism_motor.campaigns.files import write_record
from prism_motor.campaigns.jobs import Job, read_tail, start_job
from prism_motor.campaigns.locks import hold, is_locked, try_lock
from prism_motor.campaigns.planned import PlannedRun
from prism_motor.campaigns.planners import AnyCampaign
from prism_motor.campaigns.reuse import copy_run, find_equal
from prism_motor.campaigns.state import clear_unstarted


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended."""

    done: int
    """Runs with nothing left to do."""
    total: int
    """Runs in all."""
    failures: dict[str, str]
    """Why runs or arms could not be finished, by name."""


class Runner:
    """Runs a campaign in its folder.

    The log of a job is also its lock: the child holds it as long as it lives. If this process is
    killed, its children go on, and the next runner waits for them instead of starting them twice.

    Args:
        campaign: The campaign.
        folder: Its folder.
        jobs: How many child processes at a time, one thread each.
        until: Seconds after which no new job is started.
        reuse: Folders whose runs are copied if they are exactly what is wanted.
        poll: Seconds between looks at the children.
    """

    def __init__(
        self,
        campaign: AnyCampaign,
        folder: Path,
        *,
        jobs: int,
        until: float | None = None,
        reuse: Sequence[Path] = (),
        poll: float = 0.5,
    ) -> None:
        self.campaign, self.folder, self.reuse = campaign, folder, reuse
        self.slots, self.until, self.poll = jobs, until, poll
        for place in reuse:
            if not place.is_dir():
                raise CampaignError(f"There is no folder {place} to reuse runs from.")
        self.display = Display()
        self.running: list[Job] = []
        self.failed: dict[Path, str] = {}
        self.elsewhere: set[Path] = set()
        self.stopping = 0

    def run(self) -> Outcome:
        """Run until nothing is left that can be run, or the time is up."""
        self.began = time.monotonic()
        with hold(self.folder), self._signals():
            self.book = Book(self.campaign, self.folder)
            write_record(self.campaign, self.folder)
            self.book.write()
            total = len(list(self.book))
            self.display.event(
                f"{self.campaign.name} in {self.folder}: {self.book.finished} of {total} runs "
                f"done, {self.slots} jobs at a time"
            )
            try:
                while self._start_jobs() or self.running or self._waits():
                    time.sleep(self.poll)
                    if self.stopping:
                        raise KeyboardInterrupt
                    self._end_jobs()
                    self.display.status(self._describe)
            finally:
                self._stop_children()
                self.book.write()
            return self._conclude()

    def _start_jobs(self) -> bool:
        """Fill free slots in the order of the plan; say whether a job was started."""
        started = False
        self.elsewhere = {path for path in self.elsewhere if self._still_elsewhere(path)}
        if self._time_is_up():
            return False
        for run in self.book:
            if len(self.running) + len(self.elsewhere) >= self.slots:
                break
            mine = any(job.run.path == run.path for job in self.running)
            step = self.book.state(run).step
            if mine or step is None or run.waiting:
                continue
            if run.path not in self.failed and run.path not in self.elsewhere:
                started |= self._start(run, step)
        return started

    def _time_is_up(self) -> bool:
        return self.until is not None and time.monotonic() - self.began > self.until

    def _waits(self) -> bool:
        return bool(self.elsewhere) and not self._time_is_up()

    def _start(self, run: PlannedRun, step: str) -> bool:
        run.log.parent.mkdir(parents=True, exist_ok=True)
        with run.log.open("a") as log:
            if not try_lock(log):
                self.display.event(f"{run.title}: an earlier runner's job still runs, waiting")
                self.elsewhere.add(run.path)
                return False
            if step == "train":
                clear_unstarted(run.path)
            if not run.path.exists() and (source := find_equal(run, self.reuse)):
                copy_run(source, run.path)
                self.book.refresh(run)
                self.display.event(f"{run.title}: copied from {source}")
                return True
            self.running.append(start_job(run, step, log))
        updates = self.book.state(run).updates
        words = f"{run.verb} from {run.unit} {updates}" if step == "train" else step
        self.display.event(f"{run.title}: {words}")
        return True

    def _still_elsewhere(self, path: Path) -> bool:
        run = next(run for run in self.book if run.path == path)
        if is_locked(run.log):
            return True
        self.book.refresh(run)
        return False

    def _end_jobs(self) -> None:
        for job in [job for job in self.running if job.process.poll() is not None]:
            self.running.remove(job)
            self._end(job)

    def _end(self, job: Job) -> None:
        run, code = job.run, job.close()
        state = self.book.refresh(run)
        self.book.write()
        took = say_duration(time.monotonic() - job.began)
        if code == 0 and state.step != job.step:
            verb = run.verb if job.step == "train" else job.step
            self.display.event(f"{run.title}: {verb} done in {took}")
        elif run.setting is not None and state.diverged:
            self.display.event(f"{run.title}: diverged after {took}, so this setting cannot win")
        else:
            why = "diverged" if state.diverged else f"failed with exit code {code}"
            self.failed[run.path] = why
            tail = "".join(f"    {line}\n" for line in read_tail(run.log, 12))
            self.display.event(
                f"{run.title}: {job.step} {why} after {took}; {run.log} ends:\n{tail}"
            )

    def _stop_children(self) -> None:
        """Let the children save and end; a second Ctrl-C ends them as they are."""
        if not self.running:
            return
        self.display.event("Stopping: the jobs save a checkpoint first ...")
        for job in self.running:
            job.process.send_signal(signal.SIGINT)
        patience = self.stopping
        while any(job.process.poll() is None for job in self.running):
            if self.stopping > patience:
                for job in self.running:
                    job.process.kill()
            time.sleep(0.1)
        for job in self.running:
            job.close()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn Ctrl-C, termination and hang-up into a request to stop."""

        def request(_number: int, _frame: FrameType | None) -> None:
            self.stopping += 1

        # Handlers that are set here are defaults in the children, even where a shell ignores them.
        before = {number: signal.signal(number, request) for number in _stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _describe(self) -> str:
        parts = [f"{self.book.finished} of {len(list(self.book))} runs done"]
        parts += [
            f"{job.run.title} {job.describe(self.book.state(job.run))}" for job in self.running
        ]
        if self.elsewhere:
            parts.append(f"{len(self.elsewhere)} of an earlier runner")
        left = self.book.seconds_left(self.slots)
        if left is not None:
            parts.append(f"about {say_duration(left)} left")
        return "  ".join(parts)

    def _conclude(self) -> Outcome:
        failures = {}
        for run in self.book:
            state = self.book.state(run)
            why = self.failed.get(run.path) or state.problem
            if state.diverged and not self.book.is_finished(run):
                why = f"diverged after update {state.updates}; see {run.path / 'nonfinite'}"
            if why:
                failures[run.title] = why
        for name, arm in (self.book.sweep or {"arms": {}})["arms"].items():
            if arm["complete"] and arm["chosen"] is None:
                failures[name] = "every setting of its tuning diverged"
        return Outcome(self.book.finished, len(list(self.book)), failures)


def _stop_signals() -> list[signal.Signals]:
    """Return what asks this process to stop; nohup's wish to survive a hang-up is respected."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers
