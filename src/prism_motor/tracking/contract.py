"""The contract of an exported tracking policy: everything needed to run it, as plain data.

It is written at export and read by :mod:`prism_motor.export.runner`, which knows nothing else about
the training code and says what every field may be. Numbers have full precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prism_motor.export.runner import SCHEMA, TRACKING
from prism_motor.sim.interface import describe_control, describe_joints, describe_safety
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.metrics import Upright
from prism_motor.tracking.observations import CHANNELS, HISTORY_KEYS, LAST_ACTION, Layout
from prism_motor.tracking.references import EFFORT_SHARE

if TYPE_CHECKING:
    from prism_motor.tracking.motions.clip import Clip
    from prism_motor.tracking.task import TrackingTask

_SOURCES = {
    "joint_position": (
        "joint_position_from_default",
        "joint angles minus the default pose, rad, in the order of joints",
    ),
    "joint_velocity": ("joint_velocity", "joint velocities, rad/s, in the order of joints"),
    "gravity": ("gravity", "direction of gravity in the base's axes, of length one"),
    "angular_velocity": (
        "base_angular_velocity",
        "angular velocity of the base in its own axes, rad/s",
    ),
    LAST_ACTION: (
        "last_action",
        "the action applied last, between -1 and 1, in the order of joints; zero at the start",
    ),
    "bodies": (
        "bodies",
        "height of the base; positions of the bodies relative to it, without its own; the images "
        "of each body's x and z axes; linear and angular velocities of the frames' origins; all "
        "in the heading frame: upright, at the base, turned with the base's x axis; m and s",
    ),
}
"""What each of our blocks is called in a contract, and what it is."""


def make_contract(
    task: TrackingTask,
    clips: Sequence[tuple[Clip, int]],
    latent: int,
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Describe a task's interface to its policy, without the binding to the exported files.

    Args:
        task: The task that the policy was trained on.
        clips: The exported clips, and how many frames each has at the control rate.
        latent: Entries of a latent.
        provenance: Where the policy came from, including ``policy_sha256``.
    """
    robot, upright = make_robot(task.robot), Upright()
    return {
        "schema": SCHEMA,
        "kind": TRACKING,
        "robot": robot.name,
        "base": robot.base,
        "joints": describe_joints(robot, task.timestep),
        "control": describe_control(task.timestep, task.substeps),
        "safety": describe_safety(
            task.control_dt, "action.reach times torque_limit / stiffness (which no action reaches)"
        ),
        "action": {
            "meaning": "target = default pose + units * clip(policy output), rad; targets are "
            "clamped to the joint's range plus or minus reach * torque_limit / stiffness",
            "units": list(task.units),
            "clip": 1.0,
            "reach": EFFORT_SHARE,
        },
        "observation": _observation(task.layout),
        "latent": {
            "meaning": "what the policy shall do, a point on the sphere of radius length; to track "
            "a clip, row t of its latents in clips.npz at control step t",
            "size": latent,
            "length": math.sqrt(latent),
        },
        "goal": _goal(task.layout),
        "clips": [
            {
                "name": clip.name,
                "frames": frames,
                "source": clip.source or None,
                "licence": clip.licence or None,
                "attribution": clip.attribution or None,
            }
            for clip, frames in clips
        ],
        "upright": {
            "meaning": "a robot is upright while its base is at least at height (m) and its z axis "
            "is at most tilt (degrees) off the vertical",
            "height": upright.height,
            "tilt": upright.tilt,
        },
        "provenance": provenance,
    }


def _observation(layout: Layout) -> dict[str, Any]:
    """Describe what the actor sees: state, last action and history."""
    from prism_motor.tracking.learning.networks import ACTOR_STREAMS

    now = [channel.name for channel in CHANNELS if channel.stream == "state"]
    past = [(key, age) for key in HISTORY_KEYS for age in range(1, layout.steps + 1)]
    placed = [(name, 0) for name in (*now, LAST_ACTION)] + past
    return {
        "meaning": "blocks side by side, each times its scale, as float32; names has every entry "
        "by its index; age counts control steps back: 0 is now, and a last_action of age k is the "
        "one that was the last then; zero before the start; normalisation is inside the policy",
        "size": layout.width(ACTOR_STREAMS),
        "names": [name for stream in ACTOR_STREAMS for name in layout.names[stream]],
        "blocks": _place(layout, placed),
    }


def _goal(layout: Layout) -> dict[str, Any]:
    """Describe what the backward map sees: state and privileged state."""
    from prism_motor.tracking.learning.networks import GOAL_STREAMS

    blocks = _place(layout, [(channel.name, 0) for channel in CHANNELS])
    return {
        "meaning": "what backward.onnx maps to a latent: a frame of a motion, blocks side by side, "
        "each times its scale, as float32; normalisation is inside. The latent of frame t + 1 "
        "prompts the policy at frame t; with all velocities zero it holds the pose",
        "size": layout.width(GOAL_STREAMS),
        "names": [name for stream in GOAL_STREAMS for name in layout.names[stream]],
        "blocks": [{key: block[key] for key in block if key != "age"} for block in blocks],
    }


def _place(layout: Layout, blocks: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return blocks with their places, one behind the other."""
    scales = {channel.name: channel.scale for channel in CHANNELS}
    placed, first = [], 0
    for name, age in blocks:
        source, meaning = _SOURCES[name]
        size = len(layout.channel_names(name))
        placed.append(
            {
                "source": source,
                "age": age,
                "first": first,
                "size": size,
                "scale": scales.get(name, 1.0),
                "meaning": meaning,
            }
        )
        first += size
    return placed
