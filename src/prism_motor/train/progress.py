"""What a person sees while training: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from prism_motor._extras import missing_extra


class Progress:
    """Shows iterations with their speed, and what matters about the policy.

    Args:
        start: Iterations that are done already.
        total: Iterations in all.
        describe: Says in one line what the metrics of an iteration mean.
        every: Seconds between plain lines when the output is not a terminal.
    """

    def __init__(
        self,
        start: int,
        total: int,
        describe: Callable[[dict[str, float]], str],
        every: float = 10.0,
    ) -> None:
        self.describe = describe
        self.start, self.total, self.every = start, total, every
        self.bar: Any = None
        self.began = time.monotonic()
        self.shown = float("-inf")
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError as error:
                raise missing_extra("The progress bar", "locomotion", error) from error
            self.bar = tqdm(total=total, initial=start, unit="update", dynamic_ncols=True)

    def __call__(self, row: dict[str, float]) -> None:
        """Show the metrics of one iteration."""
        if self.bar is not None:
            self.bar.update(int(row["iteration"]) - self.bar.n)
            self.bar.set_postfix_str(self.describe(row))
            return
        now, done = time.monotonic(), int(row["iteration"])
        if now - self.shown < self.every and done < self.total:
            return
        self.shown = now
        left = (now - self.began) / max(1, done - self.start) * (self.total - done)
        print(f"{done}/{self.total}  {self.describe(row)}  left {left:.0f} s", flush=True)

    def say(self, line: str) -> None:
        """Print a line without breaking the bar."""
        if self.bar is not None:
            self.bar.write(line)
        else:
            print(line, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.close()
