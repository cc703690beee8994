"""The contract: everything needed to run a policy on a robot, as plain data.

It is written at export and read by :mod:`prism_motor.export.runner`, which knows nothing else about
the training code and says what every field may be. Numbers have full precision.
"""

from __future__ import annotations

from typing import Any

import torch

from prism_motor.export.runner import SCHEMA
from prism_motor.locomotion.gait import Gait
from prism_motor.locomotion.observations import frame_of
from prism_motor.locomotion.task import CommandConfig, GaitConfig, LeggedTaskConfig, TaskConfig
from prism_motor.sim.interface import describe_control, describe_joints, describe_safety
from prism_motor.sim.robots import Robot, make_robot


def make_contract(task: LeggedTaskConfig, provenance: dict[str, Any]) -> dict[str, Any]:
    """Describe a task's interface to its policy, without the binding to the exported files.

    Args:
        task: The task that the policy was trained on.
        provenance: Where the policy came from, including ``policy_sha256``.
    """
    robot, simulation = make_robot(task.robot), task.simulation
    return {
        "schema": SCHEMA,
        "robot": robot.name,
        "base": robot.base,
        "joints": describe_joints(robot, simulation.timestep),
        "control": describe_control(simulation.timestep, simulation.substeps),
        "safety": describe_safety(simulation.control_dt),
        "action": {
            "meaning": "target = start + scale * clip(policy output); start is the default pose, "
            "or the reference motion at the phase of the observation that the policy saw",
            "scale": task.actions.scale,
            "clip": task.actions.clip,
            "added_to": "reference" if task.actions.on_reference else "default_pose",
        },
        "observation": _observation(task),
        "gait": _gait(task, robot),
        "command": _command(task),
        "start": {
            "meaning": "base upright at this height, at rest; joints at the default pose plus "
            "uniform noise up to joint_noise",
            "height": task.start_height,
            "joint_noise": task.start_joint_noise,
        },
        "termination": {
            "meaning": "fallen when the contact force on the base, |roll| or |pitch| is above its "
            "limit or the base below height; null for no limit",
            "duration": task.terminations.duration,
            "base_force": task.terminations.base_force,
            "base_force_sensor": f"{robot.base}_force",
            "roll": task.terminations.roll,
            "pitch": task.terminations.pitch,
            "height": task.terminations.height,
        },
        "provenance": provenance,
    }


def _observation(task: LeggedTaskConfig) -> dict[str, Any]:
    view, frame = task.observations, frame_of(task)
    return {
        "meaning": "blocks in this order make a frame, each times its scale; the policy sees the "
        "last frames, oldest first, zero before the start, every entry clipped, as float32; any "
        "normalisation is inside the policy",
        "frames": view.actor_frames,
        "frame_size": frame.actor_size,
        "size": view.actor_frames * frame.actor_size,
        "clip": view.clip,
        "blocks": [
            {
                "source": block.name,
                "size": frame.size(block),
                "scale": block.setting("scale", view),
                "meaning": block.meaning or ", ".join(block.entry_names(frame.robot)),
            }
            for block in frame.actor_blocks
        ],
    }


def _gait(task: LeggedTaskConfig, robot: Robot) -> dict[str, Any]:
    # The reference motion of a task without a gait stays in the default pose.
    still = GaitConfig(offsets=(0.0,) * len(robot.feet), swing=())
    config = task.gait if isinstance(task, TaskConfig) else still
    pose = torch.from_numpy(robot.default_pose)
    gait = Gait(config, pose, task.simulation.control_dt)
    meaning = (
        "phase = step * control.dt / cycle, step 0 at the first observation; "
        "wave = sin(2 pi (phase + offset)) per foot; a foot swings while wave < 0 and "
        "|wave| >= double_support; reference = start + sum over swinging feet of -wave * gains"
    )
    strides = {}
    if config.stride:  # contracts of policies without strides are as they always were
        meaning += (
            " + sum over all feet and parts of the command of reach * part * strides; "
            "reach = cycle / 4 * (4 |(phase + offset) mod 1 - 0.5| - 1)"
        )
        strides = {"strides": gait.strides.tolist()}
    return {
        "meaning": meaning,
        "cycle": config.cycle,
        "offsets": list(config.offsets),
        "double_support": config.double_support,
        "feet": list(robot.feet),
        "start": gait.start.tolist(),
        "gains": gait.gains.tolist(),
        **strides,
    }


def _command(task: LeggedTaskConfig) -> dict[str, Any]:
    # A task without commands is described as one whose commands are all zero.
    none = CommandConfig(forward=(0.0, 0.0), sideways=(0.0, 0.0), heading=(0.0, 0.0), yaw_limit=0.0)
    commands = task.commands if isinstance(task, TaskConfig) else none
    if commands.yaw == "heading":
        turn = {"heading": list(commands.heading)}
        third = (
            "a heading, rad; every control step yaw rate = clip(heading_gain * wrap(heading - "
            "yaw), yaw_limit)"
        )
    else:
        turn, third = {"yaw_rate": list(commands.yaw_rate)}, "a yaw rate, rad/s"
    return {
        "meaning": f"forward and sideways velocity in the base frame, m/s, and {third}; in "
        "training planar commands up to deadband were zero and all were drawn anew from ranges "
        "after resample_after seconds; the runner clamps commands to ranges, unless planar zero",
        "ranges": {
            "forward": list(commands.forward),
            "sideways": list(commands.sideways),
            **turn,
        },
        "heading_gain": commands.heading_gain,
        "yaw_limit": commands.yaw_limit,
        "deadband": commands.deadband,
        "resample_after": commands.resample_after,
    }
