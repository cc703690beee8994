"""The simulated robot: a four-joint torque-driven arm over a soft table."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from prism_motor._extras import missing_extra

Model: TypeAlias = Any
"""``mujoco.MjModel``; type checkers cannot look into mujoco."""
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
    """Return the mujoco module, or say how to install it."""
    try:
        import mujoco
    except ImportError as error:
        raise missing_extra("prism_motor.studies.physics", "analysis", error) from error
    return mujoco


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
