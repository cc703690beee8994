"""The velocity task for many robots at once, in the form that rsl_rl trains on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._errors import InputError
from prism_motor._extras import missing_extra
from prism_motor.locomotion.commands import Commands
from prism_motor.locomotion.gait import Gait
from prism_motor.locomotion.observations import (
    History,
    actor_frame,
    critic_frame,
    dynamics_entries,
    noise_scale,
    shared_entries,
)
from prism_motor.locomotion.rewards import CONTACT_FORCE, Rewards, Step
from prism_motor.locomotion.state import read_state, rotation_matrix
from prism_motor.locomotion.task import Range, TaskConfig
from prism_motor.locomotion.terminations import has_fallen
from prism_motor.sim.engine import Dynamics, RolloutEngine
from prism_motor.sim.robots import make_robot

try:
    from tensordict import TensorDict
except ImportError as error:
    raise missing_extra("prism_motor.locomotion", "locomotion", error) from error


_BUFFERS = ("episode_length_buf", "last_dq", "last_world_velocity", "push", "reference")
"""Tensors that are saved by name."""


class VelocityEnv:
    """A batch of robots that follow velocity commands; implements rsl_rl's ``VecEnv``.

    Args:
        config: The task.
        num_envs: How many robots.
        seed: Seed of everything random: dynamics, commands, noise, resets, pushes.
        threads: Simulation threads.

    Attributes:
        episode_length_buf: Control steps since each episode began; also the gait clock.
        last_step: What the last rewards were computed from, before any reset.
        terminated: Environments that fell in the last step.
        timed_out: Environments that reached the end of the episode in the last step.
    """

    device = "cpu"

    def __init__(
        self, config: TaskConfig, num_envs: int, *, seed: int = 0, threads: int = 1
    ) -> None:
        self.cfg = config
        self.num_envs = num_envs
        self.robot = make_robot(config.robot)
        self.num_actions = len(self.robot.joints)
        self.max_episode_length = config.episode_steps
        self.control_dt = config.simulation.control_dt
        self.generator = torch.Generator().manual_seed(seed)
        self.default_pose = torch.from_numpy(self.robot.default_pose).float()
        feet = len(self.robot.feet)

        random = config.randomisation
        self.engine = RolloutEngine(
            self.robot,
            num_envs,
            timestep=config.simulation.timestep,
            substeps=config.simulation.substeps,
            threads=threads,
        )
        self.set_dynamics(
            Dynamics(
                friction=self._uniform(random.friction, num_envs).double().numpy(),
                base_mass=self._uniform(random.base_mass, num_envs).double().numpy(),
                mass_scale=random.mass_scale,
            )
        )

        self.gait = Gait(config.gait, self.default_pose, self.control_dt)
        self.commands = Commands(config.commands, num_envs, self.generator)
        self.rewards = Rewards(config.rewards, num_envs, feet)
        self.noise = noise_scale(config.observations, self.num_actions)
        actor_size, critic_size = 11 + 3 * self.num_actions, 21 + 4 * self.num_actions + 2 * feet
        view = config.observations
        self.actor_history = History(num_envs, view.actor_frames, actor_size, view.clip)
        self.critic_history = History(num_envs, view.critic_frames, critic_size, view.clip)

        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.total_steps = 0
        self.actions = [torch.zeros(num_envs, self.num_actions) for _ in range(3)]
        self.last_dq = torch.zeros(num_envs, self.num_actions)
        self.last_world_velocity = torch.zeros(num_envs, 6)
        self.push = torch.zeros(num_envs, 5)
        self.reference = torch.zeros(num_envs, self.num_actions)
        self.terminated = torch.zeros(num_envs, dtype=torch.bool)
        self.timed_out = torch.zeros(num_envs, dtype=torch.bool)
        self.last_step: Step | None = None
        self.reset()

    def set_dynamics(self, dynamics: Dynamics) -> None:
        """Give every robot its friction and masses, which the critic sees; keeps the state."""
        self.engine.set_dynamics(dynamics)
        base = self.engine.model.body(self.robot.base).id
        nominal_mass = float(self.engine.model.body_mass[base])
        self.friction = torch.from_numpy(self.engine.friction.copy()).float()
        self.base_mass = torch.from_numpy(self.engine.base_mass + nominal_mass).float()
        self._dynamics = dynamics_entries(self.cfg.observations, self.friction, self.base_mass)

    def reset(self) -> TensorDict:
        """Begin a new episode everywhere and return its first observations."""
        self._reset(torch.arange(self.num_envs))
        self._observe()
        return self.get_observations()

    def get_observations(self) -> TensorDict:
        """Return what actor (``policy``) and critic see now."""
        observations = {
            "policy": self.actor_history.flat(),
            "critic": self.critic_history.flat(),
        }
        return TensorDict(observations, batch_size=[self.num_envs])

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """Advance all robots by one control step; the order of parts is Humanoid-Gym's."""
        self._act(actions)
        self.episode_length_buf += 1
        self.total_steps += 1
        self.state = read_state(self.engine)
        self._command_and_push()
        self._terminate()
        rewards = self._reward()
        extras: dict[str, Any] = {"time_outs": self.timed_out.float(), "log": {}}
        done = self.terminated | self.timed_out
        finished = done.nonzero().squeeze(-1)
        if len(finished):
            extras["log"] = self._reset(finished)
        self._observe()
        return self.get_observations(), rewards, done.long(), extras

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that later steps depend on, so that a run can go on exactly."""
        tensors = {f"engine.{k}": torch.from_numpy(v) for k, v in self.engine.state_dict().items()}
        tensors |= {f"{name}": getattr(self, name) for name in _BUFFERS}
        for i, action in enumerate(self.actions):
            tensors[f"actions.{i}"] = action
        tensors["commands.values"] = self.commands.values
        tensors["commands.heading"] = self.commands.heading
        tensors["actor_history"] = self.actor_history.values
        tensors["critic_history"] = self.critic_history.values
        tensors["rewards.sums"] = self.rewards.sums
        for name, term in self.rewards.terms.items():
            tensors |= {f"rewards.{name}.{k}": v for k, v in term.state_dict().items()}
        tensors["total_steps"] = torch.tensor(self.total_steps)
        tensors["generator"] = self.generator.get_state()
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Go on from a saved state; the environment must have been built alike, seed included."""
        expected = {name: list(tensor.shape) for name, tensor in self.state_dict().items()}
        given = {name: list(tensor.shape) for name, tensor in tensors.items()}
        if given != expected:
            wrong = sorted(k for k in expected.keys() | given if expected.get(k) != given.get(k))
            raise InputError(
                f"The saved environment does not fit this one; they differ in {', '.join(wrong)}. "
                "Use the same task and the same number of environments."
            )
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        engine = {k: tensors[f"engine.{k}"].numpy() for k in self.engine.state_dict()}
        self.engine.load_state_dict(engine)
        for name in _BUFFERS:
            setattr(self, name, tensors[name])
        self.actions = [tensors[f"actions.{i}"] for i in range(3)]
        self.commands.values = tensors["commands.values"]
        self.commands.heading = tensors["commands.heading"]
        self.actor_history.values = tensors["actor_history"]
        self.critic_history.values = tensors["critic_history"]
        self.rewards.sums = tensors["rewards.sums"]
        for name, term in self.rewards.terms.items():
            prefix = f"rewards.{name}."
            term.load_state_dict({k: tensors[prefix + k] for k in term.state_dict()})
        self.total_steps = int(tensors["total_steps"])
        self.generator.set_state(tensors["generator"])
        self.state = read_state(self.engine)

    def _act(self, raw: Tensor) -> None:
        """Clip, delay and disturb the action, then hold the joint targets for one control step."""
        action, random = self.cfg.actions, self.cfg.randomisation
        applied = raw.clamp(-action.clip, action.clip)
        if random.action_delay:
            # One draw per robot mixes in the action applied before: a random low-pass.
            share = random.action_delay * torch.rand(self.num_envs, 1, generator=self.generator)
            applied = applied.lerp(self.actions[1], share)
        if random.action_noise:
            noise = self._normal(applied)
            applied = applied.addcmul(noise, applied, value=random.action_noise)
        applied = applied.clamp(-action.clip, action.clip)
        self.actions[0] = applied
        start = self.reference if action.on_reference else self.default_pose
        self.engine.step(start.add(applied, alpha=action.scale).numpy())

    def _command_and_push(self) -> None:
        resample = round(self.cfg.commands.resample_after / self.control_dt)
        due = (self.episode_length_buf % resample == 0).nonzero().squeeze(-1)
        if len(due):
            self.commands.resample(due)
        self.commands.follow_heading(self.state.euler[:, 2])
        random = self.cfg.randomisation
        if random.push_every and self.total_steps % round(random.push_every / self.control_dt) == 0:
            self._push()

    def _push(self) -> None:
        random = self.cfg.randomisation
        limits = torch.tensor([random.push_velocity] * 2 + [random.push_angular_velocity] * 3)
        unit = 2 * torch.rand(self.num_envs, 5, generator=self.generator) - 1
        self.push = limits * unit
        everyone = np.arange(self.num_envs)
        push = self.push.double().numpy()
        to_world = rotation_matrix(self.engine.qpos[:, 3:7])
        in_body = np.einsum("nji,nj->ni", to_world, push[:, 2:])
        self.engine.push(everyone, push[:, :2], in_body)
        # Rewards see the velocity from before the push, except base_acc, as in Humanoid-Gym.
        planar, angular = self.push[:, :2], self.push[:, 2:]
        pushed = torch.cat([planar, self.state.world_velocity[:, 2:3], angular], dim=-1)
        self.state = replace(self.state, world_velocity=pushed)

    def _terminate(self) -> None:
        self.terminated = has_fallen(self.state, self.cfg.terminations)
        self.timed_out = self.episode_length_buf > self.max_episode_length

    def _reward(self) -> Tensor:
        self.last_step = Step(
            config=self.cfg.rewards,
            state=self.state,
            command=self.commands.values.clone(),
            stance=self.gait.stance(self.episode_length_buf),
            contact=self._contact(),
            reference=self.reference,
            default_pose=self.default_pose,
            actions=(self.actions[0], self.actions[1], self.actions[2]),
            last_dq=self.last_dq,
            last_world_velocity=self.last_world_velocity,
            control_dt=self.control_dt,
        )
        return self.rewards(self.last_step)

    def _reset(self, envs: Tensor) -> dict[str, float]:
        """Begin new episodes in some environments; return what to log about the finished ones."""
        sums = self.rewards.reset(envs, self._place(envs))
        duration = max(self.cfg.terminations.duration, self.control_dt)  # a step at least
        log = {f"reward/{name}": value / duration for name, value in sums.items()}
        lengths = self.episode_length_buf[envs]
        log["episode_seconds"] = lengths.sum().item() / len(envs) * self.control_dt
        self.episode_length_buf.index_fill_(0, envs, 0)
        self.commands.resample(envs)
        self.actor_history.reset(envs)
        self.critic_history.reset(envs)
        self.actions = [action.index_fill(0, envs, 0.0) for action in self.actions]
        self.state = read_state(self.engine)
        self.commands.follow_heading(self.state.euler[:, 2])
        return log

    def _place(self, envs: Tensor) -> Tensor:
        """Put robots on their feet; return the height of their soles, (envs, F)."""
        count, numbers = len(envs), envs.numpy()
        qpos = np.zeros((count, 7 + self.num_actions))
        qpos[:, 2] = self.cfg.start_height
        qpos[:, 3] = 1.0
        spread = self.cfg.start_joint_noise
        noise = spread * (2 * torch.rand(count, self.num_actions, generator=self.generator) - 1)
        qpos[:, 7:] = (self.default_pose + noise).numpy()
        self.engine.set_state(numbers, qpos, np.zeros((count, 6 + self.num_actions)))
        positions = self.engine.sensors(tuple(f"{foot}_position" for foot in self.robot.feet))
        return torch.from_numpy(positions[numbers, :, 2]).float() - self.cfg.rewards.foot_offset

    def _observe(self) -> None:
        """Append what is seen now to the histories, and remember it for the next step."""
        state, view = self.state, self.cfg.observations
        beat = self.gait.at(self.episode_length_buf)
        shared = shared_entries(
            view, beat.clock, self.commands.values, state, self.default_pose, self.actions[0]
        )
        frame = actor_frame(shared, state)
        if view.noise:
            frame = frame.addcmul(self.noise, self._normal(frame))
        self.actor_history.push(frame)
        self.critic_history.push(
            critic_frame(
                view,
                shared,
                state,
                reference=beat.reference,
                push=self.push,
                dynamics=self._dynamics,
                stance=beat.stance,
                contact=self._contact(),
            )
        )
        self.reference = beat.reference
        self.last_dq = state.dq
        self.last_world_velocity = state.world_velocity
        self.actions = [self.actions[0], *self.actions[:2]]

    def _contact(self) -> Tensor:
        return self.state.foot_force[..., 2] > CONTACT_FORCE

    def _uniform(self, bounds: Range, count: int) -> Tensor:
        low, high = bounds
        return low + (high - low) * torch.rand(count, generator=self.generator)

    def _normal(self, like: Tensor) -> Tensor:
        return torch.randn(like.shape, generator=self.generator)
