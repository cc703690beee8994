"""The layout of run folders and of the folders around them: every file name, and the tree walk.

.. code-block:: text

    RUN/
        config.json           resolved settings, enough to repeat the run
        provenance.json       code version, packages, machine, command
        metrics.jsonl         one line per row of metrics
        checkpoints/<step>/   see :mod:`prism_motor.runs.checkpoints`
        last                  step of the newest checkpoint
        nonfinite/<step>/     state from before an update that diverged
        evaluations/          one JSON file per evaluation
        tensorboard/, videos/, traces/, analysis/, export/, pretrained/
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prism_motor._checks import PrismError

CONFIG = "config.json"
PROVENANCE = "provenance.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
LAST = "last"
NONFINITE = "nonfinite"
EVALUATIONS = "evaluations"
TENSORBOARD = "tensorboard"
VIDEOS = "videos"
TRACES = "traces"
ANALYSIS = "analysis"
EXPORT = "export"
PRETRAINED = "pretrained"

CAMPAIGN = "campaign.json"
"""A campaign as it was last run, in the folder around its runs."""
TUNING = "tuning.json"
"""The sweep of a campaign and its winners, beside it."""
TUNING_RUNS = "tuning"
"""Folder of a campaign's tuning runs, which are never reported."""
LOGS = "logs"
"""Folder of the output of a campaign's jobs."""
DEMOS = "demos"
"""Folder of the demonstrations that a campaign recorded."""
PLANS = ".plans"
"""Folder of the settings that a campaign's jobs were started with."""
REPORT = "report"
"""Stem of the files of a report."""


def is_run(folder: Path) -> bool:
    """Say whether a folder is a run."""
    return (folder / CONFIG).is_file() and (folder / PROVENANCE).is_file()


def walk_runs(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield every folder at or below ``root`` that may matter, and whether it is a run.

    Hidden folders, logs, analyses and the tuning runs of campaigns are left out, and so is all that
    lies inside runs.
    """
    for place, inner, files in os.walk(root):
        folder = Path(place)
        inner[:] = sorted(n for n in inner if not n.startswith(".") and n not in (LOGS, ANALYSIS))
        if CAMPAIGN in files and TUNING_RUNS in inner:
            inner.remove(TUNING_RUNS)
        run = is_run(folder)
        if run:
            inner.clear()
        yield folder, run


class RunError(PrismError, RuntimeError):
    """A folder is not the run it should be."""


class CheckpointError(RunError):
    """A checkpoint is missing, damaged or of another kind."""
