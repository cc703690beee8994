"""What the networks see: one table of channels in four streams, and histories.

Simulated robots and frames of motion clips pass through the same functions, so that the same
state gives the same observation. An observation is one row: the streams one after the other.

    state        64   joint angles from the default pose and velocities, gravity, angular velocity
    last_action  29   the action applied last
    history     372   four past steps, key by key, the newest first
    privileged  463   bodies in the heading frame (:mod:`.bodies`); 163 with eleven key bodies

Sizes are known without a simulator; names and values come from the robot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prism_motor._checks import InputError

if TYPE_CHECKING:
    import numpy as np

    from prism_motor.sim.kinematics import Bodies
    from prism_motor.sim.robots import Robot

JOINTS, BODIES = 29, 31
"""Joints and bodies of the robot."""

KEY_BODIES: tuple[str, ...] = (
    *("pelvis", "left_knee", "left_ankle_roll", "right_knee", "right_ankle_roll", "torso"),
    *("left_shoulder_yaw", "left_wrist_yaw", "right_shoulder_yaw", "right_wrist_yaw", "head"),
)
"""The eleven bodies of the compact observation."""


@cache
def _robot() -> Robot:
    from prism_motor.sim.robots import make_robot
    from prism_motor.tracking.bodies import ROBOT

    return make_robot(ROBOT)


@dataclass(frozen=True)
class RobotFrames:
    """N moments of a robot, simulated or from a clip."""

    joint_positions: Tensor
    """Joint angles (N, joints), rad."""
    joint_velocities: Tensor
    """Joint velocities (N, joints), rad/s."""
    angular_velocity: Tensor
    """Angular velocity of the pelvis in its own axes (N, 3), rad/s."""
    gravity: Tensor
    """Direction of gravity in the pelvis's axes (N, 3), of length one."""
    bodies: Tensor
    """What is seen of the bodies (N, 15 B - 2); the last 6 B are velocities."""

    def __len__(self) -> int:
        return len(self.joint_positions)

    def check(self, layout: Layout) -> None:
        """Raise unless all arrays have the shapes that a layout needs."""
        wanted = {
            "joint_positions": JOINTS,
            "joint_velocities": JOINTS,
            "angular_velocity": 3,
            "gravity": 3,
            "bodies": layout.sizes["privileged"],
        }
        for field in fields(self):
            found, expected = (
                tuple(getattr(self, field.name).shape),
                (len(self), wanted[field.name]),
            )
            if found != expected:
                raise InputError(
                    f"RobotFrames.{field.name} must have the shape {expected}, got {found}: "
                    f"{len(self)} frames of {JOINTS} joints and {layout.bodies} bodies."
                )


def read_frames(qpos: np.ndarray, qvel: np.ndarray, bodies: Bodies, layout: Layout) -> RobotFrames:
    """Return states of simulated robots, or of a clip, as they are observed.

    Args:
        qpos: (N, 7 + joints): base position, base quaternion wxyz, joint angles.
        qvel: (N, 6 + joints): base linear (world), base angular (body), joints.
        bodies: Poses and velocities of the bodies in these states.
        layout: What is observed.
    """
    from prism_motor.tracking.bodies import observe_bodies

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values.astype("float32"))

    return RobotFrames(
        joint_positions=tensor(qpos[:, 7:]),
        joint_velocities=tensor(qvel[:, 6:]),
        angular_velocity=tensor(qvel[:, 3:6]),
        gravity=tensor(-bodies.rotation[2, :, 0].T),
        bodies=torch.from_numpy(observe_bodies(bodies, layout.keep)),
    )


@dataclass(frozen=True)
class Channel:
    """Entries of an observation that belong together."""

    name: str
    """Its name."""
    stream: str
    """``state`` or ``privileged``."""
    entries: str
    """Names of the entries, for each ``{joint}`` or ``{axis}``; those of bodies come from there."""
    source: Callable[[RobotFrames], Tensor]
    """Reads the values (N, entries)."""
    scale: float = 1.0
    """Factor on the values."""
    noise: float = 0.0
    """Largest noise on simulated robots, uniform to both sides, before the scale."""


