"""What the contract of an exported policy says about its robot: drives, rates, safety limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prism_motor.sim.scene import build_model

if TYPE_CHECKING:
    from prism_motor.sim.robots import Robot

POSITION_TOLERANCE = 0.2
"""How far a joint may be measured beyond its range, rad; simulated stops give way by up to 0.13."""
ANGULAR_VELOCITY = 35.0
"""Largest angular velocity of a base, rad/s: what gyroscopes of 2000 degrees/s can tell."""
LATE_STEPS = 5
"""Control steps that may be missed before the robot holds."""


def describe_joints(robot: Robot, timestep: float) -> list[dict[str, Any]]:
    """Return every joint with its range, limits and drive, in the order of actions."""
    model = build_model(robot, timestep=timestep)
    joints = []
    for joint in robot.joints:
        hinge = model.joint(joint.name)
        joints.append(
            {
                "name": joint.name,
                "default": joint.default,
                "range": [float(end) for end in hinge.range] if hinge.limited[0] else None,
                "velocity_limit": joint.velocity,
                "torque_limit": joint.torque_limit,
                "stiffness": joint.stiffness,
                "damping": joint.damping,
            }
        )
    return joints


def describe_control(timestep: float, substeps: int) -> dict[str, Any]:
    """Return how targets are held and physics is stepped."""
    return {
        "meaning": "torque = clip(stiffness * (target - q) - damping * dq) at every physics step; "
        "a target holds for one control step of dt seconds; with zero_warm_start, MuJoCo's "
        "qacc_warmstart is zero at the beginning of every control step",
        "rate": 1 / (timestep * substeps),
        "dt": timestep * substeps,
        "timestep": timestep,
        "substeps": substeps,
        # As mujoco.rollout does in training. Carrying the warm start over simulates just as well,
        # but the solver stops elsewhere and actions differ in the third digit.
        "zero_warm_start": True,
    }


def describe_safety(dt: float, reach: str = "torque_limit / stiffness") -> dict[str, Any]:
    """Return when the runner stops, for control steps of some seconds.

    Args:
        dt: Seconds per control step.
        reach: How far beyond its range a joint's target may be, in words.
    """
    return {
        "meaning": "the runner stops and holds the joints where they are, within their ranges, "
        "when anything is not finite, a joint is beyond its range by more than "
        "position_tolerance (rad) or faster than its velocity_limit (rad/s), the base turns "
        "faster than angular_velocity (rad/s), or two control steps are more than deadline (s) "
        f"apart; targets are clamped to range plus or minus {reach}, beyond "
        "which they ask for no more torque; null for a limit that is not known",
        "position_tolerance": POSITION_TOLERANCE,
        "angular_velocity": ANGULAR_VELOCITY,
        "deadline": LATE_STEPS * dt,
    }
