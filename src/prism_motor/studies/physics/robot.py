"""The simulated robot, a four-joint torque-driven arm over a soft table, and its physics.

The quantities to be learned are defined here once and computed by the simulator: every function
takes a model and its data after ``mj_forward`` at (q, dq, tau) and returns one or more numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from prism_motor.sim.scene import import_mujoco

Model: TypeAlias = Any
"""``mujoco.MjModel``, which type checkers do not know."""
Data: TypeAlias = Any
"""``mujoco.MjData``."""

JOINTS = ("yaw", "shoulder", "elbow", "wrist")
"""Hinge joints from the base to the hand."""

LANDMARKS = ("base", "upper_arm", "forearm", "hand", "tip")
"""Sites along the arm, for drawing and for the end effector's velocity (the last one)."""

TORQUE_LIMIT = np.array([12.0, 30.0, 16.0, 5.0])
"""Largest torque the excitation applies at each joint, in N m."""

# Only the hand and the table collide: the links above it cannot reach below the wrist. The table
# is padded (solref, solimp: soft over 4 cm), so that contact forces change smoothly with the state.
ARM_XML = """
<mujoco model="four-joint arm">
  <option timestep="0.004" integrator="implicitfast"/>
  <default>
    <joint type="hinge" damping="0.2" armature="0.02" limited="true"/>
    <geom type="capsule" contype="0" conaffinity="0" density="900"/>
    <site size="0.01"/>
  </default>
  <worldbody>
    <geom name="table" type="plane" size="1 1 0.1" contype="1" conaffinity="1"
          priority="1" solref="0.05 1" solimp="0.02 0.9 0.04 0.5 2" friction="0.4 0.005 0.0001"/>
    <body name="turntable" pos="0 0 0.45">
      <joint name="yaw" axis="0 0 1" range="-70 70"/>
      <geom type="cylinder" size="0.06 0.04"/>
      <site name="base"/>
      <body name="upper_arm">
        <joint name="shoulder" axis="0 1 0" range="-80 70"/>
        <geom fromto="0 0 0 0.32 0 0" size="0.04"/>
        <site name="upper_arm"/>
        <body name="forearm" pos="0.32 0 0">
          <joint name="elbow" axis="0 1 0" range="-10 140"/>
          <geom fromto="0 0 0 0.28 0 0" size="0.032"/>
          <site name="forearm"/>
          <body name="hand" pos="0.28 0 0">
            <joint name="wrist" axis="0 1 0" range="-90 90"/>
            <geom name="hand" fromto="0 0 0 0.14 0 0" size="0.025" contype="1"
                  conaffinity="1"/>
            <site name="hand"/>
            <site name="tip" pos="0.14 0 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="yaw"/>
    <motor joint="shoulder"/>
    <motor joint="elbow"/>
    <motor joint="wrist"/>
  </actuator>
</mujoco>
"""


def engine() -> Any:
    """Return the mujoco module, or raise an error that says how to install it."""
    return import_mujoco("prism_motor.studies.physics", "analysis")


def load_arm() -> Model:
    """Compile the arm."""
    return engine().MjModel.from_xml_string(ARM_XML)


def signal_names() -> tuple[str, ...]:
    """Name the first-order signals in the order of the network's input: q, dq, tau."""
    numbers = range(1, len(JOINTS) + 1)
    return tuple(f"{signal}_{i}" for signal in ("q", "dq", "tau") for i in numbers)


def trace_landmarks(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the landmark positions of every pose: (poses, joints) -> (poses, landmarks, 3)."""
    mujoco = engine()
    data = mujoco.MjData(model)
    points = np.empty((len(q), len(LANDMARKS), 3))
    for i, pose in enumerate(q):
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        points[i] = [data.site(name).xpos for name in LANDMARKS]
    return points


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
class PhysicsTarget:
    """One quantity to learn."""

    name: str
    """Key in results.json."""
    label: str
    """Name for readers."""
    formula: str
    """Its definition in one line."""
    compute: Callable[[Model, Data], float | np.ndarray]
    """The definition."""
    size: int = 1
    """Number of values."""


TARGETS: tuple[PhysicsTarget, ...] = (
    PhysicsTarget("joint_power", "Joint power (net)", "Σᵢ τᵢ q̇ᵢ", joint_power),
    PhysicsTarget("absolute_power", "Joint power (absolute)", "Σᵢ |τᵢ q̇ᵢ|", absolute_joint_power),
    PhysicsTarget("kinetic_energy", "Kinetic energy", "½ q̇ᵀ M(q) q̇", kinetic_energy),
    PhysicsTarget("coriolis", "Coriolis torques", "C(q, q̇) q̇", coriolis_torque, len(JOINTS)),
    PhysicsTarget("contact_power", "Contact power", "F · ‖v_tip‖", contact_power),
)
"""All targets, in the order of the columns that :func:`measure` returns."""


def target_columns() -> dict[str, slice]:
    """Map each target's name to its columns."""
    stops = np.cumsum([target.size for target in TARGETS])
    return {
        target.name: slice(int(stop) - target.size, int(stop))
        for target, stop in zip(TARGETS, stops, strict=True)
    }


def measure(
    model: Model,
    q: np.ndarray,
    dq: np.ndarray,
    tau: np.ndarray,
    targets: Sequence[PhysicsTarget] = TARGETS,
) -> np.ndarray:
    """Compute targets at every state: three (n, joints) arrays -> (n, columns)."""
    mujoco = engine()
    data = mujoco.MjData(model)
    rows = np.empty((len(q), sum(target.size for target in targets)))
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[i], dq[i], tau[i]
        data.qacc_warmstart[:] = 0.0  # else contact forces would depend on the previous state
        mujoco.mj_forward(model, data)
        rows[i] = np.concatenate([np.atleast_1d(target.compute(model, data)) for target in targets])
    return rows
