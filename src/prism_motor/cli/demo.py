"""``prism demo``: two policies learn to walk, and a page shows how far they got."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def demo(out: Path = Path("outputs/demo"), updates: int = 300) -> None:
    """Train PRISM and an MLP of equal size to walk, evaluate and film them (8 minutes, two cores).

    A second call goes on where the first one ended, and only shows what is done.

    Args:
        out: Folder for runs, videos and the page.
        updates: Updates of each policy, about one per second.
    """
    from prism_motor._checks import check_size
    from prism_motor.campaigns.demo import DemoConfig, run_demo
    from prism_motor.report import terminal_table

    config = DemoConfig(updates=check_size("prism demo", "--updates", updates))
    words = ["prism", "demo"] + (["--out", str(out)] if out != Path("outputs/demo") else [])
    words += ["--updates", str(updates)] if updates != DemoConfig.updates else []
    try:
        report = run_demo(config, out, shlex.join(words))
    except KeyboardInterrupt:
        print(
            f"\nStopped. The same command goes on from here: {shlex.join(words)}", file=sys.stderr
        )
        raise
    for chapter in report.chapters:
        if chapter.main:
            print(f"\n{terminal_table(chapter.main)}")
    print(f"\nOpen {report.page} in a browser.")
