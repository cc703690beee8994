"""The plan of a pilot: written and sealed before the first trial, and never changed.

What everyone may read is in ``plan.json``, where arms are letters. Which letter is which arm is in
``sealed.json``, whose content is encoded: not to keep a secret from those who want to know, but so
that nobody reads it by accident.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor.pilots.config import PilotConfig
from prism_motor.pilots.layout import PLAN, REVEALED, SEALED, PilotError
from prism_motor.pilots.order import Slot
from prism_motor.pilots.policies import PolicySource
from prism_motor.runs.atomic import atomic_folder, write_json
from prism_motor.runs.configs import ConfigError, from_dict, to_dict
from prism_motor.runs.layout import SEAL
from prism_motor.runs.seals import find_changed, fingerprint, is_seal, seal_files

_NOTE = "Which letter is which arm. prism pilot report opens it; reading it ends the blinding."


@dataclass(frozen=True)
class RobotPlan:
    """The robot of a pilot."""

    flags: tuple[str, ...]
    """Its flags, as they were given."""
    settings: dict[str, Any]
    """All of its settings, as LeRobot understood them; cameras included."""
    state: tuple[str, ...]
    """Names of the coordinates of its state."""
    actions: tuple[str, ...]
    """Names of the coordinates of its actions."""
    calibration: str | None
    """SHA-256 of its calibration file; ``None`` without one."""


@dataclass(frozen=True)
class StartPose:
    """A start pose, which all arms share."""

    number: int
    """From 1."""
    seed: int
    """What a simulated robot sets it by, and what the policies' noise is drawn from."""
    pictures: dict[str, str]
    """SHA-256 of its pictures by camera, if they were given."""


@dataclass(frozen=True)
class PlannedPower:
    """How often the primary test would find a difference."""

    rates: tuple[float, float]
    """True rates of the two arms."""
    power: float
    """Chance of a p-value below 0.05, before any correction for several arms."""


@dataclass(frozen=True)
class PilotPlan:
    """What everyone may read."""

    settings: dict[str, Any]
    """The settings; see :class:`prism_motor.pilots.config.PilotConfig`."""
    fps: int
    """Control steps per second."""
    arms: tuple[str, ...]
    """Letters of the arms."""
    policies: int
    """Policies, as a rule training seeds, of each arm."""
    order: tuple[Slot, ...]
    """All trials in order."""
    poses: tuple[StartPose, ...]
    """Start poses."""
    power: tuple[PlannedPower, ...]
    """Power of the primary test."""
    robot: RobotPlan
    """The robot."""
    plugins: tuple[str, ...]
    """User modules that were loaded."""
    provenance: dict[str, Any]
    """Versions, commit and time."""

    @property
    def config(self) -> PilotConfig:
        """The settings, checked; which arm is the reference stays sealed."""
        poses = self.settings["poses"]
        data = {**self.settings, "poses": None if poses is None else Path(poses)}
        return from_dict(PilotConfig, data, PLAN)


@dataclass(frozen=True)
class SealedArm:
    """Who a letter is."""

    name: str
    """The arm's name."""
    policies: tuple[PolicySource, ...]
    """Its policies."""


@dataclass(frozen=True)
class SealedPart:
    """What stays closed until the report."""

    arms: dict[str, Any]
    """A :class:`SealedArm` by letter, as plain data."""
    reference: str
    """Letter of the arm that the others are compared with."""

    def arm(self, letter: str) -> SealedArm:
        """Return who a letter is."""
        return from_dict(SealedArm, self.arms[letter], SEALED)


def write_plan(folder: Path, plan: PilotPlan, sealed: SealedPart) -> None:
    """Write and seal a plan; the folder appears when it is complete."""
    payload = base64.b64encode(json.dumps(to_dict(sealed)).encode()).decode()
    with atomic_folder(folder) as place:
        write_json(place / SEALED, {"note": _NOTE, "content": payload})
        write_json(place / PLAN, to_dict(plan))
        write_json(place / SEAL, seal_files(place, (PLAN, SEALED)))


def check_new(folder: Path) -> None:
    """Raise if a folder cannot become a pilot's."""
    if (folder / PLAN).exists():
        raise PilotError(
            f"{folder} has a sealed plan, which cannot be changed. Start a new pilot folder."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PilotError(f"{folder} exists and is no pilot's folder. Choose another one.")


def read_plan(folder: Path) -> PilotPlan:
    """Return the plan of a pilot, or raise if it is not as it was sealed."""
    _check_seal(folder)
    try:
        return from_dict(PilotPlan, _read(folder / PLAN), PLAN)
    except ConfigError as error:
        raise PilotError(f"{folder / PLAN} was written by another version: {error}") from error


def open_sealed(folder: Path) -> SealedPart:
    """Return which letter is which arm; only loading policies and the report may ask."""
    _check_seal(folder)
    content = json.loads(base64.b64decode(_read(folder / SEALED)["content"]))
    return from_dict(SealedPart, content, SEALED)


def plan_hash(folder: Path) -> str:
    """Return the hash of the seal, which every trial records."""
    return fingerprint(folder / SEAL)["sha256"]


def check_not_revealed(folder: Path) -> None:
    """Raise if the arms of a pilot are known, so that no trial may follow."""
    if (folder / REVEALED).exists():
        when = _read(folder / REVEALED)["time"]
        raise PilotError(
            f"The arms of {folder} were revealed at {when}; trials that follow would not be "
            "blinded. Start a new pilot folder."
        )


def _check_seal(folder: Path) -> None:
    if not (folder / PLAN).is_file():
        raise PilotError(f"{folder} is no pilot's folder. Make one with: prism pilot plan {folder}")
    seal = _read(folder / SEAL) if (folder / SEAL).is_file() else None
    if not is_seal(seal, (PLAN, SEALED)):
        raise PilotError(f"{folder / SEAL} is missing or damaged. Start a new pilot folder.")
    assert seal is not None
    if changed := find_changed(folder, seal):
        raise PilotError(
            f"{' and '.join(changed)} in {folder} changed after the plan was sealed. A plan cannot "
            "be changed: restore it, or start a new pilot folder."
        )


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise PilotError(f"{file} is damaged: {error}.") from error
    if not isinstance(data, dict):
        raise PilotError(f"{file} is damaged: it holds no object.")
    return data
