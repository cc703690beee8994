"""Runs the unfinished work of a campaign, several jobs at a time; can be stopped and resumed."""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO

from prism_motor._checks import PrismError
from prism_motor._console import count, duration
from prism_motor._devices import resolve_device
from prism_motor._processes import Stopped, on_stop
from prism_motor._workers import describe_exit
from prism_motor.campaigns.config import Campaign, CampaignError
from prism_motor.campaigns.files import copy_run, find_equal, write_record
from prism_motor.campaigns.ledger import Ledger, RunState
from prism_motor.campaigns.locks import hold, is_locked, mark_end, note_in, read_tail
from prism_motor.campaigns.places import Handle, JobPlace
from prism_motor.campaigns.places.local import LocalPlace
from prism_motor.campaigns.places.node import Order
from prism_motor.campaigns.status import Display
from prism_motor.campaigns.work import PlannedRun, PlannedWork
from prism_motor.runs.layout import EVALUATIONS, NONFINITE
from prism_motor.runs.locks import try_lock

_GRACE = 60.0
"""Seconds that jobs have to save before they are killed."""


@dataclass(frozen=True)
class Job:
    """A job that works on one run."""

    work: PlannedWork
    """The work it is doing."""
    step: str
    """``train`` or ``evaluate``."""
    handle: Handle
    """The job where it runs."""
    began: float
    """Monotonic start time."""

    @classmethod
    def start(cls, work: PlannedWork, step: str, log: IO[str], place: JobPlace) -> Job:
        """Start the next step of some work."""
        training = step == "train"
        token = uuid.uuid4().hex if place.remote else ""
        if token:
            note_in(log, f"sent as {token}")
        order = Order(
            title=work.title,
            run=work.path,
            log=work.log,
            begin=tuple(work.start_command() if training else work.evaluate_command()),
            resume=tuple(work.resume_command() if training else work.evaluate_command()),
            threads=work.threads,
            device=work.device,
            token=token,
        )
        return cls(work, step, place.start(order, log), time.monotonic())

    def describe(self, state: RunState) -> str:
        """Describe its progress; ``state`` is the state at its start."""
        if self.step == "train":
            row = self.work.live_updates()
            return f"{100 * (row[0] if row else state.updates) / state.total:.0f} %"
        files = list((self.work.path / EVALUATIONS).glob("*.json"))
        return f"evaluation {min(len(files) + 1, state.evaluations)} of {state.evaluations}"

    def close(self) -> int:
        """Record the end of the job in its log and return its exit code."""
        code = self.handle.poll()
        assert code is not None
        mark_end(self.work.log, code)
        return code


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended."""

    done: int
    """Runs with nothing left to do."""
    total: int
    """Total number of runs."""
    failures: dict[str, str]
    """Reasons why runs or arms could not be finished, by name."""
    bug: bool = False
    """Whether one of the reasons is a bug in prism."""


class Runner:
    """Runs a campaign in its folder.

    The log of a job is also its lock, held for as long as the child runs. If this process is
    killed, its children save and end (those in a queue go on), and the next runner waits for that
    instead of starting a second copy.

    Args:
        campaign: The campaign.
        folder: Its folder.
        jobs: Number of jobs at a time; default: what the place has.
        place: Where they run; default: as child processes, with one thread each.
        until: Seconds after which no new job is started.
        reuse: Folders to copy runs from if their settings are exactly the same.
        poll: Seconds between checks on the children.
        later: What comes after the campaign, in updates of one run, for the estimate of the time.
    """

    def __init__(
        self,
        campaign: Campaign,
        folder: Path,
        *,
        jobs: int | None = None,
        place: JobPlace | None = None,
        until: float | None = None,
        reuse: Sequence[Path] = (),
        poll: float = 0.5,
        later: float = 0.0,
    ) -> None:
        self.campaign, self.folder, self.reuse = campaign, folder, reuse
        self.place: JobPlace = place or LocalPlace()
        self.jobs, self.until, self.poll, self.later = jobs, until, poll, later
        for source in reuse:
            if not source.is_dir():
                raise CampaignError(f"No such folder to reuse runs from: {source}.")
        self.display = Display()
        self.running: list[Job] = []
        self.failed: dict[Path, str] = {}
        self.startups: list[float] = []
        self.bug = False
        self.elsewhere: set[Path] = set()
        self.signals: list[int] = []

    def run(self) -> Outcome:
        """Run until no more work can be done or the time is up."""
        self.began = time.monotonic()
        with hold(self.folder), on_stop(self.signals.append), ExitStack() as connected:
            self.ledger = Ledger(self.campaign, self.folder)
            work_is_left = self.ledger.finished < len(self.ledger)
            if work_is_left:
                self._check_ready()
                connected.enter_context(self.place)
                self._heed_signals()  # connecting may have taken long
            write_record(self.campaign, self.folder)
            self.ledger.write()
            state = (
                f"{self.campaign.name} in {self.folder}: {self.ledger.finished} of "
                f"{count(len(self.ledger), 'run')} done"
            )
            if not work_is_left:
                self.display.event(state)
                return self._conclude()
            self.slots = self.jobs or self.place.slots
            self.display.event(f"{state}, {count(self.slots, 'job')} at a time")
            try:
                while self._start_jobs() or self.running or self._waits():
                    time.sleep(self.poll)
                    self._heed_signals()
                    self._end_jobs()
                    self.display.status(self._describe)
            finally:
                self._stop_children()
                self.ledger.write()
            return self._conclude()

    def _heed_signals(self) -> None:
        if self.signals:
            raise Stopped(self.signals[0])

    def _check_ready(self) -> None:
        """Raise if the machine lacks something, rather than in every job."""
        left = [run for run in self.ledger.reported if not self.ledger.is_finished(run)]
        first = {run.variant: run for run in reversed(left)}  # a suite is checked once
        for run in left:
            try:
                if not self.place.remote:
                    run.domain.check_device(run.config)
                    for device in filter(None, (one.device for one in run.protocols)):
                        resolve_device(device)
                if first[run.variant] is run:
                    self.campaign.domain.check_ready(run.config)
            except PrismError as error:
                raise CampaignError(f"{run.title}: {error}") from error

    def _start_jobs(self) -> bool:
        """Fill free slots in the order of the plan; return whether a job was started."""
        started = False
        self.elsewhere = {path for path in self.elsewhere if self._still_elsewhere(path)}
        if self._time_is_up():
            return False
        for work in self.ledger:
            if len(self.running) + len(self.elsewhere) >= self.slots:
                break
            mine = any(job.work.path == work.path for job in self.running)
            step = self.ledger.state(work).step
            if mine or step is None or work.waiting:
                continue
            if work.path not in self.failed and work.path not in self.elsewhere:
                started |= self._start(work, step)
        return started

    def _time_is_up(self) -> bool:
        return self.until is not None and time.monotonic() - self.began > self.until

    def _waits(self) -> bool:
        return bool(self.elsewhere) and not self._time_is_up()

    def _start(self, work: PlannedWork, step: str) -> bool:
        work.log.parent.mkdir(parents=True, exist_ok=True)
        with work.log.open("a") as log:
            if try_lock(log) is False:
                self.display.event(f"{work.title}: waiting for the job of an earlier runner")
                self.elsewhere.add(work.path)
                return False
            if self._copy_equal(work):
                return True
            self.running.append(Job.start(work, step, log, self.place))
        updates = self.ledger.state(work).updates
        what = f"{work.verb} from {work.unit} {updates}" if step == "train" else step
        self.display.event(f"{work.title}: {what}")
        return True

    def _copy_equal(self, work: PlannedWork) -> bool:
        """Copy a run with the same settings instead of training; return whether there was one."""
        if not isinstance(work, PlannedRun) or work.has_begun:
            return False
        source = find_equal(work, self.reuse)
        if source is None:
            return False
        copy_run(source, work.path)
        self.ledger.refresh(work)
        self.display.event(f"{work.title}: copied from {source}")
        return True

    def _still_elsewhere(self, path: Path) -> bool:
        work = next(work for work in self.ledger if work.path == path)
        if is_locked(work.log):
            return True
        self.ledger.refresh(work)
        return False

    def _end_jobs(self) -> None:
        for job in [job for job in self.running if job.handle.poll() is not None]:
            self.running.remove(job)
            self._end(job)

    def _end(self, job: Job) -> None:
        work, code = job.work, job.close()
        before = self.ledger.state(work)
        state = self.ledger.refresh(work)
        self.ledger.write()
        seconds = time.monotonic() - job.began
        took = duration(seconds)
        # One evaluation may follow another.
        further = job.step == "evaluate" and state.evaluated > before.evaluated
        if code == 0 and (state.step != job.step or further):
            verb = work.verb if job.step == "train" else job.step
            self._note_startup(work, job.step, before.updates, seconds)
            self.display.event(f"{work.title}: {verb} done in {took}")
        elif self.place.remote and code == 128 + signal.SIGTERM:
            self.display.event(f"{work.title}: stopped by the cluster after {took}; starts again")
        elif work.setting is not None and state.diverged:
            self.display.event(f"{work.title}: diverged after {took}, so this setting cannot win")
        else:
            why = "diverged" if state.diverged else f"failed with {describe_exit(code)}"
            self.bug |= code == 1
            self.failed[work.path] = why
            tail = "".join(f"    {line}\n" for line in read_tail(work.log, 12))
            self.display.event(
                f"{work.title}: {job.step} {why} after {took}; {work.log} ends:\n{tail}"
            )

    def _note_startup(self, work: PlannedWork, step: str, before: int, seconds: float) -> None:
        """Note what a whole training took besides its updates: imports, compiling, saving."""
        row = work.live_updates()
        if step == "train" and not before and row is not None:
            self.startups.append(max(0.0, seconds - row[1]))

    def _stop_children(self) -> None:
        """Let the children save and exit; a second Ctrl-C or a long wait kills them."""
        if not self.running:
            return
        self.display.event("Stopping; the jobs are saving checkpoints ...")
        for job in self.running:
            job.handle.stop(self.signals[0] if self.signals else signal.SIGTERM)
        heard, deadline = len(self.signals), time.monotonic() + _GRACE
        while any(job.handle.poll() is None for job in self.running):
            if signal.SIGINT in self.signals[heard:] or time.monotonic() > deadline:
                for job in self.running:
                    job.handle.kill()
            time.sleep(0.1)
        for job in self.running:
            job.close()

    def _describe(self) -> str:
        parts = [f"{self.ledger.finished} of {count(len(self.ledger), 'run')} done"]
        parts += [
            f"{job.work.title} {job.describe(self.ledger.state(job.work))}" for job in self.running
        ]
        if self.elsewhere:
            parts.append(f"{count(len(self.elsewhere), 'job')} of an earlier runner")
        startup = median(self.startups) if self.startups else 0.0
        left = self.ledger.seconds_left(self.slots, self.later, startup)
        if left is not None:
            parts.append(f"about {duration(left)} left")
        return "  ".join(parts)

    def _conclude(self) -> Outcome:
        failures = {}
        for work in self.ledger:
            state = self.ledger.state(work)
            why = self.failed.get(work.path) or state.problem
            if state.diverged and not self.ledger.is_finished(work):
                why = f"diverged after update {state.updates}; see {work.path / NONFINITE}"
            if why:
                failures[work.title] = why
        for name, arm in (self.ledger.sweep or {"arms": {}})["arms"].items():
            if arm["complete"] and arm["chosen"] is None:
                failures[name] = "all of its tuning runs diverged"
        return Outcome(self.ledger.finished, len(self.ledger), failures, self.bug)
