"""Evaluations of a run's policy: one file a condition and seed, written after every episode."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from prism_motor._errors import InputError
from prism_motor.manipulation import workers as pool
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.diffusion.policy import check_fit, load_policy
from prism_motor.manipulation.environment import Corrector, Environment
from prism_motor.manipulation.episodes import (
    EpisodeFiles,
    EpisodeRunner,
    Extras,
    Protocol,
    load_runner,
)
from prism_motor.manipulation.rollout import HandlingOutcome, find_perturbation
from prism_motor.runs import Run, collect_provenance
from prism_motor.runs.weights import hash_weights

__all__ = ["SCHEMA", "Evaluations", "Extras", "Protocol"]

SCHEMA = 1
"""Version of the files; raised when their meaning changes."""

Report = Callable[[int, HandlingOutcome | None], None]
"""Told after every episode: initial state and outcome; none if it crashed, again and again."""


class Evaluations:
    """The evaluations of one policy, in ``evaluations/<condition>-<seed>.json`` of its run.

    With a corrector the files are called ``<condition>+<corrector>-<seed>.json``, with another
    stiffness ``<condition>+kp50-<seed>.json``. Every arm begins from the same initial states, with
    the same noise.

    Args:
        path: The run folder.
        protocol: How episodes are run.
        step: Which checkpoint; the newest by default.
        corrector: Changes actions at execution time; ``protocol`` holds its name.
        threads: Threads of torch; their number may change the rounding.
        workers: Processes that run episodes; 0 for this one.
    """

    def __init__(
        self,
        path: str | Path,
        protocol: Protocol | None = None,
        step: int | None = None,
        corrector: Corrector | None = None,
        threads: int = 1,
        workers: int = 0,
    ) -> None:
        self.threads, self.workers = threads, workers
        self.run = Run.open(path)
        self.policy = load_policy(path, step)
        self.protocol = protocol or Protocol()
        self.corrector = corrector
        self._scene: Environment | None = None
        self._provenance = collect_provenance()
        self._hash = hash_weights(self.policy.network.state_dict())

    def name(self, condition: str, seed: int) -> str:
        """Return the name of an evaluation's files."""
        corrector, stiffness = self.protocol.corrector, self.protocol.stiffness
        parts = [condition] if corrector == "none" else [condition, corrector]
        parts += [] if stiffness is None else [f"kp{stiffness:g}"]
        return f"{'+'.join(parts)}-{seed}"

    def read(self, condition: str, seed: int) -> dict[int, HandlingOutcome]:
        """Return the stored outcomes of this policy by initial state."""
        file = self.run.path / "evaluations" / f"{self.name(condition, seed)}.json"
        identity = self._identity(condition, seed)
        try:
            data = json.loads(file.read_text())
            if {key: data[key] for key in identity} != identity:
                return {}
            names = HandlingOutcome.__dataclass_fields__
            return {
                row["initial_state"]: HandlingOutcome(**{name: row[name] for name in names})
                for row in data["episodes"]
            }
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return {}

    def missing(
        self, condition: str, seed: int, episodes: int, extras: Extras | None = None
    ) -> list[int]:
        """Return the initial states among the first ``episodes`` that are not done yet."""
        extras = extras or Extras()
        done = self.read(condition, seed)
        return [
            state
            for state in range(episodes)
            if state not in done
            or (extras.traces and not self.trace_file(condition, seed, state).is_file())
            or (state < extras.videos and not self.video_file(condition, seed, state).is_file())
        ]

    def measure(
        self,
        condition: str,
        seed: int,
        states: Sequence[int],
        *,
        extras: Extras | None = None,
        keep: bool = True,
        report: Report | None = None,
    ) -> dict[int, HandlingOutcome]:
        """Run episodes and return their outcomes; each is written as soon as it ends.

        Args:
            condition: Name of a perturbation.
            seed: Evaluation seed.
            states: Initial states to begin from.
            extras: What else to keep.
            keep: Whether what is stored already stays; else it is begun anew.
            report: Told after every episode.
        """
        extras = extras or Extras()
        stored = self.read(condition, seed) if keep else {}
        scene = self._environment()
        check_states(scene, states)
        options: dict[str, Any] = {
            "condition": condition,
            "seed": seed,
            "protocol": self.protocol,
            "corrector": self.corrector,
            "extras": extras,
            "files": self._files(condition, seed),
            "threads": self.threads,
        }
        measured: dict[int, HandlingOutcome] = {}

        def note(done: pool.JobResult[HandlingOutcome]) -> None:
            state = done.job.initial_state
            assert state is not None
            if done.result is not None:
                measured[state] = done.result
                self._write(condition, seed, stored | measured)
            if report is not None:
                report(state, done.result)

        make_runner: Callable[[], EpisodeRunner]
        if self.workers:
            make_runner = partial(load_runner, self.run.path, self.policy.step, **options)
        else:
            make_runner = partial(EpisodeRunner, self.policy, scene, **options)
        episodes = [pool.EpisodeJob(scene.task, initial_state=state) for state in states]
        pool.run_episodes(make_runner, episodes, workers=self.workers, on_done=note)
        return measured

    def _environment(self) -> Environment:
        if self._scene is None:
            self._scene = environment_of(self.policy.config, self.protocol.stiffness)
            check_fit(self.policy, self._scene)
        return self._scene

    def close(self) -> None:
        """Free the simulator."""
        if self._scene is not None:
            self._scene.close()
            self._scene = None

    def trace_file(self, condition: str, seed: int, state: int) -> Path:
        """Return where the trace of an episode goes."""
        return self._files(condition, seed).trace(state)

    def video_file(self, condition: str, seed: int, state: int) -> Path:
        """Return where the film of an episode goes."""
        return self._files(condition, seed).video(state)

    def _files(self, condition: str, seed: int) -> EpisodeFiles:
        return EpisodeFiles(self.run.path, self.name(condition, seed), self.policy.step)

    def _write(self, condition: str, seed: int, done: dict[int, HandlingOutcome]) -> None:
        config = self.policy.config
        labels = {
            "arm": config.arm,
            "training_seed": config.seed,
            "suite": config.task.suite,
            "task": config.task.name,
        }
        rows = [
            {**labels, "initial_state": state, **asdict(outcome)}
            for state, outcome in sorted(done.items())
        ]
        data = {
            **self._identity(condition, seed),
            "provenance": self._provenance,
            "episodes": rows,
        }
        self.run.write_evaluation(self.name(condition, seed), data)

    def _identity(self, condition: str, seed: int) -> dict[str, Any]:
        """What makes a stored evaluation the one that is asked for."""
        return {
            "schema": SCHEMA,
            "kind": self.policy.config.kind,
            "condition": {"name": condition, **asdict(find_perturbation(condition))},
            "evaluation_seed": seed,
            "protocol": self.protocol.known(),
            "checkpoint": self.policy.step,
            "policy_sha256": self._hash,
        }


def check_states(environment: Environment, states: Sequence[int]) -> None:
    """Raise unless an environment has these initial states."""
    if states and max(states) >= environment.initial_states:
        task = environment.task
        raise InputError(
            f"{task.suite} {task.name} has {environment.initial_states} fixed initial states, so "
            f"at most that many episodes a seed; got {max(states) + 1}."
        )
