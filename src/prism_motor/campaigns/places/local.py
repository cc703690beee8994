"""Jobs as child processes on this machine."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import IO

from prism_motor._console import available_cores
from prism_motor.campaigns.places.node import Order, start_child


@dataclass(frozen=True)
class LocalHandle:
    """A child process."""

    process: subprocess.Popen[bytes]
    """The process."""

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal."""
        return self.process.poll()

    def stop(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()


class LocalPlace:
    """This machine, with one job per core."""

    remote = False

    @property
    def slots(self) -> int:
        """Number of cores."""
        return available_cores()

    def start(self, order: Order, log: IO[str]) -> LocalHandle:
        """Start a child, which inherits the log and the lock on it."""
        return LocalHandle(start_child(order, log))

    def __enter__(self) -> LocalPlace:
        return self

    def __exit__(self, *error: object) -> None:
        pass
