"""What the rest of the package has to know about a robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism_motor._errors import InputError

TORQUE_FRACTION = 0.85
"""Share of a motor's limit that the controller may use."""


@dataclass(frozen=True)
class JointSpec:
    """One actuated joint."""

    name: str
    """Name in the model."""
    default: float
    """Angle of the default pose, rad."""
    stiffness: float
    """Proportional gain of the PD controller, N m/rad."""
    damping: float
    """Derivative gain, N m s/rad."""
    effort: float
    """Torque limit of the motor, N m."""

    @property
    def torque_limit(self) -> float:
        """Torque that the controller may use, N m."""
        return TORQUE_FRACTION * self.effort


@dataclass(frozen=True)
class Robot:
    """A legged robot: its model and the names that tasks refer to."""

    name: str
    """How users call it."""
    xml: str
    """The MJCF model, with position actuators in joint order."""
    joints: tuple[JointSpec, ...]
    """Actuated joints in policy order."""
    base: str
    """Body that carries the free joint."""
    feet: tuple[str, ...]
    """Foot bodies, whose frame origins are tracked, in left-right pairs."""
    knees: tuple[str, ...]
    """Knee bodies, same order as the feet."""
    foot_offset: float
    """Height of the foot frame above the sole, m."""
    stand_height: float
    """Height of the base above the ground in the default pose, m."""
    mirror: tuple[int, ...]
    """Which joint each joint becomes under left-right mirroring."""
    mirror_sign: tuple[int, ...]
    """Sign of the angle under mirroring: roll and yaw flip."""

    @property
    def default_pose(self) -> np.ndarray:
        """Default joint angles in policy order."""
        return np.array([joint.default for joint in self.joints])

    def indices(self, *parts: str) -> list[int]:
        """Return the joints whose name contains any of ``parts``, in policy order."""
        found = [i for i, j in enumerate(self.joints) if any(part in j.name for part in parts)]
        if not found:
            names = ", ".join(joint.name for joint in self.joints)
            raise InputError(f"No joint of {self.name} is called {' or '.join(parts)}: {names}.")
        return found
