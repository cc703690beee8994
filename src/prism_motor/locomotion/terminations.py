"""When an episode ends before its time."""

from __future__ import annotations

from torch import Tensor

from prism_motor.locomotion.state import RobotState
from prism_motor.locomotion.task import TerminationConfig


def has_fallen(state: RobotState, limits: TerminationConfig) -> Tensor:
    """Say which robots (N,) have fallen: the base touches something, tilts too far or is low."""
    fallen = state.base_force.norm(dim=-1) > limits.base_force
    if limits.roll is not None:
        fallen |= state.euler[:, 0].abs() > limits.roll
    if limits.pitch is not None:
        fallen |= state.euler[:, 1].abs() > limits.pitch
    if limits.height is not None:
        fallen |= state.base_position[:, 2] < limits.height
    return fallen
