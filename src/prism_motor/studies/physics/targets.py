"""The physical quantities to be learned, defined once and computed by the simulator.

Every function takes a model and its data after ``mj_forward`` at (q, dq, tau) and returns one or
more numbers. :func:`measure` evaluates all of them for an array of states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prism_motor.studies.physics.arm import JOINTS, LANDMARKS, Data, Model, engine


def joint_power(model: Model, data: Data) -> float:
    """Net mechanical power of the motors, sum_i tau_i dq_i, in W."""
    return float(data.qfrc_actuator @ data.qvel)


def absolute_joint_power(model: Model, data: Data) -> float:
    """Mechanical power without regeneration, sum_i |tau_i dq_i|, in W (the paper's definition)."""
    return float(np.abs(data.qfrc_actuator * data.qvel).sum())


def kinetic_energy(model: Model, data: Data) -> float:
    """Kinetic energy 1/2 dq^T M(q) dq, in J (M includes the rotor inertia)."""
    mujoco = engine()
    momentum = np.empty(model.nv)
    mujoco.mj_mulM(model, data, momentum, data.qvel)
    return 0.5 * float(data.qvel @ momentum)


def coriolis_torque(model: Model, data: Data) -> np.ndarray:
    """Coriolis and centrifugal torque of each joint, bias(q, dq) - bias(q, 0), in N m."""
    mujoco = engine()
    velocity, gravity = data.qvel.copy(), np.empty(model.nv)
    data.qvel[:] = 0.0
    mujoco.mj_comVel(model, data)
    mujoco.mj_rne(model, data, 0, gravity)
    data.qvel[:] = velocity
    mujoco.mj_comVel(model, data)
    return data.qfrc_bias - gravity


def contact_force(model: Model, data: Data) -> np.ndarray:
    """Net force between hand and table in the world frame, in N."""
    mujoco = engine()
    total, wrench = np.zeros(3), np.empty(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, wrench)
        total += data.contact[i].frame.reshape(3, 3).T @ wrench[:3]
    return total


def contact_power(model: Model, data: Data) -> float:
    """Contact power F_c ||v_tip||: net force magnitude times the tip's speed, in W."""
    mujoco = engine()
    if data.ncon == 0:
        return 0.0
    jacobian = np.empty((3, model.nv))
    mujoco.mj_jacSite(model, data, jacobian, None, data.site(LANDMARKS[-1]).id)
    speed = np.linalg.norm(jacobian @ data.qvel)
    return float(np.linalg.norm(contact_force(model, data)) * speed)


@dataclass(frozen=True)
class Target:
    """One quantity to be learned."""

    name: str
    """Key in results.json."""
    label: str
    """What people read."""
    formula: str
    """Its definition in one line."""
    compute: Callable[[Model, Data], float | np.ndarray]
    """The definition."""
    size: int = 1
    """How many numbers it has."""


TARGETS: tuple[Target, ...] = (
    Target("joint_power", "Joint power (net)", "Σᵢ τᵢ q̇ᵢ", joint_power),
    Target("absolute_power", "Joint power (absolute)", "Σᵢ |τᵢ q̇ᵢ|", absolute_joint_power),
    Target("kinetic_energy", "Kinetic energy", "½ q̇ᵀ M(q) q̇", kinetic_energy),
    Target("coriolis", "Coriolis torques", "C(q, q̇) q̇", coriolis_torque, len(JOINTS)),
    Target("contact_power", "Contact power", "F · ‖v_tip‖", contact_power),
)
"""All targets, in the order of the columns that :func:`measure` returns."""


def target_columns() -> dict[str, slice]:
    """Map each target's name to its columns."""
    stops = np.cumsum([target.size for target in TARGETS])
    return {
        target.name: slice(int(stop) - target.size, int(stop))
        for target, stop in zip(TARGETS, stops, strict=True)
    }


def measure(model: Model, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Compute every target at every state: three (n, joints) arrays -> (n, columns)."""
    mujoco = engine()
    data = mujoco.MjData(model)
    rows = np.empty((len(q), sum(target.size for target in TARGETS)))
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[i], dq[i], tau[i]
        data.qacc_warmstart[:] = 0.0  # else contact forces would depend on the state before
        mujoco.mj_forward(model, data)
        rows[i] = np.concatenate([np.atleast_1d(target.compute(model, data)) for target in TARGETS])
    return rows
