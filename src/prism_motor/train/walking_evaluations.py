"""Evaluations of a run's policy: one file a condition and seed, done once and then read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from prism_motor._errors import InputError
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.evaluation import Protocol, WalkingEpisode, evaluate
from prism_motor.locomotion.policy import load_policy
from prism_motor.runs import Run, collect_provenance, to_dict
from prism_motor.runs.weights import hash_weights

SCHEMA = 1
"""Version of the files; raised when their meaning changes."""


class Evaluations:
    """The evaluations of one policy, kept in ``evaluations/<condition>-<seed>.json`` of its run.

    Args:
        path: The run folder, or the name of a shipped policy, which can only be read.
        protocol: How many environments and episodes.
        step: Which checkpoint; the newest by default.
    """

    def __init__(
        self, path: str | Path, protocol: Protocol | None = None, step: int | None = None
    ) -> None:
        self.run = Run.open(path)
        self.policy = load_policy(path, step)
        self.protocol = protocol or Protocol()
        self._hash = hash_weights(self.policy.actor.state_dict())

    def plan(
        self, conditions: Sequence[str], seeds: Sequence[int], again: bool = False
    ) -> list[tuple[str, int]]:
        """Check a request and return the (condition, seed) pairs that are not done yet.

        Args:
            conditions: Names of conditions.
            seeds: Evaluation seeds.
            again: Plan also what is done.
        """
        for what, values in (("condition", conditions), ("seed", seeds)):
            if not values or len(set(values)) < len(values):
                raise InputError(f"Give at least one {what}, and each once; got {list(values)}.")
        for seed in seeds:
            if seed < 0:
                raise InputError(f"Evaluation seeds must not be negative, got {seed}.")
        for condition in conditions:
            find_condition(condition).apply(self.policy.config.task)
        pairs = [(condition, seed) for condition in conditions for seed in seeds]
        missing = [pair for pair in pairs if again or self.read(*pair) is None]
        if missing:
            self.run.evaluations_folder()  # a folder that cannot be written to is known early
        return missing

    def read(self, condition: str, seed: int) -> list[WalkingEpisode] | None:
        """Return the stored episodes, or ``None`` if this policy was not evaluated like this."""
        file = self.run.path / "evaluations" / f"{condition}-{seed}.json"
        try:
            data = json.loads(file.read_text())
            identity = self._identity(condition, seed)
            if {key: data[key] for key in identity} != identity:
                return None
            names = WalkingEpisode.__dataclass_fields__
            return [
                WalkingEpisode(**{name: row[name] for name in names}) for row in data["episodes"]
            ]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def measure(
        self,
        condition: str,
        seed: int,
        *,
        threads: int = 1,
        report: Callable[[], None] | None = None,
    ) -> list[WalkingEpisode]:
        """Evaluate and write the file.

        Args:
            condition: Name of the condition.
            seed: Evaluation seed.
            threads: Threads of the simulation.
            report: Called after every control step.
        """
        # The policy is small, and one thread keeps its rounding the same everywhere.
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            episodes = evaluate(
                self.policy, self.policy.config.task, condition, seed=seed,
                protocol=self.protocol, threads=threads, report=report,
            )  # fmt: skip
        finally:
            torch.set_num_threads(before)
        config = self.policy.config
        labels = {"arm": config.arm, "training_seed": config.seed}
        self.run.write_evaluation(
            f"{condition}-{seed}",
            {
                **self._identity(condition, seed),
                "provenance": collect_provenance(),
                "episodes": [{**labels, **asdict(episode)} for episode in episodes],
            },
        )
        return episodes

    def _identity(self, condition: str, seed: int) -> dict[str, Any]:
        """What makes a stored evaluation the one that is asked for."""
        changed = find_condition(condition).apply(self.policy.config.task)
        return {
            "schema": SCHEMA,
            "condition": {
                "name": condition,
                "randomisation": to_dict(changed.randomisation),
                "observation_noise": changed.observations.noise,
            },
            "evaluation_seed": seed,
            "protocol": to_dict(self.protocol),
            "checkpoint": self.policy.step,
            "policy_sha256": self._hash,
        }
