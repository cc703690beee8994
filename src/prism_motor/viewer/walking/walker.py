"""One robot under one policy that keeps walking: it is commanded, pushed, loaded and picked up."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from prism_motor.locomotion.commands import HeldCommands
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.evaluation import ActionFunction, check_actions
from prism_motor.locomotion.state import has_fallen
from prism_motor.locomotion.task import TaskConfig, TerminationConfig
from prism_motor.sim.dynamics import Dynamics
from prism_motor.viewer.pushes import Push, added_velocity
from prism_motor.viewer.robots import between_poses
from prism_motor.viewer.shapes import BLUE

REMEMBERED = 10.0
"""Length of the trace of commands and velocities, s."""
LYING = 1.5
"""How long a fallen robot is left lying, s."""
# The walker decides what happens after a fall, and its episode never ends.
_ENDLESS = TerminationConfig(duration=1e9, base_force=1e9, roll=None, pitch=None, height=None)


class Walker:
    """A robot in its own environment, without noise, randomisation or rewards.

    Args:
        name: Name of the policy.
        policy: Observations (1, observations) to actions (1, joints).
        task: The task that it was trained on.
        colour: Colour of the policy wherever it is shown, as #rrggbb.
        seed: Seed of initial states and of the task's own commands.

    Attributes:
        time: Clock of the walker, s.
        origin: Where the environment's origin lies on the ground, (2,) m.
        falls: How often it has fallen.
        diverged: How often its physics diverged, after which it starts again.
        lying: Seconds since it fell; ``None`` while it walks.
        pushed: The last push.
        trace: Rows of time, command (3) and velocity (3), the newest last; velocities are means
            over a gait cycle.
    """

    def __init__(
        self,
        name: str,
        policy: ActionFunction,
        task: TaskConfig,
        *,
        colour: str = BLUE,
        seed: int = 1,
    ) -> None:
        self.name, self.policy, self.task, self.colour, self.seed = name, policy, task, colour, seed
        calm = find_condition("nominal").apply(task)
        # Nothing is trained here: without rewards, their terms need not be registered.
        rewards = replace(calm.rewards, weights={}, parameters={})
        self.env = VelocityEnv(
            replace(calm, terminations=_ENDLESS, rewards=rewards), num_envs=1, seed=seed
        )
        self.commands = HeldCommands(self.env.commands)
        self.env.commands = self.commands
        self.control_dt = self.env.control_dt
        self.friction = round(float(self.env.friction[0]), 4)
        self.mass = float(self.env.engine.model.body_mass.sum())
        self.time = 0.0
        self.falls = self.diverged = 0
        self.trace: deque[np.ndarray] = deque(maxlen=round(REMEMBERED / self.control_dt))
        # The base sways with every step; commands refer to the mean over a gait cycle.
        self._recent: deque[np.ndarray] = deque(maxlen=round(task.gait.cycle / self.control_dt))
        self.restart(seed)

    @torch.inference_mode()
    def restart(self, seed: int) -> None:
        """Restart at the origin; equal tasks start the same with equal seeds."""
        self.env.generator.manual_seed(seed)
        self.origin = np.zeros(2)
        self.pushed: Push | None = None
        self.trace.clear()
        self._begin()

    def _begin(self) -> None:
        self.env.reset()
        self._before = self.qpos
        self.lying: float | None = None
        self._recent.clear()

    @torch.inference_mode()
    def take_over(self, other: Walker) -> None:
        """Continue from another walker's state, or restart if its task differs."""
        if self.env.cfg == other.env.cfg:
            self.env.load_state_dict(other.env.state_dict())
            self.lying, self.pushed = other.lying, None
            self._recent, self.trace = other._recent.copy(), other.trace.copy()
        else:
            self.restart(self.seed)
        self.time, self.origin = other.time, other.origin.copy()
        self._before = self.qpos

    @torch.inference_mode()
    def step(self) -> None:
        """Advance by one control step; a fallen robot stands up again after a while."""
        if self.lying is not None and self.lying >= LYING:
            self._stand_up()
        self._before = self.qpos
        actions = self.policy(self.observation)
        check_actions(actions, self.env)
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is put right below
            self.env.step(actions)
        self.time += self.control_dt
        if self.env.engine.diverged()[0]:
            self._recover()
        self._judge()
        self._recent.append(self._measure())
        self.trace.append(np.concatenate([[self.time], self.command, self.velocity]))

    def _judge(self) -> None:
        """Detect falls and the outcome of a push."""
        if self.lying is not None:
            self.lying += self.control_dt
        elif bool(has_fallen(self.env.state, self.task.terminations)[0]):
            self.lying = 0.0
            self.falls += 1
        if self.pushed is not None:
            self.pushed.judge(self.time, self.lying is not None)

    def _recover(self) -> None:
        """Start again where the robot was before its physics diverged."""
        self.diverged += 1
        place = self._before[:2]
        self._begin()
        self.origin = place.copy()
        self._before = self.qpos

    def _stand_up(self) -> None:
        """Restart where the robot is; only the image is offset, the environment starts at 0."""
        self.origin = self.origin + self.env.engine.qpos[0, :2]
        self._begin()

    @property
    def observation(self) -> Tensor:
        """What the policy sees now, (1, observations)."""
        return self.env.get_observations()["policy"]

    @property
    def qpos(self) -> np.ndarray:
        """Position of the base on the ground of all walkers, its quaternion, joint angles."""
        qpos = self.env.engine.qpos[0].copy()
        qpos[:2] += self.origin
        return qpos

    def pose(self, time: float) -> np.ndarray:
        """Return ``qpos`` at a time within the last control step."""
        share = min(1.0, max(0.0, 1 - (self.time - time) / self.control_dt))
        return between_poses(self._before, self.qpos, share)

    @property
    def command(self) -> np.ndarray:
        """Commanded forward and sideways velocity (m/s) and yaw rate (rad/s)."""
        return self.commands.values[0].double().numpy()

    @property
    def velocity(self) -> np.ndarray:
        """The actual ones, mean over a gait cycle."""
        return np.mean(self._recent, axis=0) if self._recent else np.zeros(3)

    def _measure(self) -> np.ndarray:
        state = self.env.state
        return torch.cat([state.velocity[0, :2], state.angular_velocity[0, 2:]]).double().numpy()

    @torch.inference_mode()
    def tell(self, command: Sequence[float] | None) -> None:
        """Set the command from now on; ``None`` lets the task draw its own."""
        released = command is None and self.commands.held is not None
        self.commands.hold(command)
        if released:
            self.commands.resample(torch.arange(1))

    def change(self, *, friction: float, payload: float) -> None:
        """Change sliding friction and the mass on the base (kg) while walking."""
        self.env.set_dynamics(Dynamics(friction=friction, base_mass=payload))

    def push(self, direction: str, speed: float) -> None:
        """Add a velocity (m/s) to the whole robot, in its own axes."""
        engine = self.env.engine
        added = added_velocity(direction, speed, float(self.env.state.euler[0, 2]))
        engine.push(np.arange(1), engine.qvel[:, :2] + added, engine.qvel[:, 3:6])
        self.pushed = Push(direction, speed, self.time)
