"""Processes of tests: start a command, find all that it started, wait until they are gone."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PRISM = (sys.executable, "-m", "prism_motor.cli")


class Command:
    """A command in a session of its own, with what it prints in a file.

    Args:
        words: The command.
        output: The file.
    """

    def __init__(self, words, output):
        self.output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [str(word) for word in words],
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self):
        """What it has printed so far."""
        return self.output.read_text()

    def wait_for(self, what, seconds=120.0):
        """Wait for something to happen while the command runs; return it."""
        end = time.monotonic() + seconds
        while not (found := what()):
            assert self.process.poll() is None, f"it ended:\n{self.said}"
            assert time.monotonic() < end, f"it never happened:\n{self.said}"
            time.sleep(0.05)
        return found

    def family(self):
        """Return all processes that it started, directly or not."""
        parents = {pid: parent for pid, (parent, _) in _processes().items()}
        found, new = [], [self.process.pid]
        while new:
            new = [pid for pid, parent in parents.items() if parent in new]
            found += new
        return found

    def clean_up(self):
        """End it and all that it started."""
        for pid in [*self.family(), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def is_alive(pid):
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    return pid in _processes()


def wait_until_gone(pids, seconds):
    """Return those processes that still run after some seconds."""
    end = time.monotonic() + seconds
    while (alive := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    return alive


def command_line(pid):
    """Return the words of a running process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def _processes():
    """Return the parent and the state of every running process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    found[int(entry.name)] = (int(parent), state)
    return found
