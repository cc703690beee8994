"""The force that a hand exerts, from the torques of its arm.

An arm moves by ``M ddq + bias = tau + passive + J^T f_world``, where ``f_world`` is what the world
does to the hand. What the hand does to the world, ``f = -f_world``, then follows from

    tau - bias = J^T f + M ddq - passive

At rest the last two terms vanish but for dry friction, which hides up to its own torque in every
joint; in motion they are read as force: acceleration as inertia, joint damping as drag. A force
that does not act at the end effector brings a moment with it, part of which is read as force too.
"""

from __future__ import annotations

import numpy as np

from prism_motor._errors import InputError
from prism_motor.manipulation.environment import Array, Physics


def exerted_force(jacobian: Array, torques: Array, damping: float = 1e-4) -> Array:
    """Solve ``(J J^T + damping I) f = J torques`` for the force, N.

    Args:
        jacobian: Of the end effector's position (3 x joints).
        torques: Of the joints, without what gravity and motion ask for, N m.
        damping: Keeps the force finite where the arm is stretched out.
    """
    check_joints(jacobian)
    square = jacobian @ jacobian.T + damping * np.eye(len(jacobian))
    return np.asarray(np.linalg.solve(square, jacobian @ torques), dtype=np.float64)


def check_joints(jacobian: Array) -> None:
    """Raise unless an arm has joints whose torques tell of forces."""
    if not jacobian.size:
        raise InputError(
            "The force cannot be estimated: this arm has no actuated joints (a mocap body moves "
            "it). Take mcc-oracle, or a simulator with joints, e.g. LIBERO."
        )


def estimated_force(physics: Physics, damping: float = 1e-4) -> Array:
    """Estimate what the hand exerts on the world from the actuators, N (3)."""
    torques = physics.joint_torques - physics.bias_torques
    return exerted_force(physics.jacobian[:3], torques, damping)


def contact_force(physics: Physics) -> Array:
    """Return what the hand exerts on the world by its contacts, N (3)."""
    return -physics.contact_force
