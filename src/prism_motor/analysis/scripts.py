"""Command scripts: the same commands at the same times for every policy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor._errors import InputError
from prism_motor.locomotion.commands import Commands
from prism_motor.locomotion.env import VelocityEnv


@dataclass(frozen=True)
class CommandScript:
    """Commands that hold until the next one, by time since the episode began."""

    points: tuple[tuple[float, float, float, float], ...]
    """(time in s, forward m/s, sideways m/s, yaw rate rad/s), by time; the first is at 0."""
    seconds: float
    """When the script ends."""

    def __post_init__(self) -> None:
        times = [point[0] for point in self.points]
        if not times or times[0] != 0 or sorted(set(times)) != times or times[-1] >= self.seconds:
            raise InputError(
                "CommandScript: times must begin with 0, rise, and stay below the end at "
                f"{self.seconds} s; got {times}."
            )

    def steps(self, control_dt: float) -> int:
        """Return how many control steps the script takes."""
        return round(self.seconds / control_dt)

    def at(self, seconds: Tensor) -> Tensor:
        """Return the commands at some times, (N,) -> (N, 3)."""
        table = torch.tensor(self.points, dtype=torch.double)
        # Half a nanosecond: k control steps of 0.01 s add up to a little less than the time meant.
        index = torch.searchsorted(table[:, 0].contiguous(), seconds.double() + 5e-10, right=True)
        return table[index - 1, 1:].float()


class ScriptedCommands(Commands):
    """Commands of a script in all environments, with the yaw rate as given."""

    def __init__(self, env: VelocityEnv, script: CommandScript) -> None:
        super().__init__(env.cfg.commands, env.num_envs, env.generator)
        self.env, self.script = env, script

    def resample(self, envs: Tensor) -> None:
        """Keep to the script."""

    def follow_heading(self, yaw: Tensor) -> None:
        """Take the commands of the present time, instead of a yaw rate from a heading."""
        self.values = self.script.at(self.env.episode_length_buf.double() * self.env.control_dt)
