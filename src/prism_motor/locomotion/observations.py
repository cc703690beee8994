"""What actor and critic see: one table of blocks, and histories of frames.

Values, noise, names, sizes, mirroring and the contract all follow from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.locomotion.task import LeggedTaskConfig, ObservationConfig, find_env_type
from prism_motor.nn.actors import ActorConfig
from prism_motor.nn.reading import frame_names
from prism_motor.sim.robots import Robot, make_robot

Rule = tuple[list[int], list[float]]
"""Mirroring: which entry each entry maps to, and its sign."""


@dataclass(frozen=True)
class Block:
    """Entries of an observation frame that belong together."""

    name: str
    """Its name, and that of its source in the contract."""
    entries: tuple[str, ...] | str
    """Names of the entries; ``dq_{joint}`` gives one per joint, ``{foot}`` one per foot."""
    source: Callable[[Any], Tensor]
    """Reads the values (N, entries) from the environment."""
    scale: float | str = 1.0
    """Factor on the values, or the field of the observation config that holds it."""
    noise: float | str = 0.0
    """Standard deviation of the actor's noise, before scaling, or the field that holds it."""
    mirror: tuple[float, ...] | None = None
    """Signs of the entries under left-right mirroring; joints and feet follow the robot."""
    critic_only: bool = False
    """Whether it is hidden from the actor."""
    group: str = ""
    """Its group in analyses; the name if empty."""
    meaning: str = ""
    """A sentence for whoever reads the contract."""

    def entry_names(self, robot: Robot) -> list[str]:
        """Return the name of every entry."""
        if not isinstance(self.entries, str):
            return list(self.entries)
        if "{joint}" in self.entries:
            return [self.entries.format(joint=joint) for joint in robot.joint_names]
        if "{foot}" in self.entries:
            return [self.entries.format(foot=foot) for foot in robot.feet]
        raise InputError(
            f"Observation block {self.name!r}: entries {self.entries!r} has neither {{joint}} nor "
            f"{{foot}}; for a single entry write ({self.entries!r},)."
        )

    def mirror_rule(self, robot: Robot) -> Rule:
        """Return how the block is mirrored."""
        if robot.mirror is None or robot.mirror_sign is None:
            raise InputError(
                f"The robot {robot.name!r} does not define its mirroring. Give "
                "Robot.from_mjcf(mirror=...), or train without mirrored samples (ppo.mirror=false)."
            )
        size = len(self.entry_names(robot))
        if isinstance(self.entries, str) and "{joint}" in self.entries:
            return list(robot.mirror), [float(sign) for sign in robot.mirror_sign]
        if isinstance(self.entries, str):  # feet; a single one is its own mirror image
            swapped = [i ^ 1 for i in range(size)] if size % 2 == 0 else list(range(size))
            return swapped, [1.0] * size
        if self.mirror is None or len(self.mirror) != size:
            raise InputError(
                f"The observation block {self.name!r} does not define its mirroring: give "
                f"mirror=(...), {size} signs, or train without mirrored samples "
                "(ppo.mirror=false)."
            )
        return list(range(size)), [float(sign) for sign in self.mirror]

    def setting(self, name: str, view: ObservationConfig) -> float:
        """Return ``scale`` or ``noise`` as a number."""
        value = getattr(self, name)
        if isinstance(value, str):
            if not hasattr(view, value):
                raise InputError(
                    f"Observation block {self.name!r}: {name} is {value!r}, not a field of "
                    f"{type(view).__name__}."
                )
            return float(getattr(view, value))
        return float(value)


_FLIP_Y, _FLIP_XZ = (1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)
"""Mirroring of vectors, and of rotations."""

