"""Videos of one robot under a policy, with its command and what it does."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, Seed, above, between
from prism_motor.locomotion.commands import HeldCommands
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv, make_env
from prism_motor.locomotion.evaluation import ActionFunction, check_actions
from prism_motor.locomotion.overlay import WalkingOverlay
from prism_motor.sim.meshes import picture_model
from prism_motor.sim.rendering import Renderer

if TYPE_CHECKING:
    from prism_motor.locomotion.task import LeggedTaskConfig

_FRAME_RATE = 30.0
"""Approximate frames per second: one is drawn every few control steps."""
_SMOOTHED = 0.5
"""Time over which the velocity of a robot without a gait is averaged, s."""


@dataclass(frozen=True)
class VideoConfig(Checked, section="video"):
    """What to record."""

    seconds: Annotated[float, above(0, 600)] = 10.0
    """Length, s."""
    command: Annotated[tuple[float, float, float] | None, between(-100, 100)] = (0.5, 0.0, 0.0)
    """Forward and sideways velocity (m/s) and yaw rate (rad/s); ``None`` draws them as the task
    does. A task without commands ignores it."""
    condition: str = "nominal"
    """Name of an evaluation condition."""
    width: Annotated[int, between(64, 3840)] = 640
    """Pixels, even."""
    height: Annotated[int, between(64, 3840)] = 480
    """Pixels, even."""
    seed: Seed = 1
    """Seed of the initial state and everything else random."""
    primitives: bool = False
    """Whether to draw our primitives even where a package with meshes is installed."""

    @property
    def name(self) -> str:
        """What the video shows, for a file name: ``nominal-forward0.6-turn0.3-seed1``."""
        told = "random"
        if self.command is not None:
            parts = zip(("forward", "left", "turn"), self.command, strict=True)
            told = "-".join(f"{part}{value:g}" for part, value in parts if value) or "standing"
        return f"{self.condition}-{told}-seed{self.seed}"

    def __post_init__(self) -> None:
        super().__post_init__()
        find_condition(self.condition)
        for name, pixels in (("width", self.width), ("height", self.height)):
            if pixels % 2:
                raise InputError(f"video.{name} must be even, got {pixels}.")


class WalkingVideo:
    """Frames of one robot under a policy; iterate over it once.

    Args:
        policy: Observations (1, observations) to actions (1, joints).
        task: The task that it was trained on.
        config: What to record.
        title: First line of every frame.
        name: Stem of its file's name.

    Attributes:
        rate: Frames per second.
        falls: How often the robot has fallen so far; it starts again after a fall.
    """

    def __init__(
        self,
        policy: ActionFunction,
        task: LeggedTaskConfig,
        config: VideoConfig,
        title: str,
        name: str = "walking",
    ) -> None:
        self.policy, self.config, self.name = policy, config, name
        changed = find_condition(config.condition).apply(task)
        limits = replace(changed.terminations, duration=config.seconds + 1.0)  # no time-out
        self.env = make_env(replace(changed, terminations=limits), 1, seed=config.seed)
        if config.command is not None and isinstance(self.env, VelocityEnv):
            self.env.commands = HeldCommands(self.env.commands, config.command)
            self.env.reset()
        control_rate = 1 / self.env.control_dt
        self.every = max(1, round(control_rate / _FRAME_RATE))
        self.rate = control_rate / self.every
        self.overlay = WalkingOverlay(title, config.width, config.height)
        self.falls = 0

    def __len__(self) -> int:
        return max(1, round(self.config.seconds * self.rate))

    def __iter__(self) -> Generator[np.ndarray]:
        env, config = self.env, self.config
        # The base sways with every step; commands refer to the mean over a gait cycle.
        cycle = env.cfg.gait.cycle if isinstance(env, VelocityEnv) else _SMOOTHED
        recent = deque(maxlen=max(1, round(cycle / env.control_dt)))
        size = {"width": config.width, "height": config.height}
        model = picture_model(env.robot, primitives=config.primitives)
        with Renderer(model, env.robot, **size) as renderer:
            for _ in range(len(self)):
                for _ in range(self.every):
                    recent.append(self._step())
                    if env.terminated[0]:
                        self.falls += 1
                        recent.clear()
                picture = renderer.draw(env.engine.qpos[0])
                velocity = np.mean(recent, axis=0) if recent else np.zeros(3)
                told = env.commands.values[0].tolist() if isinstance(env, VelocityEnv) else None
                yield self.overlay.draw(picture, self._status(), told, velocity.tolist())

    def summary(self) -> str:
        """Say how long it is, and how often the robot fell."""
        fallen = {0: "the robot never fell", 1: "the robot fell once"}
        words = fallen.get(self.falls, f"the robot fell {self.falls} times")
        return f"{self.config.seconds:g} s, {words}"

    @torch.inference_mode()  # not around the generator: its caller may be training
    def _step(self) -> list[float]:
        """Advance by one control step; return forward, sideways and turning velocity."""
        actions = self.policy(self.env.get_observations()["policy"])
        check_actions(actions, self.env)
        self.env.step(actions)
        state = self.env.last_step.state
        return torch.cat([state.velocity[0, :2], state.angular_velocity[0, 2:]]).tolist()

    def _status(self) -> str:
        seconds = self.env.total_steps * self.env.control_dt
        fallen = f"   fallen: {self.falls}" if self.falls else ""
        return f"{self.config.condition}   {seconds:.1f} s{fallen}"
