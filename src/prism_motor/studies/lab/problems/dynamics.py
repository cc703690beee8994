"""Inverse dynamics: the joint torques of a wanted motion, for the arm, the quadruped and the G1.

Legged robots float without contact. What their joint torques depend on is seen from the base:
gravity, its angular velocity, and its accelerations.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from prism_motor.sim import build_model, make_robot
from prism_motor.sim.scene import import_mujoco
from prism_motor.studies.fitting import Split
from prism_motor.studies.lab.problems.problem import Problem, independent
from prism_motor.studies.physics.robot import load_arm

_SPEED, _ACCELERATION = 3.0, 30.0
"""Standard deviations of joint velocities (rad/s) and accelerations (rad/s^2)."""
_TILT, _TURN, _BASE_ACCELERATION, _BASE_TURN = 0.4, 1.0, 3.0, 10.0
"""Those of the base: orientation (rad), angular velocity, acceleration, angular acceleration."""


def inverse_dynamics(model: Any, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Return the generalised forces M(q) ddq + bias(q, dq) of every row."""
    mujoco = import_mujoco()
    data, forces = mujoco.MjData(model), np.empty((len(q), model.nv))
    for row in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[row], dq[row], ddq[row]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 1, forces[row])
    return forces + model.dof_armature * ddq  # which the recursion leaves out


def _draw_arm(generator: np.random.Generator, rows: int, reach: float) -> Split:
    model = _arm()
    low, high = model.jnt_range.T
    q = generator.uniform(low, high, (rows, model.nq))
    dq, ddq = _motion(generator, rows, model.nv, reach)
    return Split(np.concatenate([q, dq, ddq], 1), inverse_dynamics(model, q, dq, ddq))


def _draw_legged(robot: str, generator: np.random.Generator, rows: int, reach: float) -> Split:
    model, pose = _legged(robot)
    low, high = model.jnt_range[1:].T  # the first is the free joint, without a range
    joints = np.clip(pose + 0.5 * generator.normal(size=(rows, len(pose))), low, high)
    dq, ddq = _motion(generator, rows, len(pose), reach)
    tilt = Rotation.from_rotvec(_TILT * generator.normal(size=(rows, 3)))
    turn = reach * _TURN * generator.normal(size=(rows, 3))
    push = reach * _BASE_ACCELERATION * generator.normal(size=(rows, 3))
    spin = reach * _BASE_TURN * generator.normal(size=(rows, 3))
    # A free joint has position and acceleration in the world, rotation in the base's frame.
    quaternion = tilt.as_quat()[:, [3, 0, 1, 2]]
    still = np.zeros((rows, 3))
    forces = inverse_dynamics(
        model,
        np.concatenate([still, quaternion, joints], 1),
        np.concatenate([still, turn, dq], 1),
        np.concatenate([tilt.apply(push), spin, ddq], 1),
    )
    down = tilt.inv().apply([0.0, 0.0, -1.0])
    inputs = np.concatenate([joints, dq, ddq, down, turn, push, spin], 1)
    return Split(inputs, forces[:, 6:])


def _motion(
    generator: np.random.Generator, rows: int, joints: int, reach: float
) -> tuple[np.ndarray, np.ndarray]:
    drawn = reach * generator.normal(size=(2, rows, joints))
    return _SPEED * drawn[0], _ACCELERATION * drawn[1]


@cache
def _arm() -> Any:
    return load_arm()


@cache
def _legged(robot: str) -> tuple[Any, np.ndarray]:
    made = make_robot(robot)
    return build_model(made, timestep=0.002), made.default_pose


def _legged_problem(robot: str, title: str) -> Problem:
    return Problem(
        f"{robot}-inverse",
        f"{title}: inverse dynamics",
        "τ = M(q) q̈ + C(q, q̇) q̇ + g(q)",
        "angles, velocities and accelerations of 12 joints; gravity and motion of the base",
        (48, 12),
        3,
        independent(
            lambda generator, rows, reach: _draw_legged(robot, generator, rows, reach),
        ),
    )


DYNAMICS_PROBLEMS: tuple[Problem, ...] = (
    Problem(
        "arm-inverse",
        "Arm: inverse dynamics",
        "τ = M(q) q̈ + C(q, q̇) q̇ + g(q)",
        "angles, velocities and accelerations of four joints",
        (12, 4),
        3,
        independent(_draw_arm),
    ),
    _legged_problem("quadruped", "Quadruped"),
    _legged_problem("g1", "G1"),
)
"""One problem per robot."""
