"""The operator's keyboard: single keys in a terminal, whole lines elsewhere."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable
from typing import Any

from prism_motor.pilots.layout import PilotError

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = tty = None

SPACE = " "
"""The key that starts and stops; without a terminal, an empty line."""


class Keys:
    """Reads keys, as a context manager; in a terminal they need no Enter.

    Args:
        source: File descriptor to read; default: that of standard input.
    """

    def __init__(self, source: int | None = None) -> None:
        self.source = _standard_input() if source is None else source
        self.single = self.source is not None and termios is not None and os.isatty(self.source)
        self._typed = b""
        self._before: list[Any] | None = None

    def __enter__(self) -> Keys:
        if self.single:
            assert self.source is not None
            assert termios is not None
            assert tty is not None
            self._before = termios.tcgetattr(self.source)
            tty.setcbreak(self.source)  # Ctrl-C still interrupts
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            assert self.source is not None
            assert termios is not None
            termios.tcsetattr(self.source, termios.TCSADRAIN, self._before)
            self._before = None

    def poll(self, seconds: float = 0.0) -> str | None:
        """Return the next key in lower case, or ``None`` if none comes within some seconds."""
        key = self._take()
        if key is None and (
            self.source is None or select.select([self.source], [], [], seconds)[0]
        ):
            self._read()
            key = self._take()
        return key

    def _read(self) -> None:
        found = b"" if self.source is None else os.read(self.source, 1024)
        if not found:
            raise PilotError(
                "The keyboard is gone (end of input). What was labelled is saved; run the same "
                "command again in a terminal."
            )
        self._typed += found

    def wait(self, allowed: Iterable[str], meanwhile: Callable[[], None] | None = None) -> str:
        """Wait for one of some keys.

        Args:
            allowed: The keys.
            meanwhile: Called again and again while waiting.
        """
        wanted = set(allowed)
        while True:
            key = self.poll(0.1 if meanwhile else 60.0)
            if key in wanted:
                return key
            if meanwhile is not None:
                meanwhile()

    def ask(self, question: str) -> str:
        """Return a line that the operator types."""
        print(question, end=" ", flush=True)
        former = self._before
        self.__exit__()
        try:
            while b"\n" not in self._typed:
                self._read()
            line, _, self._typed = self._typed.partition(b"\n")
            return line.decode(errors="replace").strip()
        finally:
            if former is not None:
                self.__enter__()

    def forget(self) -> None:
        """Drop keys that were typed before they were asked for; lines stay, as in a script."""
        if self.single:
            while self.poll() is not None:
                continue

    def _take(self) -> str | None:
        """Return the next key of what was read: a character, or the first one of a line."""
        if self.single:
            key, self._typed = self._typed[:1], self._typed[1:]
            return SPACE if key in (b"\n", b"\r") else key.decode(errors="replace").lower() or None
        if b"\n" not in self._typed:
            return None
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace").strip().lower()[:1] or SPACE


def _standard_input() -> int | None:
    """Return the file descriptor of standard input; ``None`` where there is none."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return None
