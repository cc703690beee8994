"""Learning to track: rollouts under latents, updates from the replay buffer; exact resume."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor._devices import random_state, set_random_state
from prism_motor.runs.checkpoints import select
from prism_motor.runs.layout import REPLAY, RunError
from prism_motor.sim.engines import EngineChoice, resolve_engine
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.evaluation import cut_pieces, measure, policy_controller, track
from prism_motor.tracking.learning.latents import RolloutLatents
from prism_motor.tracking.learning.learner import TrackingLearner
from prism_motor.tracking.learning.replay import ReplayBuffer, transition_fields
from prism_motor.tracking.learning.warm_start import WarmStart
from prism_motor.tracking.references import load_references
from prism_motor.train.finite import (
    NonFiniteTrainingError,
    check,
    check_numbers,
    check_observations,
    explain,
)
from prism_motor.train.replay_files import ReplayFiles

if TYPE_CHECKING:
    from prism_motor.protocols import State
    from prism_motor.tracking.config import TrackingConfig

_PIECE = 10.0
"""Longest piece of a clip by which priorities are set, s."""


class TrackingTrainer:
    """Forward-backward learning with a discriminator, after a warm start where the preset has one.

    All randomness comes from the generators of environment, learner and replay buffer and from
    torch's global one; all are part of :meth:`state`.

    Args:
        config: The run, prepared.

    Attributes:
        updates: Finished updates.
        seconds: Time they took.
    """

    def __init__(self, config: TrackingConfig) -> None:
        self.config = config
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self._device = torch.device(config.device)
        self._references = load_references(config.task)
        self._digest = self._references.digest()
        # Seeds of different runs must not coincide with those of evaluations.
        self.env = TrackingEnv(
            config.task,
            self._references,
            config.envs,
            seed=1000 * config.seed,
            threads=config.threads,
            engine=EngineChoice(
                resolve_engine(config.engine, config.device), config.device, config.contacts
            ),
        )
        layout, units = self.env.layout, torch.tensor(config.task.units)
        self.learner = TrackingLearner(
            config, layout, seed=config.seed, device=self._device, precision=config.precision
        )
        window = config.latents.window
        self._experts = self._references.experts(layout, units, window, self._device)
        self._latents = RolloutLatents(
            config.latents, config.envs, config.networks.latent, self._device
        )
        physics = self.env.engine.qpos.shape[1] + self.env.engine.qvel.shape[1]
        terms = len(config.auxiliary.weights)
        self.replay = ReplayBuffer(
            config.replay.rows,
            config.envs,
            transition_fields(layout, config.networks.latent, terms, physics),
            seed=config.seed,
            device="cpu" if config.replay.place == "host" else self._device,
        )
        self._warm: WarmStart | None = None
        if config.warm_start.updates:
            self._warm = WarmStart(config, self.learner, self.env, self._references, self._experts)
        self._files: ReplayFiles | None = None
        self._sweeps = 0
        self.updates, self.seconds = 0, 0.0
        self._timer: dict[str, float] = defaultdict(float)

    def attach(self, folder: Path) -> None:
        """Take note of the run's folder: the replay buffer is kept in files of its own there."""
        self._files = ReplayFiles(folder / REPLAY, self.config.replay.segment_rows)

    # --- training ---

    def update(self) -> dict[str, float]:
        """Let all robots act for a while, learn, and return the metrics."""
        before = _Before(self)  # of this update alone: it is as large as all networks
        start = time.perf_counter()
        self._timer = defaultdict(float)
        warm = self._warm is not None and self.updates < self.config.warm_start.updates
        try:
            check_observations([("policy", self.env.observations)])
            found = self._warm_up() if warm else self._learn()
            self.env.engine.check()
            self.updates += 1
            if self._is_due():
                found |= self._prioritise()
            wall = time.perf_counter() - start
            self.seconds += wall
            row = self._metrics(found, wall, warm)
            check_numbers("metric", row)
        except NonFiniteTrainingError as error:
            before.put_back(self)
            raise NonFiniteTrainingError(explain(error, self.models())) from error
        return row

    def _warm_up(self) -> dict[str, float]:
        assert self._warm is not None
        return self._warm.update(self._timing, self.replay.add)

    def _learn(self) -> dict[str, float]:
        """Act under latents, and do the gradient steps that are due after every control step."""
        config = self.config
        if self._warm is not None and self.updates == config.warm_start.updates:
            self.learner.drop_anchor()
        sums: dict[str, Tensor] = {}
        counts: dict[str, int] = defaultdict(int)
        upright, ended = 0.0, 0.0
        for _ in range(config.learner.sweeps):
            stood, ends = self._sweep()
            upright, ended = upright + stood, ended + ends
            self._sweeps += 1
            # The first step has no successor yet, whatever the settings say.
            if self._sweeps * config.envs <= config.learner.warmup_steps or len(self.replay) < 2:
                continue
            with self._timing("update"):
                for _ in range(config.learner.steps_due(self._sweeps)):
                    for name, value in self.learner.learn(self.replay, self._experts).items():
                        sums[name] = sums[name] + value if name in sums else value
                        counts[name] += 1
        total = config.learner.sweeps * config.envs
        found = {name: (value / counts[name]).item() for name, value in sums.items()}
        seconds = total * config.task.control_dt
        return {
            "upright": upright / total,
            "seconds_between_ends": seconds / max(1, ended),
            **found,
        }

    def _sweep(self) -> tuple[float, float]:
        """Let every robot act once; return how many stand and how many episodes ended."""
        env, learner, generator = self.env, self.learner, self.learner.generator
        latents = self._latents.step(
            env.clocks, learner.ring, lambda n: learner.stretches(self._experts, n), generator
        )
        before = env.observations
        physics = np.concatenate([env.engine.qpos, env.engine.qvel], axis=1)
        with self._timing("policy"):
            steps = self._sweeps * self.config.envs
            actions = learner.explore(before, latents, steps).cpu()
        check("the action", actions)
        with self._timing("environment"):
            step = env.step(actions)
        check_observations([("policy", env.observations)])
        check("what a step is punished for", step.terms)
        self.replay.add(
            observation=before,
            action=env.applied,
            latent=latents,
            auxiliary=step.terms,
            physics=torch.from_numpy(physics),
            ends=step.ends,
        )
        return float(step.upright.sum()), float(step.ends.sum())

    def _is_due(self) -> bool:
        every = self.config.prioritise_every
        return bool(every) and self.updates % every == 0

    def _prioritise(self) -> dict[str, float]:
        """Evaluate the policy on all clips, and draw those more often that it tracks badly."""
        config, references = self.config, self._references
        pieces = cut_pieces(references, _PIECE, config.task.control_dt)
        control = policy_controller(self.learner.policy, references, config.task.ahead)
        with self._timing("evaluation"):
            tracked = track(
                control, config.task, references, pieces, threads=config.threads, seed=config.seed
            )
        found = [measure(one, references, config.task.control_dt) for one in tracked]
        emd: dict[str, list[float]] = defaultdict(list)
        for piece, values in zip(pieces, found, strict=True):
            emd[piece.clip].append(float(values["emd"]))
        self._experts.prioritise({name: float(np.mean(values)) for name, values in emd.items()})
        self.env.priorities = self._experts.priorities.double().cpu()
        return {
            "tracking/emd": float(np.mean([values["emd"] for values in found])),
            "tracking/upright": float(np.mean([values["upright"] for values in found])),
        }

    def _metrics(self, found: dict[str, float], wall: float, warm: bool) -> dict[str, float]:
        config, timer = self.config, self._timer
        samples = config.samples_at(self.updates)
        physics = self.env.engine.take_seconds()
        return {
            "update": self.updates,
            "samples": samples,
            "gradient_steps": self.learner.steps,
            "seconds": round(self.seconds, 3),
            "warm_start": float(warm),
            **found,
            "samples_per_second": (samples - config.samples_at(self.updates - 1)) / wall,
            "time/physics": physics / wall,
            "time/task": (timer["environment"] - physics) / wall,
            "time/policy": timer["policy"] / wall,
            "time/update": timer["update"] / wall,
        }

    @contextmanager
    def _timing(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._timer[name] += time.perf_counter() - start

    def models(self) -> dict[str, nn.Module]:
        """Return all trained networks."""
        warm = self._warm.models() if self._warm is not None else {}
        return {**self.learner.models(), **warm}

    def describe(self, row: Mapping[str, float]) -> str:
        """Describe in one line how the policy does and where the time goes."""
        if row["warm_start"]:
            told = (
                f"warm start  reward {row['tracking_reward']:.2f}  "
                f"loses its clip every {row['seconds_between_losses']:.1f} s"
            )
        else:
            told = f"upright {row['upright']:.0%}"
            for key, name in (("actor/imitation", "Q imitation"), ("actor/value", "Q")):
                told += f"  {name} {row[key]:.1f}" if key in row else ""
        return (
            f"{told}  {row['samples_per_second']:,.0f} samples/s (physics "
            f"{row['time/physics']:.0%}, policy {row['time/policy']:.0%}, update "
            f"{row['time/update']:.0%})"
        )

    # --- saving ---

    def state(self) -> State:
        """Return (tensors, plain data) from which :meth:`restore` continues exactly."""
        tensors, plain = self._live_state()
        if self._files is None:
            raise RunError("The replay buffer has no folder yet: call attach first.")
        saved, described = self._files.save(self.replay)
        self._files.prune(self._files.folder.parent)
        tensors |= {f"replay.{k}": v for k, v in saved.items()}
        tensors["replay.generator"] = self.replay.generator.get_state()
        return tensors, {**plain, "replay": described}

    def _live_state(self) -> State:
        """Return everything but the replay buffer."""
        copies, learned = self.learner.state()
        tensors = {f"env.{k}": v for k, v in self.env.state_dict().items()}
        rollout, step = self._latents.state()
        tensors |= {f"latents.{k}": v for k, v in rollout.items()}
        tensors["priorities"] = self._experts.priorities
        tensors |= random_state(self._device)
        plain: dict[str, Any] = {
            "updates": self.updates,
            "seconds": self.seconds,
            "sweeps": self._sweeps,
            "latents_step": step,
            "clips_sha256": self._digest,
            "learner": learned,
            "param_groups": learned["param_groups"],
        }
        if self._warm is not None:
            warm, plain["warm_start"] = self._warm.state()
            tensors |= {f"warm_start.{k}": v for k, v in warm.items()}
        copies |= {k: v.detach().to("cpu", copy=True) for k, v in tensors.items()}
        return copies, plain

    def state_before(self) -> State:
        """Return the state from before the last update, to which a failed one was put back."""
        return self.state()

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue from a saved state."""
        if plain["clips_sha256"] != self._digest:
            raise RunError(
                "The clips of task.clips are not those that the run started with. Put those back, "
                "or start a new run."
            )
        if self._files is None:
            raise RunError("The replay buffer has no folder yet: call attach first.")
        self._restore_live(tensors, plain)
        self._files.load(self.replay, select(tensors, "replay."), plain["replay"])
        self.replay.generator.set_state(tensors["replay.generator"])

    def _restore_live(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        self.learner.restore(tensors, plain["learner"])
        self.env.load_state_dict(select(tensors, "env."))
        self._latents.restore(select(tensors, "latents."), plain["latents_step"])
        self._experts.priorities = tensors["priorities"].to(self._device)
        set_random_state(tensors, str(self._device))
        if self._warm is not None:
            self._warm.restore(select(tensors, "warm_start."), plain["warm_start"])
        self.updates, self.seconds = plain["updates"], plain["seconds"]
        self._sweeps = plain["sweeps"]


class _Before:
    """What an update changes, as it was: networks and robots, and the rows it will overwrite."""

    def __init__(self, trainer: TrackingTrainer) -> None:
        config, replay = trainer.config, trainer.replay
        self._state = trainer._live_state()
        self._added, self._draws = replay.added, replay.generator.get_state()
        coming = max(config.warm_start.steps, config.learner.sweeps)
        first = max(0, replay.added - replay.capacity)
        self._first = first
        self._rows = replay.rows(first, min(first + coming, replay.added))

    def put_back(self, trainer: TrackingTrainer) -> None:
        """Return the trainer to this state."""
        replay = trainer.replay
        replay.added = self._added
        replay.put(self._first, self._rows)
        replay.generator.set_state(self._draws)
        trainer._restore_live(*self._state)
