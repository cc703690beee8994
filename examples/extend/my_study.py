"""Your own study: how often each joint of a walking policy is at its torque limit."""

from dataclasses import dataclass
from typing import Any

from prism_motor.analysis import Finding, ResultTable, Study, record, register_study
from prism_motor.sim import make_robot


@dataclass(frozen=True)
class LimitConfig:
    """The fields are the flags of the command."""

    seconds: float = 4.0
    """How long eight robots walk."""


def run(subjects: Any, config: LimitConfig, report: Any) -> Finding:
    """Return the share of control steps at which every joint has no torque left."""
    rows: list[list[str]] = []
    for subject in subjects:
        task = subject.policy.config.task
        scale = task.observations.joint_velocity_scale
        steps = round(config.seconds / task.simulation.control_dt)
        walk = record(subject.policy, task, seed=1, envs=8, steps=steps)
        for joint in make_robot(task.robot).joints:
            angle = walk.observations[f"q_{joint.name}[t]"] + joint.default
            velocity = walk.observations[f"dq_{joint.name}[t]"] / scale
            error = walk.targets[f"target_{joint.name}"] - angle
            torque = joint.stiffness * error - joint.damping * velocity
            share = (abs(torque) >= joint.torque_limit).mean()
            rows.append([subject.arm, str(subject.seed), joint.name, f"{100 * share:.1f}"])
        report()  # progress: one piece of work is done
    table = ResultTable(["arm", "training seed", "joint", "at the limit, %"], rows)
    return Finding("Joints at their torque limit", "Share of control steps.", {"": table})


HELP = "Count how often each joint is at its torque limit."
register_study(Study("torque-limits", "locomotion", HELP, LimitConfig, run))
