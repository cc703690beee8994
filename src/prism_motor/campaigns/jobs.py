"""Jobs: child processes that train or evaluate one run, each with its log."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prism_motor.campaigns.planned import PlannedRun
from prism_motor.campaigns.state import RunState

_EXIT_MARK = "-- exit code "
"""Begins the last line of a job's log once the job has ended."""

# Jobs run side by side, so none of them may take more than its core.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Job:
    """One child process."""

    run: PlannedRun
    """The run that it works on."""
    step: str
    """``train`` or ``evaluate``."""
    process: subprocess.Popen[bytes]
    """The child."""
    began: float
    """Monotonic time of its start."""

    def describe(self, state: RunState) -> str:
        """Say how far it is; ``state`` is the one it started from."""
        if self.step == "train":
            row = self.run.live_updates()
            return f"{100 * (row[0] if row else state.updates) / state.total:.0f} %"
        files = list((self.run.path / "evaluations").glob("*.json"))
        return f"evaluation {min(len(files) + 1, state.evaluations)} of {state.evaluations}"

    def close(self) -> int:
        """Note the end of the process in its log and return its exit code."""
        code = self.process.wait()
        with self.run.log.open("a") as log:
            log.write(f"{_EXIT_MARK}{code}\n")
        return code


def start_job(run: PlannedRun, step: str, log: IO[str]) -> Job:
    """Start the child for the next step of a run; it inherits the log, and the lock on it."""
    if step == "train":
        command = run.train_command(resume=run.path.exists())
    else:
        command = run.evaluate_command()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=os.environ | _ONE_THREAD,
        start_new_session=True,  # Ctrl-C is for the runner, which tells its children
    )
    return Job(run, step, process, time.monotonic())


def read_tail(log: Path, lines: int) -> list[str]:
    """Return the end of the log of a job that has ended."""
    text = log.read_text(errors="replace").splitlines()
    return [line for line in text if not line.startswith(_EXIT_MARK)][-lines:]


def has_failed(log: Path) -> bool:
    """Say whether the last job of a run ended with an error; Ctrl-C is none."""
    try:
        last = log.read_text(errors="replace").splitlines()[-1:]
    except OSError:
        return False
    return bool(last) and last[0].startswith(_EXIT_MARK) and last[0].split()[-1] not in _FINE


_FINE = ("0", "130", "-2")
"""Exit codes of jobs that are done or were asked to stop."""
