"""The layout of a pilot's folder.

.. code-block:: text

    PILOT/
        plan.json        what was planned: criterion, order, robot, versions; arms are letters
        sealed.json      which letter is which arm, and its policies; for `prism pilot report`
        seal.json        size and SHA-256 of both
        home.json        where the robot waits between trials, if the plan does not say
        trials/007.json  one trial: what happened, and its label
        trials/007.npz   its states and actions
        trials/007-CAMERA.mp4
        poses/003-CAMERA.png      how things were placed for a start pose
        poses/overlay-CAMERA.png  the same over what the camera sees now
        labels/NAME.json a second look at the videos
        revealed.json    when the arms were revealed; no trial may follow
        report.html, report.md, report.json
"""

from __future__ import annotations

from pathlib import Path

from prism_motor._checks import PrismError

PLAN = "plan.json"
SEALED = "sealed.json"
HOME = "home.json"
TRIALS = "trials"
POSES = "poses"
LABELS = "labels"
REVEALED = "revealed.json"


class PilotError(PrismError, RuntimeError):
    """A pilot's folder is missing, changed or not ready for what was asked."""


def trial_file(folder: Path, number: int, ending: str = ".json") -> Path:
    """Return the name of a file of a trial: ``trials/007.json``."""
    return folder / TRIALS / f"{number:03d}{ending}"
