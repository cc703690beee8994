"""Learning to walk by PPO: alternating rollouts and updates, resumable bit for bit."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from prism_motor._devices import autocast, own_device, random_state, set_random_state
from prism_motor.locomotion.env import make_env
from prism_motor.locomotion.link import DeviceLink
from prism_motor.locomotion.ppo import make_ppo
from prism_motor.runs.checkpoints import select
from prism_motor.sim.engines import EngineChoice, resolve_engine
from prism_motor.train.distributed import ALONE, Rank
from prism_motor.train.finite import (
    NonFiniteTrainingError,
    StepWatch,
    check,
    check_numbers,
    check_observations,
    check_rewards,
    check_weights,
    explain,
)
from prism_motor.train.optimizers import pack_optimizer, unpack_optimizer

if TYPE_CHECKING:
    from tensordict import TensorDict

    from prism_motor.locomotion.config import LocomotionConfig
    from prism_motor.protocols import State


class WalkingTrainer:
    """PPO on the velocity task.

    All randomness comes from the environment's generator and torch's global one; both are part of
    :meth:`state`, so a run resumed from there repeats an uninterrupted one bit for bit. Networks
    and samples are on the run's device; physics and task are there with the gpu engine, else on the
    CPU. On a device nothing waits for it but the end of a control step: what is measured and what
    must be finite is read once per update.

    Args:
        config: The run.
        rank: This process in data-parallel training.

    Attributes:
        updates: Finished policy updates.
        device: Where networks and samples are.
    """

    def __init__(self, config: LocomotionConfig, rank: Rank = ALONE) -> None:
        self.config = config
        world_size = rank.world_size
        envs = config.share(world_size)
        self.world_size = world_size
        self.device = own_device(config.device, rank.local, world_size)
        if self.device.startswith("cuda"):
            torch.cuda.set_device(self.device)  # NCCL takes the current one
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)  # the same networks on every rank
        # Seeds of different runs and ranks must not coincide: 1000 ranks fit between two seeds.
        env_seed = 1000 * config.seed + rank.index
        engine = resolve_engine(config.engine, config.device)
        choice = EngineChoice(engine, self.device, config.contacts)
        self.env = make_env(config.task, envs, seed=env_seed, threads=config.threads, engine=choice)
        parallel = None
        if world_size > 1:
            parallel = {
                "global_rank": rank.index,
                "local_rank": rank.local,
                "world_size": world_size,
            }
        self.ppo = make_ppo(config, self.env, parallel, self.device)
        self._link = DeviceLink(self.device, self.env.device)
        self._here = self.env.device == "cpu"
        self.ppo.train_mode()
        torch.manual_seed(env_seed)  # different actions on every rank
        # Stagger the episodes, so that they do not all end together.
        self.env.episode_length_buf = torch.randint(
            self.env.max_episode_length,
            (envs,),
            generator=self.env.generator,
            device=self.env.device,
        )
        self.updates = 0
        self.seconds = 0.0
        self._before: State | None = None
        self._watch = StepWatch(self.models(), self.ppo.optimizer)
        self._place = ""

    def update(self) -> dict[str, float]:
        """Collect samples, learn from them, and return the metrics."""
        self._before = self.state()
        start = time.perf_counter()
        timer: dict[str, float] = defaultdict(float)
        self._schedule()
        try:
            with torch.inference_mode():
                sums = self._collect(timer)
            losses = self._learn(timer)
            wall = time.perf_counter() - start
            self.updates += 1
            self.seconds += wall
            row = self._metrics(sums, timer, losses, wall)
            self._place = ""
            check_numbers("metric", row)
        except NonFiniteTrainingError as error:
            self.updates = self._before[1]["updates"]
            raise NonFiniteTrainingError(explain(error, self.models(), self._place)) from error
        return row

    def _collect(self, timer: dict[str, float]) -> dict[str, float]:
        """Let the policy act, compute what its samples are worth, and return sums over them."""
        steps = self.config.ppo.steps
        self._place = ""
        observations = self.env.get_observations()
        if self._here:
            check_observations(observations.items())  # type: ignore[arg-type]
        sums: dict[str, Tensor] = {}
        seen, _ = self._link.send(observations)
        for step in range(1, steps + 1):
            self._place = f" in step {step} of {steps}"
            # As the learner computes: PPO compares the probabilities of both.
            with _Timer(timer, "policy"), autocast(self.device, self.config.precision):
                actions = self._link.fetch(self.ppo.act(seen))
            if not self._link.is_local:  # elsewhere the networks are not checked at every step
                check("the action", actions)
            with _Timer(timer, "environment"):
                observations, rewards, dones, extras = self.env.step(actions)
            if self._here:
                check_observations(observations.items())  # type: ignore[arg-type]
                check_rewards(rewards)
            seen, told = self._link.send(observations, rewards, dones, extras["time_outs"])
            paid, ended, late = told
            self.ppo.process_env_step(seen, paid, ended, {"time_outs": late})
            self._measure(sums, rewards)
        self.env.engine.check()
        if not self._here:
            self._check_samples(observations)
        self._place = " after the last step"
        with _Timer(timer, "policy"), autocast(self.device, self.config.precision):
            self.ppo.compute_returns(seen)
        check("the return", self.ppo.storage.returns)
        check("the advantage", self.ppo.storage.advantages)
        return dict(zip(sums, torch.stack(list(sums.values())).tolist(), strict=True))

    def _check_samples(self, last: TensorDict) -> None:
        """Check all that a device has shown and done in this update; waits once if all is well.

        Args:
            last: The observations after the last step.
        """
        samples = self.ppo.storage
        values = [*samples.observations.values(), samples.actions, samples.rewards, *last.values()]
        if bool(torch.stack([one.sum().isfinite() for one in values]).all()):  # type: ignore[union-attr]
            return
        for step in range(samples.num_transitions_per_env):
            self._place = f" in step {step + 1} of {samples.num_transitions_per_env}"
            check_observations(samples.observations[step].items())  # type: ignore[union-attr]
            check("the action", samples.actions[step])
            check_rewards(samples.rewards[step].flatten())
        check_observations(last.items())  # type: ignore[arg-type]

    def _learn(self, timer: dict[str, float]) -> dict[str, float]:
        """Fit the networks to the samples and return the losses."""
        ppo = self.config.ppo
        self._watch.steps = 0
        try:
            with _Timer(timer, "update"):
                losses = self.ppo.update()
        finally:
            self._place = f" in minibatch {self._watch.steps + 1} of {ppo.epochs * ppo.minibatches}"
        self._place = ""
        losses.pop("symmetry", None)  # not computed
        check_numbers("loss", losses)
        check_weights(self.models())  # the normalisers, which change last
        return losses

    def _schedule(self) -> None:
        """Set the learning rate of this update, unless rsl_rl adapts it."""
        ppo = self.config.ppo
        if ppo.schedule != "linear":
            return
        done = self.updates * self.config.samples_per_update / ppo.decay_samples
        rate = max(ppo.final_learning_rate, ppo.learning_rate * (1 - done))
        self.ppo.learning_rate = rate
        for group in self.ppo.optimizer.param_groups:
            group["lr"] = rate

    def _measure(self, sums: dict[str, Tensor], rewards: Tensor) -> None:
        """Add up a step in doubles, where it was computed."""
        measured = {f"step/{name}": values for name, values in self.env.measure().items()}
        found = {"reward": rewards, "falls": self.env.terminated, **measured}
        for name, values in found.items():
            total = values.sum().double()
            sums[name] = sums[name] + total if name in sums else total

    def _metrics(
        self, sums: dict[str, float], timer: dict[str, float], losses: dict[str, float], wall: float
    ) -> dict[str, float]:
        total = self.config.samples_per_update
        count = total // self.world_size  # what this process has seen
        robot_seconds = count * self.env.control_dt
        physics = self.env.engine.take_seconds()
        return {
            "update": self.updates,
            "samples": self.updates * total,
            "seconds": round(self.seconds, 3),
            "reward_per_second": sums["reward"] / robot_seconds,
            "seconds_between_falls": robot_seconds / max(1.0, sums["falls"]),
            **{
                k.removeprefix("step/"): v / count for k, v in sums.items() if k.startswith("step/")
            },
            "action_std": self.ppo.actor.output_std.mean().item(),
            "learning_rate": self.ppo.learning_rate,
            **{f"loss/{name}": value for name, value in losses.items()},
            "samples_per_second": total / wall,
            "time/physics": physics / wall,
            "time/task": (timer["environment"] - physics) / wall,
            "time/policy": timer["policy"] / wall,
            "time/update": timer["update"] / wall,
        }

    def state(self) -> State:
        """Return (tensors, plain data) from which :meth:`restore` resumes exactly."""
        tensors = {f"actor.{k}": v for k, v in self.ppo._raw_actor.state_dict().items()}
        tensors |= {f"critic.{k}": v for k, v in self.ppo._raw_critic.state_dict().items()}
        optimizer, groups = pack_optimizer(self.ppo.optimizer)
        tensors |= optimizer
        tensors |= {f"env.{k}": v for k, v in self.env.state_dict().items()}
        tensors |= random_state(self.device)
        tensors = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        plain = {
            "updates": self.updates,
            "seconds": self.seconds,
            "world_size": self.world_size,
            "learning_rate": self.ppo.learning_rate,
            "param_groups": groups,
        }
        return tensors, plain

    def state_before(self) -> State:
        """Return the state from before the last update."""
        return self._before or self.state()

    def models(self) -> dict[str, nn.Module]:
        """Return actor and critic, which must agree between processes."""
        return {"actor": self.ppo.actor, "critic": self.ppo.critic}

    def describe(self, row: Mapping[str, float]) -> str:
        """Describe in one line how the policy does and where the time goes."""
        errors = ""
        if "linear_error" in row:
            errors = f"errors {row['linear_error']:.2f} m/s {row['yaw_error']:.2f} rad/s  "
        return (
            f"falls every {row['seconds_between_falls']:.1f} s  "
            f"reward/s {row['reward_per_second']:.2f}  {errors}"
            f"{row['samples_per_second']:,.0f} samples/s (physics {row['time/physics']:.0%}, "
            f"policy {row['time/policy']:.0%}, update {row['time/update']:.0%})"
        )

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Resume from a saved state."""
        self.ppo._raw_actor.load_state_dict(select(tensors, "actor."))
        self.ppo._raw_critic.load_state_dict(select(tensors, "critic."))
        unpack_optimizer(self.ppo.optimizer, tensors, plain["param_groups"])
        self.env.load_state_dict(select(tensors, "env."))
        set_random_state(tensors, self.device)
        # Old checkpoints call updates "iteration".
        self.updates = int(plain["updates"] if "updates" in plain else plain["iteration"])
        self.seconds = plain["seconds"]
        self.ppo.learning_rate = plain["learning_rate"]


class _Timer:
    """Adds the time spent inside to an entry."""

    def __init__(self, entries: dict[str, float], name: str) -> None:
        self.entries, self.name = entries, name

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.entries[self.name] += time.perf_counter() - self.start
