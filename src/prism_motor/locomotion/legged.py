"""A batch of legged robots as an rsl_rl environment: the base of all tasks.

The environment steps, resets, randomises, pushes, rewards and keeps histories. A task defines what
is seen (``blocks``), what happens (``prepare``, ``begin``, ``advance``) and when an episode ends
(``has_fallen``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor._devices import make_generator
from prism_motor._extras import missing_extra
from prism_motor.locomotion.observations import LEGGED_FRAME, Block, Frame, History
from prism_motor.locomotion.rewards import CONTACT_FORCE, LeggedStep, Rewards, check_rewards
from prism_motor.locomotion.state import RobotState, has_fallen, make_reader
from prism_motor.locomotion.task import LeggedTaskConfig, Range
from prism_motor.sim.dynamics import Dynamics
from prism_motor.sim.engines import CPU_ENGINE, EngineChoice
from prism_motor.sim.robots import Robot, make_robot

try:
    from tensordict import TensorDict
except ImportError as error:
    raise missing_extra("prism_motor.locomotion", "locomotion", error) from error


class LeggedEnv:
    """A batch of legged robots with a task; implements rsl_rl's ``VecEnv``.

    Your own task is a subclass, registered with
    :func:`prism_motor.locomotion.task.register_task_kind`. It declares ``blocks`` and overrides
    ``prepare``, ``begin``, ``advance``, ``has_fallen``, ``make_step`` and ``measure`` as needed;
    everything random must come from ``generator``, and tensors that it makes belong on ``device``.

    Args:
        config: The task.
        num_envs: Number of robots.
        seed: Seed of everything random: dynamics, commands, noise, resets, pushes.
        threads: Simulation threads.
        engine: What steps the robots; the task computes where the engine's states are.

    Attributes:
        device: Where that is.
        state: Current physical quantities of all robots.
        actions: Applied actions: now, one step ago, two steps ago; each (N, J).
        contact: Which feet touch the ground, (N, F).
        episode_length_buf: Control steps since each episode began.
        last_step: What the last rewards were computed from, before any reset.
        terminated: Environments that fell in the last step.
        timed_out: Environments that reached the end of the episode in the last step.
    """

    config_type: ClassVar[type[LeggedTaskConfig]] = LeggedTaskConfig
    """Dataclass of the tasks."""
    blocks: ClassVar[tuple[Block, ...]] = LEGGED_FRAME
    """What actor and critic see."""
    saved: ClassVar[tuple[str, ...]] = ()
    """Further tensors that later steps depend on, by attribute; they are part of checkpoints."""
    offers: ClassVar[tuple[str, ...]] = ()
    """What the task offers to reward terms, of :data:`prism_motor.locomotion.rewards.NEEDS`."""

    def __init__(
        self,
        config: LeggedTaskConfig,
        num_envs: int,
        *,
        seed: int = 0,
        threads: int = 1,
        engine: EngineChoice = CPU_ENGINE,
    ) -> None:
        self.cfg = config
        self.num_envs = num_envs
        self.robot = make_robot(config.robot)
        self.check(config, self.robot)
        self.num_actions = len(self.robot.joints)
        self.max_episode_length = config.episode_steps
        self.control_dt = config.simulation.control_dt
        self.device = engine.task_device
        self.generator = make_generator(self.device).manual_seed(seed)
        self.default_pose = torch.from_numpy(self.robot.default_pose).float().to(self.device)

        # Physics, with friction and masses drawn once per environment.
        self.engine = engine.make(
            self.robot,
            num_envs,
            timestep=config.simulation.timestep,
            substeps=config.simulation.substeps,
            solver=config.simulation.solver,
            threads=threads,
        )
        self._reader = make_reader(self.engine)
        random = config.randomisation
        self._push_limits = torch.tensor(
            [random.push_velocity] * 2 + [random.push_angular_velocity] * 3, device=self.device
        )
        self.set_dynamics(
            Dynamics(
                friction=self._uniform(random.friction, num_envs).double().cpu().numpy(),
                base_mass=self._uniform(random.base_mass, num_envs).double().cpu().numpy(),
                mass_scale=random.mass_scale,
            )
        )

        # Rewards and observation histories.
        self.rewards = Rewards(
            config.rewards, self.robot, num_envs, self._offers(self.robot), self.device
        )
        view = config.observations
        self.frame = Frame(self.blocks, view, self.robot)
        self.noise = self.frame.noise().to(self.device)
        self.actor_history, self.critic_history = (
            History(num_envs, frames, size, view.clip, self.device)
            for frames, size in (
                (view.actor_frames, self.frame.actor_size),
                (view.critic_frames, self.frame.critic_size),
            )
        )

        # What later steps depend on, then the first episode.
        zeros = partial(torch.zeros, num_envs, device=self.device)
        joints = self.num_actions
        self.episode_length_buf = zeros(dtype=torch.long)
        self.total_steps = 0
        self.actions = [zeros(joints) for _ in range(3)]
        self.last_dq, self.last_world_velocity, self.push = zeros(joints), zeros(6), zeros(5)
        self.terminated, self.timed_out = zeros(dtype=torch.bool), zeros(dtype=torch.bool)
        self.last_step: Any = None
        self.prepare()
        self._reset(torch.arange(num_envs, device=self.device))
        self.frame.check(self)
        self._observe()

    # What your own task may override --------------------------------------------------------------

    @classmethod
    def check(cls, config: LeggedTaskConfig, robot: Robot) -> None:
        """Raise if a task does not fit its robot, before anything is built."""
        if config.actions.on_reference and "gait" not in cls.offers:
            raise InputError(
                "task.actions.on_reference adds actions to a gait's reference motion, but tasks "
                f"of kind {config.kind!r} have no gait. Set it to false."
            )
        Frame(cls.blocks, config.observations, robot)
        check_rewards(config.rewards, robot, cls._offers(robot))

    def prepare(self) -> None:
        """Set up what the task itself needs; called once, before the first episode."""

    def begin(self, envs: Tensor) -> None:
        """Start new episodes in some environments, whose robots have been placed."""

    def advance(self) -> None:
        """Update the task after a control step: ``state`` is new, rewards come next."""

    def has_fallen(self) -> Tensor:
        """Return which robots (N,) have failed, so that their episodes end."""
        return has_fallen(self.state, self.cfg.terminations)

    def action_center(self) -> Tensor:
        """Return the joint targets (rad) of a zero action."""
        return self.default_pose

    def make_step(self) -> LeggedStep:
        """Return what rewards are computed from."""
        return LeggedStep(**self.step_parts())

    def measure(self) -> dict[str, Tensor]:
        """Return values (N,) of the last step for the training log, from before any reset."""
        return {"double_support": self.last_step.contact.all(-1)}

    # What every task has --------------------------------------------------------------------------

    @classmethod
    def _offers(cls, robot: Robot) -> set[str]:
        """Return which needs of reward terms task and robot meet."""
        pairs = {"foot pairs": len(robot.feet), "knee pairs": len(robot.knees)}
        return {*cls.offers, *(name for name, n in pairs.items() if n and n % 2 == 0)}

    def set_dynamics(self, dynamics: Dynamics) -> None:
        """Set every robot's friction and masses, which the critic sees; keeps the state."""
        self.engine.set_dynamics(dynamics)
        base = self.engine.model.body(self.robot.base).id
        nominal_mass = float(self.engine.model.body_mass[base])
        self.friction, self.base_mass = (
            torch.from_numpy(values).float().to(self.device)
            for values in (self.engine.friction.copy(), self.engine.base_mass + nominal_mass)
        )
        scaled_mass = self.base_mass / self.cfg.observations.mass_scale
        self.dynamics_entries = torch.stack([self.friction, scaled_mass], dim=-1)

    def reset(self) -> TensorDict:
        """Start a new episode everywhere and return its first observations."""
        self._reset(torch.arange(self.num_envs, device=self.device))
        self._observe()
        return self.get_observations()

    def get_observations(self) -> TensorDict:
        """Return the current observations of actor (``policy``) and critic."""
        observations = {
            "policy": self.actor_history.flat(),
            "critic": self.critic_history.flat(),
        }
        return TensorDict(observations, batch_size=[self.num_envs], device=self.device)

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """Advance all robots by one control step, in Humanoid-Gym's order of operations."""
        self._act(actions)
        self.episode_length_buf += 1
        self.total_steps += 1
        self._read_state()
        self.advance()
        random = self.cfg.randomisation
        if random.push_every and self.total_steps % round(random.push_every / self.control_dt) == 0:
            self._push()
        self.terminated = self.has_fallen()
        self.timed_out = self.episode_length_buf > self.max_episode_length
        self.last_step = self.make_step()
        rewards = self.rewards(self.last_step)
        extras: dict[str, Any] = {"time_outs": self.timed_out.float(), "log": {}}
        done = self.terminated | self.timed_out
        finished = done.nonzero().squeeze(-1)  # the only wait for the device
        if len(finished):
            extras["log"] = self._reset(finished)
        self._observe()
        return self.get_observations(), rewards, done.long(), extras

    def _read_state(self) -> None:
        self.state: RobotState = self._reader.read()
        self.contact = self.state.foot_force[..., 2] > CONTACT_FORCE

    def _act(self, raw: Tensor) -> None:
        """Clip, delay and disturb the action, then hold the joint targets for one control step."""
        action, random = self.cfg.actions, self.cfg.randomisation
        applied = raw.clamp(-action.clip, action.clip)
        if random.action_delay:
            # One draw per robot blends in the previous action: a random low-pass filter.
            share = random.action_delay * self._rand(self.num_envs, 1)
            applied = applied.lerp(self.actions[1], share)
        if random.action_noise:
            noise = self._normal(applied)
            applied = applied.addcmul(noise, applied, value=random.action_noise)
        applied = applied.clamp(-action.clip, action.clip)
        self.actions[0] = applied
        self.engine.step(self.action_center().add(applied, alpha=action.scale))

    def _push(self) -> None:
        self.push = self._push_limits * (2 * self._rand(self.num_envs, 5) - 1)
        everyone = torch.arange(self.num_envs, device=self.device)
        planar, angular = self.push[:, :2], self.push[:, 2:]
        self.engine.push(everyone, planar, self._reader.to_body(angular))
        # Rewards see the velocity from before the push, except base_acc, as in Humanoid-Gym.
        pushed = torch.cat([planar, self.state.world_velocity[:, 2:3], angular], dim=-1)
        self.state = replace(self.state, world_velocity=pushed)

    def step_parts(self) -> dict[str, Any]:
        """Return the fields of :class:`LeggedStep`."""
        return {
            "config": self.cfg.rewards,
            "state": self.state,
            "contact": self.contact,
            "default_pose": self.default_pose,
            "actions": (self.actions[0], self.actions[1], self.actions[2]),
            "last_dq": self.last_dq,
            "last_world_velocity": self.last_world_velocity,
            "control_dt": self.control_dt,
        }

    def _reset(self, envs: Tensor) -> dict[str, Tensor]:
        """Start new episodes in some environments; return what to log about the finished ones."""
        sums = self.rewards.reset(envs, self._place(envs), self.cfg.terminations.duration)
        log = {f"reward/{name}": value for name, value in sums.items()}
        lengths = self.episode_length_buf[envs]
        log["episode_seconds"] = lengths.sum() / len(envs) * self.control_dt
        self.episode_length_buf.index_fill_(0, envs, 0)
        self.actor_history.reset(envs)
        self.critic_history.reset(envs)
        self.actions = [action.index_fill(0, envs, 0.0) for action in self.actions]
        self._read_state()
        self.begin(envs)
        return log

    def _place(self, envs: Tensor) -> Tensor:
        """Put robots on their feet; return the height of their soles, (envs, F)."""
        count, joints = len(envs), self.num_actions
        double = {"dtype": torch.double, "device": self.device}
        qpos = torch.zeros(count, 7 + joints, **double)
        qpos[:, 2] = self.cfg.start_height
        qpos[:, 3] = 1.0
        noise = self.cfg.start_joint_noise * (2 * self._rand(count, joints) - 1)
        qpos[:, 7:] = self.default_pose + noise
        self.engine.set_state(envs, qpos, torch.zeros(count, 6 + joints, **double))
        return self._reader.foot_heights()[envs] - self.cfg.rewards.foot_offset

    def _observe(self) -> None:
        """Append the current observation to the histories, and store it for the next step."""
        actor, critic = self.frame.read(self)
        if self.cfg.observations.noise:
            actor = actor.addcmul(self.noise, self._normal(actor))
        self.actor_history.push(actor)
        self.critic_history.push(critic)
        self.last_dq = self.state.dq
        self.last_world_velocity = self.state.world_velocity
        self.actions = [self.actions[0], *self.actions[:2]]

    def _uniform(self, bounds: Range, count: int) -> Tensor:
        low, high = bounds
        return low + (high - low) * self._rand(count)

    def _rand(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator, device=self.device)

    def _normal(self, like: Tensor) -> Tensor:
        return torch.randn(like.shape, generator=self.generator, device=self.device)

    # Checkpoints ----------------------------------------------------------------------------------

    _BUFFERS = ("episode_length_buf", "last_dq", "last_world_velocity", "push")

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that later steps depend on, so that a run can resume exactly."""
        tensors = {f"engine.{k}": torch.as_tensor(v) for k, v in self.engine.state_dict().items()}
        tensors |= {name: attrgetter(name)(self) for name in (*self._BUFFERS, *self.saved)}
        tensors |= {f"actions.{i}": action for i, action in enumerate(self.actions)}
        tensors["actor_history"] = self.actor_history.values
        tensors["critic_history"] = self.critic_history.values
        tensors |= {f"rewards.{k}": v for k, v in self.rewards.state_dict().items()}
        tensors["total_steps"] = torch.tensor(self.total_steps)
        tensors["generator"] = self.generator.get_state()
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Resume from a saved state; the environment must be built the same, seed included."""
        expected = {name: list(tensor.shape) for name, tensor in self.state_dict().items()}
        given = {name: list(tensor.shape) for name, tensor in tensors.items()}
        if given != expected:
            wrong = sorted(k for k in expected.keys() | given if expected.get(k) != given.get(k))
            raise InputError(
                f"The saved environment does not fit this one; they differ in {', '.join(wrong)}. "
                "Use the same task and the same number of environments."
            )
        self.generator.set_state(tensors["generator"].cpu())
        tensors = {name: tensor.to(self.device, copy=True) for name, tensor in tensors.items()}
        self.engine.load_state_dict({k: tensors[f"engine.{k}"] for k in self.engine.state_dict()})
        for name in (*self._BUFFERS, *self.saved):
            owner, _, attribute = name.rpartition(".")
            setattr(attrgetter(owner)(self) if owner else self, attribute, tensors[name])
        self.actions = [tensors[f"actions.{i}"] for i in range(3)]
        self.actor_history.values = tensors["actor_history"]
        self.critic_history.values = tensors["critic_history"]
        rewards = {k: v for k, v in tensors.items() if k.startswith("rewards.")}
        self.rewards.load_state_dict({k.removeprefix("rewards."): v for k, v in rewards.items()})
        self.total_steps = int(tensors["total_steps"])
        self._read_state()
