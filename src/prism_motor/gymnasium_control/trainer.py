"""Stable-Baselines3, one update at a time, resumable bit for bit."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor._devices import random_state, set_random_state
from prism_motor.gymnasium_control.config import SACSettings
from prism_motor.gymnasium_control.learners import (
    NumberedReplayBuffer,
    acting_parts,
    make_envs,
    make_model,
    optimizers,
)
from prism_motor.gymnasium_control.policy import make_policy
from prism_motor.runs.checkpoints import select
from prism_motor.runs.layout import REPLAY, RunError
from prism_motor.train.finite import (
    NonFiniteTrainingError,
    StepWatch,
    check_numbers,
    explain,
)
from prism_motor.train.optimizers import pack_optimizer, unpack_optimizer
from prism_motor.train.replay_files import ReplayFiles

try:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import Logger
except ImportError as error:
    from prism_motor._extras import missing_extra
    from prism_motor.gymnasium_control.environments import EXTRA

    raise missing_extra("prism_motor.gymnasium_control", EXTRA, error) from error

if TYPE_CHECKING:
    from prism_motor.gymnasium_control.config import ControlConfig
    from prism_motor.protocols import State

_LOGGED = "train/"
"""Prefix of what Stable-Baselines3 logs about its updates."""
_KNOWN = ("train/n_updates", "train/learning_rate", "train/clip_range")
"""What follows from the settings."""


class ControlTrainer:
    """PPO or SAC of Stable-Baselines3 on one of Gymnasium's MuJoCo environments.

    Its own ``collect_rollouts`` and ``train`` do the work, in the order of its ``learn``. What its
    ``save`` leaves out is part of :meth:`state`: the physics of every environment, all random
    numbers, running statistics and the replay buffer, whose rows are written once.

    Args:
        config: The run, prepared.

    Attributes:
        model: Stable-Baselines3's algorithm.
        envs: The environments.
        updates: Finished updates.
        seconds: Time they took.
    """

    def __init__(self, config: ControlConfig) -> None:
        self.config = config
        torch.set_num_threads(config.threads)
        # Before the model, which sets the seeds: what acts draws no numbers of its own.
        self._policy = make_policy(config)
        self.envs = make_envs(config)
        self.model = make_model(config, self.envs)
        self._monitors = list(self.model.env.unwrapped.envs)
        self.model.set_logger(Logger(None, []))
        # Seeds of different runs must not coincide with those of evaluations.
        self.model.env.seed(1000 * config.seed)
        self._episodes = _EndedEpisodes()
        self.model._setup_learn(config.updates * config.samples_per_update, self._episodes)
        self._policy.low.copy_(torch.from_numpy(self.model.action_space.low))
        self._policy.high.copy_(torch.from_numpy(self.model.action_space.high))
        self._files: ReplayFiles | None = None
        watched = {"policy": self.model.policy}
        if self.replay is not None:
            watched = {"actor": self.model.actor, "critic": self.model.critic}
        for name, network in watched.items():
            StepWatch({name: network}, optimizers(self.model)[name])
        self.updates, self.seconds = 0, 0.0
        self._before: _Before | None = None

    @property
    def replay(self) -> NumberedReplayBuffer | None:
        """The replay buffer of SAC."""
        return getattr(self.model, "replay_buffer", None)

    def attach(self, folder: Path) -> None:
        """Take note of the run's folder: a replay buffer is kept in files of its own there."""
        if isinstance(self.config.learner, SACSettings):
            self._files = ReplayFiles(folder / REPLAY, self.config.learner.segment_rows)

    # --- training ---

    def update(self) -> dict[str, float]:
        """Collect samples, learn from them, and return the metrics."""
        self._before = _Before(self)
        start = time.perf_counter()
        simulated = sum(env.seconds for env in self.envs)
        self._episodes.ended.clear()
        try:
            losses, learning = self._learn()
            self.updates += 1
            wall = time.perf_counter() - start
            self.seconds += wall
            row = self._metrics(losses, wall)
            row["time/environment"] = (sum(env.seconds for env in self.envs) - simulated) / wall
            row["time/update"] = learning / wall
            check_numbers("metric", row)
        except NonFiniteTrainingError as error:
            text = explain(error, self.models())
            self._before.put_back(self)
            raise NonFiniteTrainingError(text) from error
        return row

    def _learn(self) -> tuple[dict[str, float], float]:
        """Collect and learn as ``learn`` of Stable-Baselines3 does; return losses and seconds."""
        learn = self._learn_off_policy if self.replay is not None else self._learn_on_policy
        try:
            return learn()
        except ValueError as error:
            # Distributions of torch refuse a mean or a deviation that is not finite.
            if "to satisfy the constraint" not in str(error):
                raise
            raise NonFiniteTrainingError("the distribution of actions is not finite") from error

    def _learn_on_policy(self) -> tuple[dict[str, float], float]:
        model = self.model
        steps = self.config.learner.steps
        model.collect_rollouts(model.env, self._episodes, model.rollout_buffer, steps)
        start = time.perf_counter()
        model.train()
        return self._take_log(), time.perf_counter() - start

    def _learn_off_policy(self) -> tuple[dict[str, float], float]:
        model, learning = self.model, 0.0
        sums: dict[str, float] = defaultdict(float)
        count = 0
        for _ in range(self.config.learner.steps):
            model.collect_rollouts(
                model.env,
                self._episodes,
                model.train_freq,
                model.replay_buffer,
                learning_starts=model.learning_starts,
            )
            if model.num_timesteps <= model.learning_starts:
                continue
            start = time.perf_counter()
            model.train(gradient_steps=model.gradient_steps, batch_size=model.batch_size)
            for name, value in self._take_log().items():
                sums[name] += value
            count += 1
            learning += time.perf_counter() - start
        return {name: value / count for name, value in sums.items()}, learning

    def _take_log(self) -> dict[str, float]:
        """Return what Stable-Baselines3 has logged, by its names, and forget it."""
        values = self.model.logger.name_to_value
        found = {
            name: float(value)
            for name, value in values.items()
            if name.startswith(_LOGGED) and name not in _KNOWN
        }
        values.clear()
        # It is undefined where all returns are the same.
        if math.isnan(found.get("train/explained_variance", 0.0)):
            del found["train/explained_variance"]
        return found

    def _metrics(self, losses: dict[str, float], wall: float) -> dict[str, float]:
        ended, recent = self._episodes.ended, self.model.ep_info_buffer
        row: dict[str, float] = {
            "update": self.updates,
            "samples": self.model.num_timesteps,
            "seconds": round(self.seconds, 3),
            "episodes": len(ended),
        }
        if ended:
            row["episode_return"] = float(np.mean([one["r"] for one in ended]))
            row["episode_length"] = float(np.mean([one["l"] for one in ended]))
        if recent:
            row["rollout/ep_rew_mean"] = float(np.mean([one["r"] for one in recent]))
        return {
            **row,
            **losses,
            "learning_rate": self.config.learner.rate,
            "samples_per_second": self.config.samples_per_update / wall,
        }

    def models(self) -> dict[str, nn.Module]:
        """Return actor and critics."""
        return {"policy": self.model.policy}

    def describe(self, row: Mapping[str, float]) -> str:
        """Describe in one line how the policy does and where the time goes."""
        told = "no episode has ended"
        if "rollout/ep_rew_mean" in row:
            told = f"return {row['rollout/ep_rew_mean']:.0f} (last 100 episodes)"
        return (
            f"{told}  {row['samples_per_second']:,.0f} samples/s (environment "
            f"{row['time/environment']:.0%}, update {row['time/update']:.0%})"
        )

    # --- saving ---

    def state(self) -> State:
        """Return (tensors, plain data) from which :meth:`restore` continues exactly."""
        tensors, plain = self.live_state()
        if self.replay is None:
            return tensors, plain
        if self._files is None:
            raise RunError("The replay buffer has no folder yet: call attach first.")
        saved, described = self._files.save(self.replay)
        self._files.prune(self._files.folder.parent)
        return tensors | {f"replay.{k}": v for k, v in saved.items()}, {
            **plain,
            "replay": described,
        }

    def live_state(self) -> State:
        """Return everything but the replay buffer."""
        model = self.model
        tensors = {f"policy.{k}": v for k, v in self._acting_weights().items()}
        tensors |= {f"model.{k}": v for k, v in model.policy.state_dict().items()}
        groups = {}
        for name, optimizer in optimizers(model).items():
            moments, groups[name] = pack_optimizer(optimizer, f"optimizer.{name}.")
            tensors |= moments
        if getattr(model, "log_ent_coef", None) is not None:
            tensors["log_ent_coef"] = model.log_ent_coef
        envs = []
        for env, monitor in zip(self.envs, self._monitors, strict=True):
            physics, rest = env.state()
            tensors |= {f"env.{env.number}.{k}": v for k, v in physics.items()}
            envs.append({**rest, "rewards": list(monitor.rewards)})
        tensors["last_observation"] = torch.from_numpy(model._last_obs)
        tensors["last_starts"] = torch.from_numpy(model._last_episode_starts)
        tensors |= {f"normaliser.{k}": torch.from_numpy(v) for k, v in self._statistics().items()}
        drawn: Any = np.random.get_state()  # what Stable-Baselines3 draws from
        name, keys, *rest = drawn
        tensors["numpy_rng"] = torch.from_numpy(keys.astype(np.int64))
        tensors |= random_state(model.device)
        plain: dict[str, Any] = {
            "updates": self.updates,
            "seconds": self.seconds,
            "samples": model.num_timesteps,
            "gradient_updates": model._n_updates,
            "episodes": model._episode_num,
            "recent": [[one["r"], one["l"]] for one in model.ep_info_buffer],
            "envs": envs,
            "numpy_rng": [name, *rest],
            "action_rng": model.action_space.np_random.bit_generator.state,
            "param_groups": groups,
        }
        return {k: v.detach().to("cpu", copy=True) for k, v in tensors.items()}, plain

    def _acting_weights(self) -> dict[str, Tensor]:
        """Return the tensors of what acts, by the names of :class:`ControlPolicy`."""
        policy = self._policy
        values = [v for part in acting_parts(self.model) for v in part.state_dict().values()]
        names = [f"actor.{name}" for name in policy.actor.state_dict()]
        found = policy.state_dict() | dict(zip(names, values, strict=True))
        statistics = self._statistics()
        if statistics:
            found["mean"] = torch.from_numpy(statistics["observation_mean"])
            found["variance"] = torch.from_numpy(statistics["observation_variance"])
        return found

    def _statistics(self) -> dict[str, np.ndarray]:
        """Return the running statistics of observations and rewards, if there are any."""
        normaliser = self.model.get_vec_normalize_env()
        if normaliser is None:
            return {}
        found = {"returns": normaliser.returns}
        for name, one in (("observation", normaliser.obs_rms), ("return", normaliser.ret_rms)):
            found[f"{name}_mean"], found[f"{name}_variance"] = one.mean, one.var
            found[f"{name}_count"] = np.asarray(one.count)
        return {name: np.array(value, dtype=np.float64) for name, value in found.items()}

    def state_before(self) -> State:
        """Return the state from before the last update, to which a failed one was put back."""
        return self.state()

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.restore_live(tensors, plain)
        if self.replay is not None:
            if self._files is None:
                raise RunError("The replay buffer has no folder yet: call attach first.")
            self._files.load(self.replay, select(tensors, "replay."), plain["replay"])

    def restore_live(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue with everything but the replay buffer."""
        model = self.model
        model.policy.load_state_dict(select(tensors, "model."))
        for name, optimizer in optimizers(model).items():
            groups = plain["param_groups"][name]
            unpack_optimizer(optimizer, tensors, groups, f"optimizer.{name}.")
        if "log_ent_coef" in tensors:
            with torch.no_grad():
                model.log_ent_coef.copy_(tensors["log_ent_coef"])
        for env, monitor, own in zip(self.envs, self._monitors, plain["envs"], strict=True):
            env.restore(select(tensors, f"env.{env.number}."), own)
            monitor.rewards, monitor.needs_reset = list(own["rewards"]), False
        model._last_obs = tensors["last_observation"].numpy().copy()
        model._last_episode_starts = tensors["last_starts"].numpy().copy()
        self._restore_statistics(select(tensors, "normaliser."))
        name, *rest = plain["numpy_rng"]
        keys = tensors["numpy_rng"].numpy().astype(np.uint32)
        np.random.set_state((name, keys, *rest))
        model.action_space.np_random.bit_generator.state = plain["action_rng"]
        set_random_state(tensors, model.device)
        model.num_timesteps = plain["samples"]
        model._n_updates, model._episode_num = plain["gradient_updates"], plain["episodes"]
        model.ep_info_buffer.clear()
        model.ep_info_buffer.extend(
            {"r": total, "l": steps, "t": 0.0} for total, steps in plain["recent"]
        )
        self.updates, self.seconds = plain["updates"], plain["seconds"]

    def _restore_statistics(self, saved: dict[str, Tensor]) -> None:
        normaliser = self.model.get_vec_normalize_env()
        if normaliser is None:
            return
        normaliser.returns = saved["returns"].numpy().copy()
        for name, one in (("observation", normaliser.obs_rms), ("return", normaliser.ret_rms)):
            one.mean = saved[f"{name}_mean"].numpy().copy()
            one.var = saved[f"{name}_variance"].numpy().copy()
            one.count = float(saved[f"{name}_count"])


class _EndedEpisodes(BaseCallback):
    """Takes note of the episodes that end.

    Attributes:
        ended: Return and length of each, as Stable-Baselines3's Monitor gives them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[dict[str, float]] = []

    def _on_step(self) -> bool:
        self.ended += [info["episode"] for info in self.locals["infos"] if "episode" in info]
        return True


class _Before:
    """What an update changes, as it was: everything live, and the rows it will overwrite."""

    def __init__(self, trainer: ControlTrainer) -> None:
        self._state = trainer.live_state()
        replay = trainer.replay
        if replay is not None:
            self._added, self._first = replay.added, replay.oldest
            after = replay.added + trainer.config.learner.steps
            last = min(max(self._first, after - replay.capacity), replay.added)
            self._rows = replay.rows(self._first, last)

    def put_back(self, trainer: ControlTrainer) -> None:
        """Return the trainer to this state."""
        trainer.restore_live(*self._state)
        if trainer.replay is not None:
            trainer.replay.added = self._added
            trainer.replay.put(self._first, self._rows)
