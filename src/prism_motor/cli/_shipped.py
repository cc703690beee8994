"""Commands that write into a run folder, given a policy that comes with the package."""

from __future__ import annotations

from pathlib import Path


def writable(run: Path) -> Path:
    """Return the run folder to write into: that of a shipped policy is copied, and it is said."""
    from prism_motor.runs.shipped import is_shipped, working_copy

    folder = working_copy(run)
    if is_shipped(run):
        print(f"{run} comes with prism; this goes to its copy in {folder}.")
    return folder