CHANNELS: tuple[Channel, ...] = (
    Channel("joint_position", "state", "q_{joint}",
          lambda frames: frames.joint_positions - _default_pose(), noise=0.01),
    Channel("joint_velocity", "state", "dq_{joint}",
          lambda frames: frames.joint_velocities, noise=0.5),
    Channel("gravity", "state", "gravity_{axis}", lambda frames: frames.gravity, noise=0.05),
    Channel("angular_velocity", "state", "gyro_{axis}",
          lambda frames: frames.angular_velocity, scale=0.25, noise=0.2),
    Channel("bodies", "privileged", "", lambda frames: frames.bodies),
)  # fmt: skip
"""Everything that is read from the robot, in order."""


@cache
def _default_pose() -> Tensor:
    return torch.tensor([joint.default for joint in _robot().joints])


LAST_ACTION, HISTORY = "last_action", "history"
STREAMS = ("state", LAST_ACTION, HISTORY, "privileged")
"""The parts of an observation, in order; each has its own normalisation."""

HISTORY_KEYS = (LAST_ACTION, "angular_velocity", "joint_position", "joint_velocity", "gravity")
"""What the history holds, in order."""


@dataclass(frozen=True)
class Layout:
    """Sizes, columns and names of an observation."""

    compact: bool = False
    """Whether the privileged state has eleven key bodies instead of all."""
    steps: int = 4
    """Past steps in the history."""

    @property
    def actions(self) -> int:
        """Entries of an action."""
        return JOINTS

    @property
    def bodies(self) -> int:
        """Bodies of the privileged state."""
        return len(KEY_BODIES) if self.compact else BODIES

    @cached_property
    def keep(self) -> list[int] | None:
        """Which bodies the privileged state has, by index; ``None``: all."""
        from prism_motor.tracking.bodies import kinematics

        return [kinematics().names.index(name) for name in KEY_BODIES] if self.compact else None

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Entries of every stream, in order."""
        state = 2 * JOINTS + 6
        past = self.steps * (state + JOINTS)
        return dict(zip(STREAMS, (state, JOINTS, past, 15 * self.bodies - 2), strict=True))

    def channel_names(self, name: str) -> list[str]:
        """Return the names of the entries of a channel, or of the last action."""
        if name == "bodies":
            from prism_motor.tracking.bodies import body_observation_names, kinematics

            return body_observation_names(KEY_BODIES if self.compact else kinematics().names)
        table = {channel.name: channel.entries for channel in CHANNELS}
        entries = {**table, LAST_ACTION: "action_{joint}"}[name]
        if "{axis}" in entries:
            return [entries.format(axis=axis) for axis in "xyz"]
        return [entries.format(joint=joint) for joint in _robot().joint_names]

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Names of the entries of every stream."""
        found: dict[str, list[str]] = {stream: [] for stream in STREAMS}
        for channel in CHANNELS:
            found[channel.stream] += self.channel_names(channel.name)
        found[LAST_ACTION] = self.channel_names(LAST_ACTION)
        found[HISTORY] = [
            f"{entry}[t-{age}]"
            for key in HISTORY_KEYS
            for age in range(1, self.steps + 1)
            for entry in self.channel_names(key)
        ]
        return {stream: tuple(names) for stream, names in found.items()}

    @cached_property
    def size(self) -> int:
        """Entries of an observation."""
        return sum(self.sizes.values())

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Where each stream is in an observation."""
        found, start = {}, 0
        for stream, size in self.sizes.items():
            found[stream] = slice(start, start + size)
            start += size
        return found

    def width(self, streams: Sequence[str]) -> int:
        """Return how many entries some streams have together."""
        return sum(self.sizes[stream] for stream in streams)

    def select(self, observations: Tensor, streams: Sequence[str]) -> Tensor:
        """Return some streams of observations (N, size), side by side; a view if they adjoin."""
        columns = [self.columns[stream] for stream in streams]
        if all(a.stop == b.start for a, b in pairwise(columns)):
            return observations[:, columns[0].start : columns[-1].stop]
        return torch.cat([observations[:, one] for one in columns], dim=1)


def read_channels(frames: RobotFrames) -> dict[str, Tensor]:
    """Return the scaled values of every channel, without noise."""
    values = {channel.name: channel.source(frames) for channel in CHANNELS}
    scaled = {
        channel.name: values[channel.name] * channel.scale
        for channel in CHANNELS
        if channel.scale != 1
    }
    return {**values, **scaled}


def join(channels: Mapping[str, Tensor], last_action: Tensor, history: Tensor) -> Tensor:
    """Return observations (N, size) from the channels, the last action and the history."""
    parts: dict[str, list[Tensor]] = {stream: [] for stream in STREAMS}
    for channel in CHANNELS:
        parts[channel.stream].append(channels[channel.name])
    parts[LAST_ACTION], parts[HISTORY] = [last_action], [history]
    return torch.cat([value for stream in STREAMS for value in parts[stream]], dim=1)


class Observer:
    """Makes the observations of simulated robots, with noise and history.

    The history that is seen at a step ends one step before it: its newest entry is the observation
    of the step before, with the action that was the last one then. Noise is part of it.

    Args:
        layout: What is observed.
        envs: Robots.
        noise: Factor on the noise of every channel; 0: none.
        generator: Source of the noise.
    """

    def __init__(
        self, layout: Layout, envs: int, *, noise: float = 0.0, generator: torch.Generator
    ) -> None:
        self._noise, self._generator = noise, generator
        sizes = {
            key: 3 if key in ("angular_velocity", "gravity") else JOINTS for key in HISTORY_KEYS
        }
        self._past = {key: torch.zeros(envs, layout.steps, size) for key, size in sizes.items()}

    def reset(self, envs: Tensor) -> None:
        """Empty the history of some robots; assigned, so that a NaN does not survive."""
        for values in self._past.values():
            values[envs] = 0.0

    def observe(self, frames: RobotFrames, last_action: Tensor) -> Tensor:
        """Return the observations (N, size) of this step; call once per step."""
        channels = read_channels(frames)
        if self._noise:
            for channel in CHANNELS:
                if channel.noise:
                    size = self._noise * channel.noise * channel.scale
                    drawn = torch.rand(channels[channel.name].shape, generator=self._generator)
                    channels[channel.name] = channels[channel.name] + size * (2 * drawn - 1)
        history = torch.cat([self._past[key].flatten(1) for key in HISTORY_KEYS], dim=1)
        for key, value in {**channels, LAST_ACTION: last_action}.items():
            if key in self._past:
                past = self._past[key]
                self._past[key] = torch.cat([value.unsqueeze(1), past[:, :-1]], dim=1)
        return join(channels, last_action, history)

    def state(self) -> dict[str, Tensor]:
        """Return the histories."""
        return {key: values.clone() for key, values in self._past.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue with saved histories."""
        self._past = {key: tensors[key].clone() for key in self._past}


