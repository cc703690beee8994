"""Terminal output: one progress bar, one text table, notes, durations, sizes and plurals."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from prism_motor._extras import missing_extra


class Progress:
    """Counts finished units of work: a bar on a terminal, plain lines elsewhere.

    Args:
        title: What is being done.
        total: Number of units.
        done: Number of units already done.
        unit: What one unit is called.
        every: Seconds between plain lines when the output is not a terminal.
    """

    def __init__(
        self, title: str, total: int, *, done: int = 0, unit: str = "it", every: float = 10.0
    ) -> None:
        self.title, self.total, self.done = title, total, done
        self._first, self._every = done, every
        self._began = self._shown = time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError as error:
                raise missing_extra("The progress bar", "cli", error) from error
            self._bar = tqdm(
                desc=title or None, total=total, initial=done, unit=unit, dynamic_ncols=True
            )

    def step(self, note: str = "", count: int = 1) -> None:
        """Count finished units; ``note`` says what matters about them."""
        self.done += count
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(count)
            return
        now = time.monotonic()
        if now - self._shown < self._every and self.done < self.total:
            return
        self._shown = now
        start = f"{self.title}: " if self.title else ""
        print(f"{start}{self.done}/{self.total}  {note}  {self._left(now)}".rstrip(), flush=True)

    def _left(self, now: float) -> str:
        seconds = now - self._began
        if self.done >= self.total:
            return f"({duration(seconds)})"
        rate = seconds / max(1, self.done - self._first)
        return f"left {duration(rate * (self.total - self.done))}"

    def say(self, line: str) -> None:
        """Print a line without breaking the bar."""
        if self._bar is not None:
            self._bar.write(line)
        else:
            print(line, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def note(message: str) -> None:
    """Tell the user loudly, on standard error, about something that went on all the same."""
    print(f"prism: note: {message}", file=sys.stderr, flush=True)


def text_table(rows: Sequence[Sequence[str]], *, numbers_from: int = 1) -> str:
    """Return rows of cells as text.

    Args:
        rows: Cells; the first row is the header, and all have the same length.
        numbers_from: Columns from this index on are right-aligned, earlier ones left-aligned.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < numbers_from else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def duration(seconds: float) -> str:
    """Format a duration: ``40 s``, ``12 min``, ``3 h 05 min``, ``1,200 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60:02d} min" if hours < 1000 else f"{hours:,} h"


def file_size(number: float) -> str:
    """Format a number of bytes: ``40 kB``, ``2.5 MB``."""
    return f"{number / 1e3:.0f} kB" if number < 1e6 else f"{number / 1e6:.1f} MB"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: ``1 run``, ``2 runs``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def available_cores() -> int:
    """Return how many cores this process may use; containers often allow fewer than exist."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
