"""Progress for people: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """Counts finished pieces of work; use as a context manager.

    Args:
        title: What is being done.
        total: How many pieces there are.
        lines: How many lines to print when the output is not a terminal.
    """

    def __init__(self, title: str, total: int, lines: int = 6) -> None:
        from tqdm import tqdm

        self._title = title
        self._total = total
        self._done = 0
        self._every = max(1, -(-total // lines))
        self._started = time.perf_counter()
        self._bar = tqdm(desc=title, total=total, leave=True) if sys.stderr.isatty() else None

    def step(self, note: str = "") -> None:
        """Count one finished piece; ``note`` says what it was."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update()
        elif self._done % self._every == 0 or self._done == self._total:
            seconds = time.perf_counter() - self._started
            print(f"{self._title}: {self._done}/{self._total} ({seconds:.0f} s)", flush=True)

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
