"""What a person sees of a running campaign: events as lines, and how far everything is."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable


class Display:
    """A status line that is rewritten on a terminal, and a line now and then elsewhere.

    Args:
        every: Seconds between status lines when the output is not a terminal.
    """

    def __init__(self, every: float = 60.0) -> None:
        self.terminal = sys.stdout.isatty()
        self.every = 1.0 if self.terminal else every
        self.shown = time.monotonic() - self.every + 5.0
        self.width = 0

    def event(self, text: str) -> None:
        """Print something that happened."""
        self._clear()
        print(text, flush=True)

    def status(self, describe: Callable[[], str]) -> None:
        """Show how far everything is, if it is time to."""
        if time.monotonic() - self.shown < self.every:
            return
        self.shown = time.monotonic()
        text = describe()
        if not self.terminal:
            print(text, flush=True)
            return
        self._clear()
        text = text[: shutil.get_terminal_size().columns - 1]
        self.width = len(text)
        print(text, end="", flush=True)

    def _clear(self) -> None:
        if self.width:
            print("\r" + " " * self.width + "\r", end="")
            self.width = 0


def say_duration(seconds: float) -> str:
    """Write a duration for people: ``40 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
