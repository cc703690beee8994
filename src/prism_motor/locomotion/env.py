"""The velocity task: robots that follow commands in time with a gait clock."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.locomotion.commands import Commands
from prism_motor.locomotion.gait import Gait
from prism_motor.locomotion.legged import LeggedEnv
from prism_motor.locomotion.observations import FRAME
from prism_motor.locomotion.rewards import Step
from prism_motor.locomotion.task import LeggedTaskConfig, TaskConfig, find_env_type
from prism_motor.sim.engines import CPU_ENGINE, EngineChoice
from prism_motor.sim.robots import Robot, make_robot


class VelocityEnv(LeggedEnv):
    """A batch of robots that follow velocity commands.

    Attributes:
        commands: The robots' commands.
        gait: The clock, driven by ``episode_length_buf``.
        beat: Where all robots are in their gait now.
        reference: Reference joint angles that the last observation showed, (N, J).
    """

    config_type: ClassVar[type[LeggedTaskConfig]] = TaskConfig
    blocks = FRAME
    saved = ("reference", "commands.values", "commands.heading")
    offers = ("commands", "gait")
    cfg: TaskConfig
    last_step: Step | None

    @classmethod
    def check(cls, config: LeggedTaskConfig, robot: Robot) -> None:
        """Raise if the gait or joint numbers do not fit the robot."""
        super().check(config, robot)
        assert isinstance(config, TaskConfig)
        feet, joints = len(robot.feet), len(robot.joints)
        if len(config.gait.offsets) != feet:
            raise InputError(
                f"task.gait.offsets has {len(config.gait.offsets)} phases, but {robot.name} has "
                f"{feet} feet ({', '.join(robot.feet)}): give one phase per foot."
            )
        legs = config.rewards.abduction_joints
        gait = config.gait
        numbered = {
            "gait.swing": [joint for joint, *_ in gait.swing],
            "gait.stride": [joint for joint, *_ in gait.stride],
        }
        if "default_joint_pos" in config.rewards.weights:
            numbered["rewards.abduction_joints"] = [joint for leg in legs for joint in leg]
        for name, numbers in numbered.items():
            if max(numbers, default=0) >= joints:
                raise InputError(
                    f"task.{name} names joint {max(numbers)}; {robot.name} has joints 0 to "
                    f"{joints - 1}: {', '.join(robot.joint_names)}."
                )

    def prepare(self) -> None:
        """Make clock and commands."""
        self.gait = Gait(self.cfg.gait, self.default_pose, self.control_dt)
        self.commands = Commands(self.cfg.commands, self.num_envs, self.generator, self.device)
        self.reference = torch.zeros(self.num_envs, self.num_actions, device=self.device)
        self._resample_every = round(self.cfg.commands.resample_after / self.control_dt)

    def begin(self, envs: Tensor) -> None:
        """Draw new commands and start the clock."""
        self.commands.resample(envs)
        self.commands.follow_heading(self.state.euler[:, 2])
        self.beat = self.gait.at(self.episode_length_buf, self.commands.values)

    def advance(self) -> None:
        """Draw the commands that are due, and advance the clock."""
        self.commands.resample_where(self.episode_length_buf % self._resample_every == 0)
        self.commands.follow_heading(self.state.euler[:, 2])
        self.beat = self.gait.at(self.episode_length_buf, self.commands.values)

    def action_center(self) -> Tensor:
        """Return the reference motion that the policy saw, or the default pose."""
        return self.reference if self.cfg.actions.on_reference else self.default_pose

    def make_step(self) -> Step:
        """Add command, stance and reference motion."""
        return Step(
            **self.step_parts(),
            command=self.commands.values.clone(),
            stance=self.beat.stance,
            reference=self.reference,
        )

    def measure(self) -> dict[str, Tensor]:
        """Add the errors of planar velocity (m/s) and yaw rate (rad/s)."""
        step = self.last_step
        assert step is not None
        planar = step.command[:, :2] - step.state.velocity[:, :2]
        return {
            **super().measure(),
            "linear_error": planar.norm(dim=-1),
            "yaw_error": (step.command[:, 2] - step.state.angular_velocity[:, 2]).abs(),
        }

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Resume from a saved state, at its place in the gait."""
        super().load_state_dict(tensors)
        self.beat = self.gait.at(self.episode_length_buf, self.commands.values)

    def _observe(self) -> None:
        super()._observe()
        self.reference = self.beat.reference


def make_env(
    task: LeggedTaskConfig,
    num_envs: int,
    *,
    seed: int = 0,
    threads: int = 1,
    engine: EngineChoice = CPU_ENGINE,
) -> LeggedEnv:
    """Build the environment of a task of any kind."""
    return find_env_type(task.kind)(task, num_envs, seed=seed, threads=threads, engine=engine)


def check_task(task: LeggedTaskConfig) -> None:
    """Raise if a task does not fit its robot, without building an environment."""
    find_env_type(task.kind).check(task, make_robot(task.robot))
