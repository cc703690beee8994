"""results.json: the results of a study so far, saved after every job."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor.runs import collect_provenance
from prism_motor.runs.atomic import write_json
from prism_motor.studies.physics.robot import ARM_XML
from prism_motor.studies.physics.training import ALIASES, FitJob

if TYPE_CHECKING:
    from prism_motor.studies.physics.config import PhysicsConfig

SCHEMA = 2
"""Version of the file; increased when its meaning changes."""

FILE_NAME = "results.json"
"""Name of the results file in the study's folder."""

_WITHOUT_INFLUENCE = ("seeds", "arms", "workers")
"""Fields that do not affect the result of a single job."""


class PhysicsResults:
    """Finished jobs of one configuration in one folder.

    Args:
        folder: Folder of results.json; must exist.
        config: The configuration. Finished jobs of an earlier run are reused if they were
            made with the same settings and versions; otherwise the old file is renamed to
            ``results.previous.json``.
    """

    def __init__(self, folder: Path, config: PhysicsConfig) -> None:
        self.path = folder / FILE_NAME
        self.config = config
        self.versions = versions()
        self.fingerprint = _fingerprint(config, self.versions)
        self.chosen: dict[str, float] = {}
        self._started = time.perf_counter()
        self._earlier_seconds = 0.0
        self.jobs: dict[str, dict[str, Any]] = self._earlier_jobs()
        self.reused = len(self.jobs)

    def _earlier_jobs(self) -> dict[str, dict[str, Any]]:
        if not self.path.exists():
            return {}
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["fingerprint"] == self.fingerprint and stored["schema"] == SCHEMA:
                self._earlier_seconds = float(stored["wall_seconds"])
                return dict(map(_renamed, stored["jobs"].values()))
        except (ValueError, KeyError, TypeError):
            pass  # damaged or not ours: renamed below, never overwritten
        self.path.replace(self.path.with_name("results.previous.json"))
        return {}

    def add(self, job: FitJob, entry: dict[str, Any]) -> None:
        """Add a finished job."""
        self.jobs[job.key] = entry
        self.save()

    def has(self, job: FitJob) -> bool:
        """Return whether a job is done."""
        return job.key in self.jobs

    def of_arm(self, arm: str) -> list[dict[str, Any]]:
        """Return an arm's entries at its chosen rate for the reported seeds, in order."""
        jobs = (FitJob(arm, seed, self.chosen[arm]) for seed in self.config.reported_seeds)
        return [self.jobs[job.key] for job in jobs]

    @property
    def wall_seconds(self) -> float:
        """Seconds spent on this study, over all sessions."""
        return self._earlier_seconds + time.perf_counter() - self._started

    def save(self) -> None:
        """Write everything atomically."""
        content = {
            "schema": SCHEMA,
            "fingerprint": self.fingerprint,
            "config": asdict(self.config),
            "versions": self.versions,
            "chosen_learning_rates": self.chosen,
            "wall_seconds": round(self.wall_seconds, 1),
            "reused_jobs": self.reused,
            "jobs": self.jobs,
        }
        write_json(self.path, content)


def versions() -> dict[str, str]:
    """Return the package versions that can affect the numbers."""
    made = collect_provenance()
    packages = {name: made["packages"][name] for name in ("torch", "mujoco", "numpy", "scipy")}
    return {"prism": made["prism"], "python": made["python"], **packages}


def _renamed(entry: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a stored job with its key, using the current name of its arm."""
    arm = str(ALIASES.get(entry["arm"], entry["arm"]))
    return FitJob(arm, entry["seed"], entry["learning_rate"]).key, {**entry, "arm": arm}


def _fingerprint(config: PhysicsConfig, found: dict[str, str]) -> str:
    """Return a string that is equal for runs whose jobs are interchangeable."""
    settings = {k: v for k, v in asdict(config).items() if k not in _WITHOUT_INFLUENCE}
    settings["steps"] = settings.pop("updates")  # its name in the first results
    text = json.dumps([settings, found, ARM_XML], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