def at_rest(frames: RobotFrames) -> RobotFrames:
    """Return the same poses with all velocities zero."""
    entries = frames.bodies.shape[1]
    moving = 6 * ((entries + 2) // 15)
    still = torch.cat(
        [frames.bodies[:, : entries - moving], torch.zeros_like(frames.bodies[:, -moving:])], dim=1
    )
    return replace(
        frames,
        joint_velocities=torch.zeros_like(frames.joint_velocities),
        angular_velocity=torch.zeros_like(frames.angular_velocity),
        bodies=still,
    )


def clip_observations(frames: RobotFrames, layout: Layout, actions: Tensor | None = None) -> Tensor:
    """Return the observations (T, size) of the consecutive frames of one clip, without noise.

    Args:
        frames: The frames.
        layout: What is observed.
        actions: What drives the robot from each frame to the next (T, J); the last action and the
            history follow from it. Without it, both are zero, as the paper's experts have them.
    """
    frames.check(layout)
    channels = read_channels(frames)
    like = channels["joint_position"]
    if actions is None:
        return join(
            channels, torch.zeros_like(like), like.new_zeros(len(like), layout.sizes[HISTORY])
        )
    last_action = _delayed(actions.to(like), 1)
    keys = {**channels, LAST_ACTION: last_action}
    ages = range(1, layout.steps + 1)
    history = torch.cat([_delayed(keys[key], age) for key in HISTORY_KEYS for age in ages], dim=1)
    return join(channels, last_action, history)


def _delayed(values: Tensor, steps: int) -> Tensor:
    """Shift values (T, n) to later frames; zero comes first."""
    return torch.cat([torch.zeros_like(values[:steps]), values[: max(0, len(values) - steps)]])
