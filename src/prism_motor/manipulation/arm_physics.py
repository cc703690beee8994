"""What an arm in a MuJoCo scene goes through, for suites whose scenes are MuJoCo's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.environment import Physics
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.sensing import contact_forces


def read_physics(
    model: Any,
    data: Any,
    *,
    site: int,
    body: int,
    dofs: NDArray[np.int_] | Sequence[int],
    joint_positions: NDArray[np.float64],
    hand: Sequence[int],
) -> Physics:
    """Return the physical quantities of an arm in a MuJoCo scene whose derived values are current.

    Args:
        model: The compiled model.
        data: Its state.
        site: The end effector.
        body: The body whose orientation counts.
        dofs: Degrees of freedom of the arm's joints.
        joint_positions: Their angles.
        hand: Bodies whose contacts count.
    """
    jacobian = np.zeros((6, model.nv))
    import_mujoco().mj_jacSite(model, data, jacobian[:3], jacobian[3:], site)
    forces = contact_forces(model, data, hand)
    return Physics(
        position=data.site_xpos[site].copy(),
        quaternion=data.xquat[body].copy(),
        velocity=jacobian @ data.qvel,
        jacobian=jacobian[:, dofs],
        joint_positions=joint_positions,
        joint_velocities=data.qvel[dofs],
        joint_torques=data.qfrc_actuator[dofs],
        bias_torques=data.qfrc_bias[dofs],
        contact_force=forces.sum(0),
        largest_force=float(np.linalg.norm(forces, axis=1).max()),
    )
