"""The layout of run and campaign folders: every file name, and how runs are found.

.. code-block:: text

    RUN/
        config.json           all settings needed to repeat the run
        provenance.json       code version, packages, machine, command
        metrics.jsonl         one line per row of metrics
        checkpoints/<step>/   see :mod:`prism_motor.runs.checkpoints`
        last                  step of the newest checkpoint
        nonfinite/<step>/     state from before an update that diverged
        .lock                 names the process that trains the run, while it does
        damaged/<step>/       checkpoints that could not be resumed from
        damaged-<step>.jsonl  metrics as they were when they were found damaged
        evaluations/          one JSON file per evaluation
        replay/               rows of a replay buffer, in files that checkpoints refer to
        prompts.safetensors   some states of that buffer, from which rewards make prompts
        trackers.json         which experiment trackers show the run
        tensorboard/, videos/, traces/, analysis/, export/, pretrained/
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prism_motor._checks import PrismError
from prism_motor.runs.boundary import Boundary

CONFIG = "config.json"
PROVENANCE = "provenance.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
LAST = "last"
NONFINITE = "nonfinite"
EVALUATIONS = "evaluations"
TENSORBOARD = "tensorboard"
TRACKERS = "trackers.json"
"""Which experiment trackers show a run, and what a resumed session needs to go on with them."""
VIDEOS = "videos"
TRACES = "traces"
ANALYSIS = "analysis"
EXPORT = "export"
PRETRAINED = "pretrained"
REPLAY = "replay"
"""Replay buffer of a run that learns from one: files that checkpoints refer to."""
PROMPTS = "prompts.safetensors"
"""States by which rewards prompt a policy; they go with it where its replay buffer does not."""
LOCK = ".lock"
SEAL = "seal.json"
"""Seal of an archived run's files; in a run, checkpoints have it."""
DAMAGED = "damaged"

CAMPAIGN = "campaign.json"
"""The campaign as it was last run, in its folder."""
TUNING = "tuning.json"
"""The campaign's tuning sweep and the winners, in its folder."""
TUNING_RUNS = "tuning"
"""Folder of a campaign's tuning runs, which are never reported."""
LOGS = "logs"
"""Folder of the logs of a campaign's jobs."""
DEMOS = "demos"
"""Folder of the demonstrations that a campaign records."""
PLANS = ".plans"
"""Folder of the settings that a campaign's jobs start with."""
REPORT = "report"
"""Stem of the file names of a report."""


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run; other programs have files called config.json, too."""
    return (folder / CONFIG).is_file() and (
        (folder / PROVENANCE).is_file() or (folder / CHECKPOINTS).is_dir()
    )


def walk_runs(root: Path, boundary: Boundary | None = None) -> Iterator[tuple[Path, bool]]:
    """Yield every relevant folder at or below ``root``, and whether it is a run.

    Hidden folders, logs, analyses, the tuning runs of campaigns and the contents of runs are left
    out, and so is what links lead to.

    Args:
        root: Where to look.
        boundary: Takes notes of links that lead out of ``root``.
    """
    edge = boundary or Boundary(root)
    for place, inner, files in os.walk(root):
        folder = Path(place)
        inner[:] = sorted(n for n in inner if not n.startswith(".") and n not in (LOGS, ANALYSIS))
        if CAMPAIGN in files and TUNING_RUNS in inner:
            inner.remove(TUNING_RUNS)
        run = is_run(folder) and all(edge.holds(folder / name) for name in (CONFIG, PROVENANCE))
        if run:
            inner.clear()
        inner[:] = [name for name in inner if edge.holds(folder / name)]
        yield folder, run


class RunError(PrismError, RuntimeError):
    """A run folder is missing, unreadable or not the expected run."""


class CheckpointError(RunError):
    """A checkpoint is missing, damaged or of another version."""
