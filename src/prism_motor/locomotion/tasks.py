"""Tasks by name.

``paper`` (literal), ``g1`` (corrected) and ``laptop`` (for two cores) are tasks of the G1;
``quadruped`` is the laptop task on four legs. :func:`velocity_task` makes one for another robot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prism_motor._registry import Registry
from prism_motor.locomotion.task import (
    ActionConfig,
    CommandConfig,
    GaitConfig,
    LeggedTaskConfig,
    ObservationConfig,
    RandomisationConfig,
    RewardConfig,
    SimulationConfig,
    TaskConfig,
    TerminationConfig,
)
from prism_motor.sim.robots import make_robot

HUMANOID_GYM_WEIGHTS: dict[str, float] = {
    "tracking_lin_vel": 1.2,
    "tracking_ang_vel": 1.1,
    "track_vel_hard": 0.5,
    "low_speed": 0.2,
    "orientation": 1.0,
    "base_height": 0.2,
    "vel_mismatch_exp": 0.5,
    "base_acc": 0.2,
    "joint_pos": 1.6,
    "default_joint_pos": 0.5,
    "feet_air_time": 1.0,
    "feet_clearance": 1.0,
    "feet_contact_number": 1.2,
    "feet_distance": 0.2,
    "knee_distance": 0.2,
    "collision": -1.0,
    "feet_contact_forces": -0.01,
    "foot_slip": -0.05,
    "action_smoothness": -0.002,
    "torques": -1e-5,
    "dof_vel": -5e-4,
    "dof_acc": -1e-7,
}
"""The 22 terms of Humanoid-Gym."""

# Swing moves hip pitch, knee and ankle pitch: thigh forward, knee bent, toes up.
_G1_SWING = tuple(
    (6 * foot + joint, foot, factor)
    for foot in (0, 1)
    for joint, factor in ((0, -1.0), (3, 2.0), (4, -1.0))
)
# Humanoid-Gym's joint numbers and signs, made for XBot; on the G1 they start at hip yaw.
_XBOT_SWING = tuple(
    (6 * foot + joint, foot, sign * factor)
    for foot, sign in ((0, -1.0), (1, 1.0))
    for joint, factor in ((2, 1.0), (3, 2.0), (4, 1.0))
)

# PhysX averages the feet's 0.1..2.0 and the ground's 0.6.
_FULL_RANDOMISATION = RandomisationConfig(
    friction=(0.35, 1.3),
    base_mass=(-3.0, 3.0),
    push_every=4.0,
    action_delay=0.5,
    action_noise=0.02,
)

_G1 = TaskConfig(
    gait=GaitConfig(swing=_G1_SWING),
    rewards=RewardConfig(weights=HUMANOID_GYM_WEIGHTS),
    randomisation=_FULL_RANDOMISATION,
)

# Hip pitch and knee shorten the leg, so that the foot lifts straight up under the hip.
_QUADRUPED_SWING = tuple(
    (3 * foot + joint, foot, factor) for foot in range(4) for joint, factor in ((1, 1.0), (2, -2.0))
)

# Where a foot must be for the base to move as commanded, in rad per m (hip to ankle: 0.63 m in
# pitch, 0.616 m in roll) and per rad of turning; ankles keep the soles level.
_G1_STRIDE = tuple(
    (6 * foot + joint, foot, part, factor)
    for foot in (0, 1)
    for joint, part, factor in (
        (0, 0, -1.587),
        (4, 0, 1.587),
        (1, 1, 1.623),
        (5, 1, -1.623),
        (2, 2, 1.0),
    )
)

# With Humanoid-Gym's weights and a reference motion that marches in place, staying on it pays more
# than following the command: the best policy walks at 60 % of the commanded speed.
_TRACKING_WEIGHTS = HUMANOID_GYM_WEIGHTS | {"tracking_lin_vel": 2.4, "track_vel_hard": 1.0}

# low_speed pays most at 0.85 of the commanded speed.
_LAPTOP_WEIGHTS = {
    name: weight for name, weight in _TRACKING_WEIGHTS.items() if name != "low_speed"
} | {"joint_pos": 1.0}

_LAPTOP = replace(
    _G1,
    # Shorter steps: the base sways less from side to side, and that counts as an error.
    gait=replace(_G1.gait, cycle=0.5, stride=_G1_STRIDE),
    rewards=replace(
        _G1.rewards,
        weights=_LAPTOP_WEIGHTS,
        parameters={
            "tracking_lin_vel": {"sharpness": 20.0},
            "tracking_ang_vel": {"sharpness": 10.0},
            "default_joint_pos": {"slack": 0.25},  # hips must roll and turn to go sideways and turn
        },
        feet_distance=(0.16, 0.5),
    ),
    simulation=SimulationConfig(timestep=0.005, substeps=4),
    actions=ActionConfig(on_reference=True),
    observations=ObservationConfig(actor_frames=5),
)

_OWN: dict[str, TaskConfig] = {
    "paper": replace(
        _G1,
        commands=CommandConfig(yaw="rate"),  # Table 6; Humanoid-Gym itself follows a heading
        gait=GaitConfig(swing=_XBOT_SWING, amplitude=0.17, from_default_pose=False),
        rewards=RewardConfig(
            weights=HUMANOID_GYM_WEIGHTS,
            base_height=0.89,
            foot_offset=0.05,
            contact_force=700.0,
            abduction_joints=((0, 1), (6, 7)),
        ),
        randomisation=replace(_FULL_RANDOMISATION, base_mass=(-5.0, 5.0)),
        terminations=TerminationConfig(roll=None, pitch=None, height=None),
    ),
    "g1": _G1,
    "laptop": _LAPTOP,
    "quadruped": replace(
        _LAPTOP,
        robot="quadruped",
        start_height=0.33,
        # A trot: diagonal legs swing together, half a cycle apart from the other two.
        gait=GaitConfig(
            cycle=0.5, offsets=(0.0, 0.5, 0.5, 0.0), amplitude=0.17, swing=_QUADRUPED_SWING
        ),
        observations=replace(_LAPTOP.observations, mass_scale=6.0),
        rewards=RewardConfig(
            weights=HUMANOID_GYM_WEIGHTS,
            base_height=0.30,
            foot_offset=0.022,
            foot_height=0.05,
            contact_force=120.0,  # body weight; a trotting foot carries half of it
            feet_distance=(0.18, 0.36),
            knee_distance=(0.18, 0.34),
            abduction_joints=((0,), (3,), (6,), (9,)),
        ),
        randomisation=replace(_FULL_RANDOMISATION, base_mass=(-1.0, 1.0)),
        terminations=TerminationConfig(height=0.15),
    ),
}

TASKS: Registry[Any] = Registry("task", _OWN)
"""Tasks by name: configs of any kind; the built-in ones are velocity tasks."""


def register_task(name: str, task: LeggedTaskConfig) -> None:
    """Register your own task under a name.

    Args:
        name: The name that configs and commands use.
        task: The task.
    """
    TASKS.register(name, task)


def robot_settings(robot: str, weights: dict[str, float]) -> dict[str, Any]:
    """Return task fields for your own robot, with heights, forces and payload that fit it.

    Args:
        robot: Name of the robot.
        weights: Weights of the reward terms.
    """
    from prism_motor.sim.scene import build_model

    built = make_robot(robot)
    model = build_model(built, timestep=_LAPTOP.simulation.timestep)
    weight = 9.81 * float(model.body_mass.sum())
    base_mass = float(model.body(built.base).mass[0])
    height = built.stand_height
    payload = 0.15 * base_mass
    return {
        "robot": robot,
        "start_height": height + 0.01,
        "simulation": _LAPTOP.simulation,
        "observations": replace(_LAPTOP.observations, mass_scale=base_mass),
        "rewards": RewardConfig(
            weights=weights,
            base_height=height,
            foot_offset=built.foot_offset,
            foot_height=0.08 * height,
            contact_force=1.35 * weight,
            feet_distance=(0.25 * height, 0.65 * height),
            knee_distance=(0.25 * height, 0.65 * height),
            abduction_joints=(),
        ),
        "randomisation": replace(_FULL_RANDOMISATION, base_mass=(-payload, payload)),
        "terminations": TerminationConfig(height=0.6 * height),
    }


def velocity_task(robot: str, **changes: Any) -> TaskConfig:
    """Return a velocity task for your own robot, with sizes that follow from the robot.

    Feet take turns. There is no reference motion, and reward terms that do not fit the robot are
    left out.

    Args:
        robot: Name of the robot.
        **changes: Fields of :class:`TaskConfig` to change.
    """
    built = make_robot(robot)
    feet = len(built.feet)
    left_out = {"joint_pos"}  # without a reference motion it rewards standing still
    if feet % 2:
        left_out.add("feet_distance")
    if not built.knees or len(built.knees) % 2:
        left_out.add("knee_distance")
    weights = {name: value for name, value in _TRACKING_WEIGHTS.items() if name not in left_out}
    # Four legs trot: diagonal legs swing together.
    offsets = (0.0, 0.5, 0.5, 0.0) if feet == 4 else tuple(i / feet for i in range(feet))
    settings = robot_settings(robot, weights)
    settings["gait"] = GaitConfig(offsets=offsets)
    return TaskConfig(**(settings | changes))