FRAME: tuple[Block, ...] = (
    # The mirrored robot is half a gait cycle out of phase: the clock changes sign.
    Block("clock", ("clock_sin", "clock_cos"), lambda env: env.beat.clock, mirror=(-1.0, -1.0),
          group="gait clock", meaning="sin and cos of 2 pi phase"),
    Block("planar_command", ("command_forward", "command_sideways"),
          lambda env: env.commands.values[:, :2], scale="command_scale", mirror=(1.0, -1.0),
          group="command", meaning="forward, sideways velocity, m/s"),
    Block("yaw_rate_command", ("command_yaw",), lambda env: env.commands.values[:, 2:],
          mirror=(-1.0,), group="command", meaning="rad/s"),
    Block("joint_position_from_default", "q_{joint}", lambda env: env.state.q - env.default_pose,
          noise="joint_noise", group="joint position", meaning="angle minus default, rad"),
    Block("joint_velocity", "dq_{joint}", lambda env: env.state.dq, scale="joint_velocity_scale",
          noise="joint_velocity_noise", group="joint velocity", meaning="rad/s"),
    Block("last_action", "action_{joint}", lambda env: env.actions[0], group="last action",
          meaning="the clipped action applied last, zero at the start"),
    Block("joint_position_from_reference", "q_from_reference_{joint}",
          lambda env: env.state.q - env.beat.reference, critic_only=True),
    Block("base_velocity", ("velocity_x", "velocity_y", "velocity_z"),
          lambda env: env.state.velocity, scale="command_scale", mirror=_FLIP_Y, critic_only=True),
    Block("base_angular_velocity", ("gyro_x", "gyro_y", "gyro_z"),
          lambda env: env.state.angular_velocity, noise="angular_velocity_noise", mirror=_FLIP_XZ,
          group="angular velocity", meaning="in the base's axes, rad/s"),
    Block("base_euler", ("roll", "pitch", "yaw"), lambda env: env.state.euler,
          noise="orientation_noise", mirror=_FLIP_XZ, group="orientation",
          meaning="roll, pitch, yaw (ZYX) of the base in the world, rad"),
    Block("push", ("push_x", "push_y", "push_roll", "push_pitch", "push_yaw"),
          lambda env: env.push, mirror=(1.0, -1.0, -1.0, 1.0, -1.0), critic_only=True),
    Block("dynamics", ("friction", "base_mass"), lambda env: env.dynamics_entries,
          mirror=(1.0, 1.0), critic_only=True),
    Block("stance", "stance_{foot}", lambda env: env.beat.stance, critic_only=True),
    Block("contact", "contact_{foot}", lambda env: env.contact, critic_only=True),
)  # fmt: skip
"""The frame of the velocity task."""

_WALKING = (
    "clock",
    "planar_command",
    "yaw_rate_command",
    "joint_position_from_reference",
    "stance",
)

LEGGED_FRAME: tuple[Block, ...] = tuple(block for block in FRAME if block.name not in _WALKING)
"""What every legged robot can see; your own tasks add their blocks to it."""


class Frame:
    """A table of blocks for one robot: sizes, names, noise and mirror image.

    Args:
        blocks: The table.
        view: Scales and noise.
        robot: The robot.
    """

    def __init__(self, blocks: Sequence[Block], view: ObservationConfig, robot: Robot) -> None:
        names = [block.name for block in blocks]
        if len(set(names)) < len(names):
            raise InputError(f"An observation block is listed twice: {', '.join(names)}.")
        self.blocks, self.view, self.robot = tuple(blocks), view, robot
        self.actor_blocks = [block for block in blocks if not block.critic_only]
        if not self.actor_blocks:
            raise InputError("All observation blocks are for the critic; the actor needs some too.")
        self._readers = [(block.source, block.setting("scale", view)) for block in blocks]
        self._seen = [i for i, block in enumerate(blocks) if not block.critic_only]

    def size(self, block: Block) -> int:
        """Return how many entries a block has."""
        return len(block.entry_names(self.robot))

    @property
    def actor_size(self) -> int:
        """Entries of an actor frame."""
        return sum(self.size(block) for block in self.actor_blocks)

    @property
    def critic_size(self) -> int:
        """Entries of a critic frame."""
        return sum(self.size(block) for block in self.blocks)

    @property
    def actor_names(self) -> list[str]:
        """Names of the entries of an actor frame."""
        return [name for block in self.actor_blocks for name in block.entry_names(self.robot)]

    def noise(self) -> Tensor:
        """Return the standard deviation of the noise on each entry of the actor frame."""
        parts = [
            torch.full(
                (self.size(block),),
                block.setting("noise", self.view) * block.setting("scale", self.view),
            )
            for block in self.actor_blocks
        ]
        return self.view.noise * torch.cat(parts)

    def read(self, env: Any) -> tuple[Tensor, Tensor]:
        """Return the current frames of actor (without noise) and critic."""
        values = []
        for source, scale in self._readers:
            value = source(env)
            values.append(value if scale == 1.0 else value * scale)
        return torch.cat([values[i] for i in self._seen], dim=-1), torch.cat(values, dim=-1)

    def check(self, env: Any) -> None:
        """Raise if a block's source does not give as many entries as the table says."""
        for block in self.blocks:
            expected, found = (env.num_envs, self.size(block)), tuple(block.source(env).shape)
            if found != expected:
                raise InputError(
                    f"The observation block {block.name!r} has {expected[1]} entries "
                    f"({', '.join(block.entry_names(self.robot))}), so its source must give "
                    f"{expected}; it gave {found}."
                )


