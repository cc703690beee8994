"""A study of your own: how often each joint of a walking policy is at its torque limit."""

from dataclasses import dataclass

from prism_motor.analysis import (
    Finding,
    Report,
    ResultTable,
    Study,
    Subject,
    record,
    register_study,
)
from prism_motor.sim.robots import make_robot


@dataclass(frozen=True)
class LimitConfig:
    """The fields are the flags of the command."""

    seconds: float = 4.0
    """How long each robot walks."""
    envs: int = 8
    """Robots."""


def run(subjects: list[Subject], config: LimitConfig, report: Report) -> Finding:
    """Return the share of control steps at which every joint has no torque left."""
    rows: list[list[str]] = []
    for one in subjects:
        task = one.policy.config.task
        scale = task.observations.joint_velocity_scale
        steps = round(config.seconds / task.simulation.control_dt)
        walk = record(one.policy, task, seed=1, envs=config.envs, steps=steps)
        for joint in make_robot(task.robot).joints:
            angle = walk.observations[f"q_{joint.name}[t]"] + joint.default
            velocity = walk.observations[f"dq_{joint.name}[t]"] / scale
            error = walk.targets[f"target_{joint.name}"] - angle
            torque = joint.stiffness * error - joint.damping * velocity
            share = (abs(torque) >= joint.torque_limit).mean()
            rows.append([one.arm, str(one.seed), joint.name, f"{100 * share:.1f}"])
        report()
    table = ResultTable(["arm", "training seed", "joint", "at the limit, %"], rows)
    caption = f"Share of control steps of {config.envs} robots, {config.seconds:g} s each."
    return Finding("Joints at their torque limit", caption, {"": table})


HELP = "Count how often each joint is at its torque limit."
register_study(Study("torque-limits", "locomotion", HELP, LimitConfig, run))
