"""Evaluations of a run's policy: one file a condition and seed, written after every episode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prism.imitate.data import environment_of
from prism.imitate.policy import PolicyActor, check_fit, load_policy
from prism.manipulation.corrector import Corrector
from prism.manipulation.environment import Environment, Image
from prism.manipulation.perturbations import find_perturbation
from prism.manipulation.rollout import Outcome, run_episode
from prism.runs import Run, collect_provenance
from prism.runs.weights import hash_weights

SCHEMA = 1
"""Version of the files; raised when their meaning changes."""

SEEDS_APART = 1000
"""Initial states that fit between two evaluation seeds."""


@dataclass(frozen=True)
class Episode:
    """One episode of an evaluation."""

    initial_state: int
    """Which of the fixed initial states it began from."""
    outcome: Outcome
    """What was measured."""


@dataclass(frozen=True)
class Protocol:
    """How policies are evaluated, beside the condition and the seed."""

    linger: int = 0
    """Steps to go on after success; they count in traces alone."""
    corrector: str = "none"
    """Name of what changes actions at execution time."""


@dataclass(frozen=True)
class Extras:
    """What an evaluation leaves behind beside its numbers."""

    traces: bool = False
    """Whether forces, motion and actions of every step are kept."""
    videos: int = 0
    """How many of the first episodes are filmed."""


class Evaluations:
    """The evaluations of one policy, in ``evaluations/<condition>-<seed>.json`` of its run.

    With a corrector the files are called ``<condition>+<corrector>-<seed>.json``. Every arm begins
    from the same initial states, with the same noise.

    Args:
        path: The run folder.
        protocol: How episodes are run.
        step: Which checkpoint; the newest by default.
        corrector: Changes actions at execution time; ``protocol`` holds its name.
        threads: Threads of torch; their number may change the rounding.
    """

    def __init__(
        self,
        path: str | Path,
        protocol: Protocol | None = None,
        step: int | None = None,
        corrector: Corrector | None = None,
        threads: int = 1,
    ) -> None:
        self.threads = threads
        self.run = Run.open(path)
        self.policy = load_policy(path, step)
        self.protocol = protocol or Protocol()
        self.corrector = corrector
        self._scene: Environment | None = None
        self._hash = hash_weights(self.policy.network.state_dict())

    def name(self, condition: str, seed: int) -> str:
        """Return the name of an evaluation's files."""
        corrector = self.protocol.corrector
        return f"{condition}{'' if corrector == 'none' else f'+{corrector}'}-{seed}"

    def read(self, condition: str, seed: int) -> dict[int, Outcome]:
        """Return the stored outcomes of this policy by initial state."""
        file = self.run.path / "evaluations" / f"{self.name(condition, seed)}.json"
        identity = self._identity(condition, seed)
        try:
            data = json.loads(file.read_text())
            if {key: data[key] for key in identity} != identity:
                return {}
            names = Outcome.__dataclass_fields__
            return {
                row["initial_state"]: Outcome(**{name: row[name] for name in names})
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
    ) -> Iterator[Episode]:
        """Run episodes and yield each when it is written.

        Args:
            condition: Name of a perturbation.
            seed: Evaluation seed.
            states: Initial states to begin from.
            extras: What else to keep.
            keep: Whether what is stored already stays; else it is begun anew.
        """
        extras = extras or Extras()
        perturbation = find_perturbation(condition)
        done = self.read(condition, seed) if keep else {}
        scene = self._environment()
        torch.set_num_threads(self.threads)
        actor = PolicyActor(self.policy)
        check_states(scene, states)
        for state in states:
            pictures: list[Image] = []
            filmed = state < extras.videos
            outcome, trace = run_episode(
                scene,
                actor,
                initial_state=state,
                seed=SEEDS_APART * seed + state,
                perturbation=perturbation,
                corrector=self.corrector,
                linger=self.protocol.linger,
                film=pictures.append if filmed else None,
            )
            if extras.traces:
                _write_arrays(self.trace_file(condition, seed, state), asdict(trace))
            if filmed:
                self._write_video(condition, seed, state, pictures, scene.control_seconds)
            done[state] = outcome
            self._write(condition, seed, done)
            yield Episode(state, outcome)

    def _environment(self) -> Environment:
        if self._scene is None:
            self._scene = environment_of(self.policy.config)
            check_fit(self.policy, self._scene)
        return self._scene

    def close(self) -> None:
        """Free the simulator."""
        if self._scene is not None:
            self._scene.close()
            self._scene = None

    def trace_file(self, condition: str, seed: int, state: int) -> Path:
        """Return where the trace of an episode goes."""
        folder = self.run.path / "evaluations" / f"{self.name(condition, seed)}.traces"
        return folder / f"{self.policy.step}-{state:03d}.npz"

    def video_file(self, condition: str, seed: int, state: int) -> Path:
        """Return where the film of an episode goes."""
        name = f"{self.policy.step:08d}-{self.name(condition, seed)}-{state:03d}.mp4"
        return self.run.path / "videos" / name

    def _write(self, condition: str, seed: int, done: dict[int, Outcome]) -> None:
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
            "provenance": collect_provenance(),
            "episodes": rows,
        }
        self.run.write_evaluation(self.name(condition, seed), data)

    def _write_video(
        self, condition: str, seed: int, state: int, pictures: list[Image], seconds: float
    ) -> None:
        from prism.sim.video_files import write_video

        # Every other picture above 30 a second: a film of 80 is hard to play.
        skip = max(1, round(1 / seconds / 30))
        file = self.video_file(condition, seed, state)
        write_video(file, pictures[::skip], 1 / seconds / skip)

    def _identity(self, condition: str, seed: int) -> dict[str, Any]:
        """What makes a stored evaluation the one that is asked for."""
        return {
            "schema": SCHEMA,
            "kind": self.policy.config.kind,
            "condition": {"name": condition, **asdict(find_perturbation(condition))},
            "evaluation_seed": seed,
            "protocol": asdict(self.protocol),
            "checkpoint": self.policy.step,
            "policy_sha256": self._hash,
        }


def check_states(environment: Environment, states: Sequence[int]) -> None:
    """Raise unless an environment has these initial states."""
    if states and max(states) >= environment.initial_states:
        task = environment.task
        raise ValueError(
            f"{task.suite} {task.name} has {environment.initial_states} fixed initial states, so "
            f"at most that many episodes a seed; got {max(states) + 1}."
        )


def _write_arrays(file: Path, arrays: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.tmp")
    with temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    temporary.replace(file)
