"""Names that people read: of every input of the actor, and of what a product of inputs is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prism_motor.locomotion.observations import actor_names
from prism_motor.locomotion.task import TaskConfig

_KEYS = {
    "gait clock": ("clock_sin", "clock_cos"),
    "command": ("command_forward", "command_sideways", "command_yaw"),
    "joint position": ("q_",),
    "joint velocity": ("dq_",),
    "last action": ("action_",),
    "angular velocity": ("gyro_x", "gyro_y", "gyro_z"),
    "orientation": ("roll", "pitch", "yaw"),
}
"""Groups by name, with how the names of their inputs begin in the observation."""

GROUPS = tuple(_KEYS)
"""Input groups in the order of the observation."""

_SYMBOLS = {
    "gait clock": "clock",
    "command": "command",
    "joint position": "q",
    "joint velocity": "dq",
    "last action": "action",
    "angular velocity": "gyro",
    "orientation": "",
}


@dataclass(frozen=True)
class InputName:
    """One input of the actor."""

    key: str
    """Its name in :func:`prism_motor.locomotion.observations.actor_names`, e.g. ``dq_left_knee[t-3]``."""
    group: str
    """One of :data:`GROUPS`."""
    part: str
    """Which joint, axis or component, e.g. ``left knee``."""
    lag: int
    """Control steps ago; 0 is the present frame."""

    @property
    def when(self) -> str:
        """The frame: ``(t)`` or ``(t-3)``."""
        return f"(t-{self.lag})" if self.lag else "(t)"

    def __str__(self) -> str:
        words = (_SYMBOLS[self.group], self.part.replace("left", "L").replace("right", "R"))
        return f"{' '.join(word for word in words if word)} {self.when}"


def name_inputs(task: TaskConfig) -> list[InputName]:
    """Name every actor input of a task, in the order of the observation."""
    return [_parse(key) for key in actor_names(task)]


def _parse(key: str) -> InputName:
    name, _, frame = key.rstrip("]").partition("[")
    lag = int(frame.removeprefix("t").removeprefix("-") or 0)
    for group, starts in _KEYS.items():
        for start in starts:
            if start.endswith("_") and name.startswith(start):
                return InputName(key, group, name.removeprefix(start).replace("_", " "), lag)
            if name == start:
                return InputName(key, group, name.rpartition("_")[2], lag)
    raise AssertionError(f"{key} belongs to no group; add it to the table of groups.")


_BODY = ("angular velocity", "orientation")
_STATE = ("joint position", "joint velocity", *_BODY)

# In order: the first line that fits both groups gives the role.
_ROLES: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("joint position",), ("joint velocity",), "state-velocity coupling"),
    (("joint position",), ("joint position",), "posture coupling"),
    (_BODY, _BODY, "body-motion coupling"),
    (_BODY, ("joint position", "joint velocity"), "body-joint coupling"),
    (("command",), _STATE, "command-state coupling"),
    (("last action",), _STATE, "action-state coupling"),
    (("last action",), ("last action",), "action memory"),
    (("command",), ("last action",), "command-action coupling"),
    (("command",), ("command",), "command coupling"),
    (("gait clock",), GROUPS, "gait-phase coupling"),
)


def role_of(inputs: Sequence[InputName]) -> str:
    """Say what a product of two inputs is for, in the words of the paper where it has them.

    Joint velocities of different frames make a velocity memory, of one frame a joint-velocity
    coupling. More than two inputs have no role of their own: theirs is that of the first two.
    """
    first, second = inputs[:2]
    if first.group == second.group == "joint velocity":
        return "velocity memory" if first.lag != second.lag else "joint-velocity coupling"
    for one, other, role in _ROLES:
        if (first.group in one and second.group in other) or (
            second.group in one and first.group in other
        ):
            return role
    raise AssertionError(f"No role for {first.group} with {second.group}; add it to the table.")