def frame_of(task: LeggedTaskConfig) -> Frame:
    """Return the frame of a task."""
    blocks = find_env_type(task.kind).blocks
    return Frame(blocks, task.observations, make_robot(task.robot))


def observation_size(task: LeggedTaskConfig) -> tuple[int, int]:
    """Return (actor inputs, actions) of a task."""
    frame = frame_of(task)
    return task.observations.actor_frames * frame.actor_size, len(frame.robot.joints)


def actor_names(task: LeggedTaskConfig) -> list[str]:
    """Name every actor input, oldest frame first, e.g. ``dq_left_knee[t-3]``."""
    return frame_names(frame_of(task).actor_names, task.observations.actor_frames)


def resolve_bypass(actor: ActorConfig, task: LeggedTaskConfig) -> ActorConfig:
    """Return an actor's config with the inputs that by-pass its polynomial by index.

    A name is that of a block or of a group of blocks, and stands for its entries in all frames.

    Args:
        actor: The config as it is saved, with names.
        task: The task whose observations they are.
    """
    names: Sequence[str | int] = getattr(actor, "bypass", ())
    if not names:
        return actor
    frame = frame_of(task)
    found: list[int] = []
    start, used = 0, set()
    for block in frame.actor_blocks:
        keys = {block.name, block.group} & {*names}
        if keys:
            found += range(start, start + frame.size(block))
            used |= keys
        start += frame.size(block)
    blocks = ", ".join(block.name for block in frame.actor_blocks)
    for name in names:
        if name not in used:
            raise InputError(
                f"actor.bypass: there is no observation {name!r} to lead past the polynomial; "
                f"choose from the blocks {blocks}, or a group of them: "
                f"{', '.join(dict.fromkeys(b.group for b in frame.actor_blocks if b.group))}."
            )
    frames = range(task.observations.actor_frames)
    return replace(actor, bypass=tuple(start * age + i for age in frames for i in found))  # type: ignore[call-arg]


class History:
    """The last frames of every environment, oldest first, zero before the episode began.

    Attributes:
        values: (N, frames, size), clipped. Never modified in place: what was returned stays valid.
    """

    def __init__(
        self,
        num_envs: int,
        frames: int,
        size: int,
        clip: float,
        device: str | torch.device = "cpu",
    ) -> None:
        self.values = torch.zeros(num_envs, frames, size, device=device)
        self.clip = clip

    def reset(self, envs: Tensor) -> None:
        """Empty the history; assigned, not multiplied, so that a NaN does not survive."""
        self.values = self.values.index_fill(0, envs, 0.0)

    def push(self, frame: Tensor) -> None:
        """Append a frame and drop the oldest."""
        clipped = frame.clamp(-self.clip, self.clip).unsqueeze(1)
        self.values = torch.cat([self.values[:, 1:], clipped], dim=1)

    def flat(self) -> Tensor:
        """Return (N, frames * size)."""
        return self.values.flatten(1)
