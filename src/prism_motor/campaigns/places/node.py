"""What happens on the machine that a job was sent to: checks, locks, the command, its end."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from prism_motor._processes import PARENT
from prism_motor._version import __version__
from prism_motor.campaigns.locks import note_in
from prism_motor.runs.folder import is_unstarted
from prism_motor.runs.layout import LOCK
from prism_motor.runs.locks import Lock, LockedError, try_lock
from prism_motor.runs.provenance import cpu_kind, package_version

_POLL = 0.2
"""Seconds between looks at the child or at a lock that somebody else holds."""
_GRACE = 60.0
"""Seconds that a child has to save in before it is killed."""

# Jobs run in parallel, so each may use only one core.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def versions() -> dict[str, str]:
    """Return what must be equal on all machines for runs to go on bit for bit."""
    return {
        "prism-motor": __version__,
        "Python": platform.python_version(),
        "torch": package_version("torch") or "missing",
    }


@dataclass(frozen=True)
class Order:
    """A job as it is sent to a machine."""

    title: str
    """Its name in messages."""
    run: Path
    """The folder it works on."""
    log: Path
    """Its log, which is also its lock."""
    begin: tuple[str, ...]
    """The command that starts the work."""
    resume: tuple[str, ...]
    """The command that continues it."""
    threads: int = 1
    """Cores that it uses."""
    device: str = "cpu"
    """Device of its settings."""
    gpus: float = 0.0
    """GPUs that it gets; decided by the place."""
    token: str = ""
    """What its log holds if the folder is the same on both machines."""
    folder: Path = field(default_factory=Path.cwd)
    """Where relative paths in settings start."""
    versions: Mapping[str, str] = field(default_factory=versions)
    """Versions where it was sent from."""

    def with_gpus(self, given: float | None) -> Order:
        """Return it with its GPUs: those given per job, else one for jobs on cuda."""
        usual = float(self.device.startswith("cuda"))
        gpus = 0.0 if self.device == "cpu" else usual if given is None else given
        return replace(self, gpus=gpus)

    def command(self) -> list[str]:
        """Return the command that fits the present state of the folder."""
        begun = self.run.exists() and not is_unstarted(self.run)
        # The same Python may be elsewhere on another machine.
        return [sys.executable, *(self.resume if begun else self.begin)[1:]]


@dataclass(frozen=True)
class Ended:
    """How a job ended on another machine."""

    code: int = 0
    """Exit code of its command."""
    problem: str = ""
    """Why this machine cannot do jobs of the campaign at all."""


def start_child(
    order: Order, log: IO[str], extra: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the command of a job; the child inherits the log and the lock on it.

    It ends with this process, however that ends.
    """
    return subprocess.Popen(
        order.command(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=order.folder if order.folder.is_dir() else None,
        env=os.environ | _ONE_THREAD | {PARENT: str(os.getpid())} | dict(extra or {}),
        start_new_session=True,  # Ctrl-C goes to the runner, which stops its children
    )


def find_problem(order: Order) -> str:
    """Return why this machine cannot do a job; empty if it can."""
    host, there = socket.gethostname(), versions()
    if differ := {name: one for name, one in order.versions.items() if there[name] != one}:
        listed = "; ".join(
            f"{name} is {there[name]} there and {mine} here" for name, mine in differ.items()
        )
        return f"{host} has other versions: {listed}. Install the same ones on all machines."
    try:
        same = order.token in order.log.read_text(errors="replace")
        with order.log.open("a"):
            pass
    except OSError as error:
        return f"{host} cannot use {order.log}: {error.strerror}. Mount the same folder everywhere."
    if not same:
        return (
            f"{host} has another {order.log}. The campaign's folder must be one shared folder that "
            "all machines have mounted at the same path."
        )
    return ""


class NodeJob:
    """A job on the machine that it was sent to.

    Args:
        order: The job.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self._child: subprocess.Popen[bytes] | None = None
        self._asked = False

    def run(self) -> Ended:
        """Wait until nobody else works on the folder, then work on it; return how that ended."""
        order = self.order
        if problem := find_problem(order):
            return Ended(2, problem)
        with order.log.open("a") as log:
            while not self._asked and not self._is_free(log):
                time.sleep(_POLL)
            if self._asked:
                return Ended(128 + signal.SIGTERM)
            note_in(log, f"on {socket.gethostname()}, {cpu_kind()}")
            # Without a share of a GPU, Ray leaves all of them visible.
            hidden = {} if order.gpus else {"CUDA_VISIBLE_DEVICES": ""}
            self._child = start_child(order, log, hidden)
        while (code := self._child.poll()) is None:
            time.sleep(_POLL)
        return Ended(code)

    def _is_free(self, log: IO[str]) -> bool:
        """Lock the log, and see that no other machine still owns the run."""
        if try_lock(log) is False:
            return False
        try:
            Lock(self.order.run / LOCK, "").check()
        except LockedError:
            return False
        return True

    def stop(self) -> None:
        """Let the child save, and wait for its end; may be called by a signal's handler."""
        self._asked = True
        child = self._child
        if child is None or _has_ended(child.pid):
            return
        os.kill(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while not _has_ended(child.pid):
            if time.monotonic() > deadline:
                os.kill(child.pid, signal.SIGKILL)
            time.sleep(_POLL)


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended, and leave its exit code to others.

    ``Popen.poll`` would wait forever for what it interrupted, if a handler calls it.
    """
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
