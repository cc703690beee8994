"""Evaluations of a run's policy: one file per condition and seed, computed once and then read.

A stored evaluation is valid if it is as it was written, and its identity (condition, seed,
protocol), its checkpoint and the hash of the policy's weights match the request.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from prism_motor._checks import EvaluationError
from prism_motor._console import note
from prism_motor._devices import choose_device
from prism_motor.domains import Domain, open_run
from prism_motor.protocols import Evaluator, Key
from prism_motor.reporting import EVALUATED_BY
from prism_motor.runs import Run, collect_provenance
from prism_motor.runs.atomic import remove_leftovers
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.runs.layout import EVALUATIONS
from prism_motor.runs.locks import Lock
from prism_motor.runs.seals import is_intact

if TYPE_CHECKING:
    from prism_motor.train.config import EvaluationConfig

SCHEMA = 1
"""Version of the file format; increased when the meaning of a field changes."""


class Evaluations:
    """The evaluations of one policy, stored in ``evaluations/`` of its run.

    Args:
        path: The run folder, or the name of a shipped policy, which can only be read.
        evaluation: What to evaluate; default: the domain's protocol for the run's preset.
        step: Which checkpoint; default: the newest.
    """

    def __init__(
        self,
        path: str | Path,
        evaluation: EvaluationConfig | None = None,
        step: int | None = None,
    ) -> None:
        self.run, self.domain, self.config = open_run(path)
        self.evaluation = evaluation or self.domain.protocol(self.config.preset)
        self.domain.check_evaluation(self.config, self.evaluation)
        self.step = self.run.checkpoint_step(step)
        self._evaluator: Evaluator | None = None
        self._complained: set[Path] = set()

    @cached_property
    def weights_hash(self) -> str:
        """Hash of the policy's weights."""
        return hash_weights(self.run.weights(self.domain.weights, self.step))

    @cached_property
    def _provenance(self) -> dict[str, Any]:
        return {**collect_provenance(), "device": self._device}

    @cached_property
    def _device(self) -> str:
        return choose_device(self.evaluation.device, self.config.device)

    def under(self, evaluation: EvaluationConfig) -> Evaluations:
        """Return the evaluations of the same policy by another protocol."""
        self.domain.check_evaluation(self.config, evaluation)
        other = copy(self)  # with the hash of the weights, once it is known
        other.evaluation, other._evaluator = evaluation, None
        return other

    def read(self, condition: str, seed: int) -> dict[Key, Any]:
        """Return the stored episodes of this policy by key."""
        name = self.domain.evaluation_name(self.evaluation, condition, seed)
        file = self.run.path / EVALUATIONS / f"{name}.json"
        if not file.is_file():
            return {}
        identity = self._identity(condition, seed)
        kind = self.domain.episode
        names = [field.name for field in fields(kind)]
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            if is_intact(data) is False:
                self._complain(file, "was changed after it was written")
                return {}
            if {key: data[key] for key in identity} != identity:
                return {}
            episodes = [kind(**{name: row[name] for name in names}) for row in data["episodes"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            self._complain(file, "cannot be read")
            return {}
        return {self._key(episode): episode for episode in episodes}

    def _complain(self, file: Path, why: str) -> None:
        """Say once that a file does not count."""
        if file not in self._complained:
            self._complained.add(file)
            note(f"{file} {why}; its episodes do not count.")

    def missing(self, condition: str, seed: int, again: bool = False) -> list[Key]:
        """Return the episodes that are not done yet.

        Args:
            condition: Name of the condition.
            seed: Evaluation seed.
            again: Include finished episodes.
        """
        wanted = self.domain.episode_keys(self.config, self.evaluation)
        if again:
            return wanted
        done = self.read(condition, seed)
        lacks = self.domain.lacks_files
        where = (self.run, self.evaluation, condition, seed, self.step)
        return [key for key in wanted if key not in done or lacks(*where, key)]

    def count_done(self) -> int:
        """Return how many (condition, seed) pairs have all their episodes."""
        return sum(not self.missing(*pair) for pair in self.evaluation.pairs)

    def steps(self, keys: Sequence[Key]) -> int:
        """Return the largest number of progress steps that these episodes can take."""
        return self._open().steps(keys) if keys else 0

    def measure(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        *,
        again: bool = False,
        report: Callable[[], None] = lambda: None,
    ) -> dict[Key, Any]:
        """Run episodes and return them; each is written as soon as it finishes.

        Args:
            condition: Name of the condition.
            seed: Evaluation seed.
            keys: Which episodes, from :meth:`missing`.
            again: Start a new file instead of adding to the existing one.
            report: Called at every step of progress.
        """
        if not keys:
            return {}
        folder = self.run.evaluations_folder()  # fail early if the folder is not writable
        name = self.domain.evaluation_name(self.evaluation, condition, seed)
        lock = Lock(
            folder / f".{name}.lock",
            f"{folder / name}.json is being written by {{owner}}. Wait until it ends, or stop it.",
        )
        measured: dict[Key, Any] = {}
        threads = torch.get_num_threads()  # evaluators change it
        with lock:
            remove_leftovers(folder, f"{name}.json")
            stored = {} if again else self.read(condition, seed)

            def keep(*episodes: Any) -> None:
                for episode in episodes:
                    self._check(condition, seed, episode)
                measured.update({self._key(episode): episode for episode in episodes})
                self._write(condition, seed, stored | measured)

            try:
                self._open().run(condition, seed, keys, keep, report)
            finally:
                torch.set_num_threads(threads)
        return measured

    def store(
        self, condition: str, seed: int, by: str, rows: list[dict[str, Any]], file: Path
    ) -> Path:
        """Store the episodes of another program, apart from our own, and return the file.

        Args:
            condition: Name of the condition.
            seed: Evaluation seed.
            by: Name of the program.
            rows: Its episodes.
            file: Where they come from.
        """
        name = self.domain.evaluation_name(self.evaluation, condition, seed)
        identity = self._identity(condition, seed)
        labels = self.domain.labels(self.config)
        origin = {"file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        data = {
            **identity,
            "protocol": {**identity["protocol"], EVALUATED_BY: by},
            "provenance": {**self._provenance, "results": origin},
            "episodes": [{**labels, **row} for row in rows],
        }
        return self.run.write_evaluation(f"{by}-{name}", data)

    def found(self) -> dict[str, list[Any]]:
        """Return all stored episodes that match the request, by condition."""
        wanted = set(self.domain.episode_keys(self.config, self.evaluation))
        return {
            condition: [
                episode
                for seed in self.evaluation.seeds
                for key, episode in self.read(condition, seed).items()
                if key in wanted
            ]
            for condition in self.evaluation.conditions
        }

    def close(self) -> None:
        """Free the simulator."""
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None

    def _open(self) -> Evaluator:
        if self._evaluator is None:
            placed = replace(self.evaluation, device=self._device)
            self._evaluator = self.domain.evaluator(self.run, self.step, placed)
        return self._evaluator

    def _key(self, episode: Any) -> Key:
        return tuple(getattr(episode, name) for name in self.domain.episode.KEY)

    def _check(self, condition: str, seed: int, episode: Any) -> None:
        """Raise if a measure is not finite: it would count, or vanish, in every mean."""
        for name, value in asdict(episode).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise EvaluationError(
                    f"The {name.replace('_', ' ')} of episode {self._key(episode)} of {condition}, "
                    f"seed {seed}, is {value}. Either the policy's weights or the simulation "
                    "diverged; evaluate another checkpoint."
                )

    def _write(self, condition: str, seed: int, episodes: dict[Key, Any]) -> None:
        labels = self.domain.labels(self.config)
        data = {
            **self._identity(condition, seed),
            "provenance": self._provenance,
            "episodes": [{**labels, **asdict(episodes[key])} for key in sorted(episodes)],
        }
        name = self.domain.evaluation_name(self.evaluation, condition, seed)
        self.run.write_evaluation(name, data)

    def _identity(self, condition: str, seed: int) -> dict[str, Any]:
        """Return the fields that a stored evaluation must match to be valid."""
        return {
            "schema": SCHEMA,
            **self.domain.identify(self.config, self.evaluation, condition, seed),
            "evaluation_seed": seed,
            "checkpoint": self.step,
            "policy_sha256": self.weights_hash,
        }


class EpisodeByEpisode:
    """Runs the episodes of a domain one after another.

    Args:
        domain: The domain, which runs a single episode.
        run: The run folder.
        step: Which checkpoint.
        device: Where the policy computes.
    """

    def __init__(self, domain: Domain, run: Run, step: int, device: str | None = None) -> None:
        self.domain, self.policy = domain, domain.place_policy(run.path, step, device)

    def steps(self, keys: Sequence[Key]) -> int:
        """Return the number of episodes."""
        return len(keys)

    def run(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        note: Callable[..., None],
        report: Callable[[], None],
    ) -> None:
        """Run episodes and report each one as it finishes."""
        for key in keys:
            note(self.domain.run_episode(self.policy, condition, seed, key))
            report()

    def close(self) -> None:
        """Do nothing: no resources are held."""
