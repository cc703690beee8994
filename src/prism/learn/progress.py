"""What a person sees while training: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from prism._extras import missing_extra


class Progress:
    """Shows iterations with their speed, and what matters about the policy.

    Args:
        start: Iterations that are done already.
        total: Iterations in all.
        every: Seconds between plain lines when the output is not a terminal.
    """

    def __init__(self, start: int, total: int, every: float = 10.0) -> None:
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
            self.bar.update(1)
            self.bar.set_postfix_str(describe(row))
            return
        now, done = time.monotonic(), int(row["iteration"])
        if now - self.shown < self.every and done < self.total:
            return
        self.shown = now
        left = (now - self.began) / max(1, done - self.start) * (self.total - done)
        print(f"{done}/{self.total}  {describe(row)}  left {left:.0f} s", flush=True)

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


def describe(row: dict[str, float]) -> str:
    """Say in one line how the policy does and where the time goes."""
    return (
        f"falls every {row['seconds_between_falls']:.1f} s  "
        f"reward/s {row['reward_per_second']:.2f}  "
        f"errors {row['linear_error']:.2f} m/s {row['yaw_error']:.2f} rad/s  "
        f"{row['samples_per_second']:,.0f} samples/s (physics {row['time/physics']:.0%}, "
        f"policy {row['time/policy']:.0%}, update {row['time/update']:.0%})"
    )
