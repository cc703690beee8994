"""Reading a robot from any MJCF file: what the model has, what it lacks, what it must not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._checks import InputError, check_choice
from prism_motor.sim.robots.robot import JointSpec, PerJoint, Robot
from prism_motor.sim.scene import (
    build_model,
    colliding_geoms,
    compile_spec,
    import_mujoco,
    make_robot_spec,
)


def read_robot(
    path: Path,
    *,
    name: str,
    feet: tuple[str, ...],
    base: str | None,
    knees: tuple[str, ...],
    joints: Sequence[str] | None,
    default_pose: Mapping[str, float] | str | None,
    stiffness: PerJoint | None,
    damping: PerJoint | None,
    effort: PerJoint | None,
    velocity: PerJoint | None,
    mirror: Mapping[str, str] | None,
) -> Robot:
    """Read and check a model; see :meth:`prism_motor.sim.robots.Robot.from_mjcf`."""
    # Find the base, the joints and the feet in the model, and check them.
    model = _compile(path)
    base = _find_base(model, base, path)
    hinges = _find_hinges(model, base, path)
    driven = _choose(hinges, joints, path)
    _check_bodies(model, "foot", feet, path)
    _check_feet(model, feet, path)
    _check_bodies(model, "knee", knees, path)
    if knees and len(knees) != len(feet):
        raise InputError(f"{path}: give one knee per foot; got {len(knees)} and {len(feet)}.")
    # Take pose, gains and mirroring from the arguments, else from the model.
    pose = _read_pose(model, hinges, default_pose, path)
    gains = _Gains(model, driven, path)
    kp = gains.resolve("stiffness", stiffness)
    kd = gains.resolve("damping", damping)
    limit = gains.resolve("effort", effort)
    speed = {} if velocity is None else gains.resolve("velocity", velocity)
    order, signs = _read_mirror(driven, mirror, feet, path)
    start = {joint: float(model.qpos0[model.joint(joint).qposadr[0]]) for joint in hinges}
    robot = Robot(
        name=name,
        joints=tuple(JointSpec(j, pose[j], kp[j], kd[j], limit[j], speed.get(j)) for j in driven),
        base=base,
        feet=feet,
        foot_offset=0.0,
        stand_height=0.0,
        knees=knees,
        mirror=order,
        mirror_sign=signs,
        file=str(path.resolve()),
        locked=tuple((j, pose[j] - start[j]) for j in hinges if j not in driven),
    )
    # Heights can only be measured on the complete robot.
    stand_height, foot_offset = _measure(robot)
    robot = replace(robot, stand_height=stand_height, foot_offset=foot_offset)
    build_model(robot, timestep=0.001)  # the scene's names may clash with the model's
    return robot


def _compile(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"There is no MJCF file {path}. Give the path to an .xml file.")
    try:
        return import_mujoco().MjSpec.from_file(str(path)).compile()
    except ValueError as error:
        raise InputError(f"MuJoCo cannot read {path}: {error}") from error


def _find_base(model: Any, base: str | None, path: Path) -> str:
    """Return the body that carries the model's only free joint."""
    free = np.flatnonzero(model.jnt_type == import_mujoco().mjtJoint.mjJNT_FREE.value)
    carriers = [model.body(model.jnt_bodyid[joint]).name for joint in free]
    if len(carriers) != 1:
        found = f"{len(carriers)} ({', '.join(carriers)})" if carriers else "none"
        raise InputError(
            f"{path}: a walking robot needs exactly one free joint, and this model has {found}. "
            "Put <freejoint/> into the trunk's body, instead of slides and hinges to the world, "
            "and leave other loose bodies out."
        )
    if not carriers[0]:
        raise InputError(f"{path}: the body with the free joint has no name; give it one.")
    if base is not None and base != carriers[0]:
        raise InputError(
            f"{path}: the free joint is on the body {carriers[0]!r}, not on {base!r}. "
            "Leave base out, or move the free joint."
        )
    return carriers[0]


def _find_hinges(model: Any, base: str, path: Path) -> list[str]:
    """Return the names of all joints except the free one, in the model's order."""
    mujoco = import_mujoco()
    root = model.body(base).id
    kinds = {mujoco.mjtJoint.mjJNT_SLIDE.value: "slide", mujoco.mjtJoint.mjJNT_BALL.value: "ball"}
    names = []
    for joint in range(model.njnt):
        kind, body = int(model.jnt_type[joint]), model.body(model.jnt_bodyid[joint])
        if kind == mujoco.mjtJoint.mjJNT_FREE.value:
            continue
        name = model.joint(joint).name
        where = f"joint {name!r} of the body {body.name!r}"
        if not name:
            raise InputError(f"{path}: the body {body.name!r} has a joint without a name.")
        if kind in kinds:
            raise InputError(
                f"{path}: the {where} is a {kinds[kind]} joint; policies move only hinges. "
                "Replace it with hinges, or remove it from the model."
            )
        if model.body_rootid[body.id] != root:
            raise InputError(
                f"{path}: the {where} is not part of the robot, whose base is {base!r}. "
                "Remove that body from the model."
            )
        names.append(name)
    if not names:
        raise InputError(f"{path}: the model has no hinge joints, so there is nothing to move.")
    return names


def _choose(hinges: list[str], joints: Sequence[str] | None, path: Path) -> list[str]:
    """Return the driven joints, in the model's order whatever order they were given in."""
    if joints is None:
        return hinges
    if not joints:
        raise InputError(f"{path}: joints is empty; name at least one, or leave it out.")
    for joint in joints:
        check_choice(f"joint of {path}", joint, hinges)
    return [joint for joint in hinges if joint in joints]


def _check_bodies(model: Any, what: str, names: Sequence[str], path: Path) -> None:
    bodies = [model.body(i).name for i in range(1, model.nbody)]
    for name in names:
        check_choice(f"{what} body of {path}", name, [body for body in bodies if body])
    if len(set(names)) < len(names):
        raise InputError(f"{path}: a {what} is listed twice: {', '.join(names)}.")


def _check_feet(model: Any, feet: Sequence[str], path: Path) -> None:
    """Raise unless every foot can touch the ground."""
    if not feet:
        raise InputError(f"{path}: name at least one foot body with feet=(...).")
    for foot in feet:
        if not len(colliding_geoms(model, (foot,))):
            able = sorted({model.body(model.geom_bodyid[g]).name for g in colliding_geoms(model)})
            raise InputError(
                f"{path}: the foot {foot!r} has no geom that can touch the ground (contype and "
                f"conaffinity are 0, or there is none). Bodies with such geoms: "
                f"{', '.join(name for name in able if name != 'world') or 'none'}."
            )


def _read_pose(
    model: Any, hinges: list[str], given: Mapping[str, float] | str | None, path: Path
) -> dict[str, float]:
    """Return the default angle of every hinge, within its range."""
    qpos = model.qpos0
    if isinstance(given, str):
        keys = [model.key(i).name for i in range(model.nkey)]
        qpos = model.key_qpos[keys.index(check_choice(f"keyframe of {path}", given, keys))]
    pose = {joint: float(qpos[model.joint(joint).qposadr[0]]) for joint in hinges}
    if given is not None and not isinstance(given, str):
        for joint, angle in given.items():
            pose[check_choice(f"joint of {path}", joint, hinges)] = float(angle)
    for joint, angle in pose.items():
        low, high = model.joint(joint).range
        if model.joint(joint).limited[0] and not low - 1e-6 <= angle <= high + 1e-6:
            raise InputError(
                f"{path}: the default pose puts {joint!r} at {angle:.4g} rad, outside its range "
                f"{low:.4g} to {high:.4g}. Give default_pose={{{joint!r}: ...}}."
            )
    return pose


class _Gains:
    """Gains and torque limits: those of the model's actuators, unless they are given."""

    def __init__(self, model: Any, joints: list[str], path: Path) -> None:
        self.joints, self.path = joints, path
        self.found: dict[str, dict[str, float]] = {what: {} for what in _EXAMPLES}
        self.motors: set[str] = set()
        for i in range(model.nu):
            self._read(model, i)
        for name in joints:  # a joint's force limit also limits its motor
            joint = model.joint(name)
            if model.jnt_actfrclimited[joint.id]:
                limit = float(np.abs(model.jnt_actfrcrange[joint.id]).min())
                self.found["effort"][name] = min(limit, self.found["effort"].get(name, limit))

    def _read(self, model: Any, i: int) -> None:
        mujoco = import_mujoco()
        if model.actuator_trntype[i] != mujoco.mjtTrn.mjTRN_JOINT.value:
            raise InputError(
                f"{self.path}: the actuator {model.actuator(i).name!r} does not move a joint "
                "(it is on a tendon, site or body). Remove it from the model."
            )
        name = model.joint(model.actuator_trnid[i, 0]).name
        # All quantities are on the joint side: force and length scale with the gear.
        gear, gain = float(model.actuator_gear[i, 0]), float(model.actuator_gainprm[i, 0])
        bias = model.actuator_biasprm[i]
        servo = model.actuator_biastype[i] == mujoco.mjtBias.mjBIAS_AFFINE.value and bias[1] < 0
        if servo:
            self.found["stiffness"][name] = -float(bias[1]) * gear**2
            self.found["damping"][name] = -float(bias[2]) * gear**2
        else:
            self.motors.add(name)
        if model.actuator_forcelimited[i]:
            force = float(np.abs(model.actuator_forcerange[i]).min())
            self.found["effort"][name] = force * abs(gear)
        elif not servo and model.actuator_ctrllimited[i]:
            largest = float(np.abs(model.actuator_ctrlrange[i]).min())
            self.found["effort"][name] = largest * abs(gain * gear)

    def resolve(self, what: str, given: PerJoint | None) -> dict[str, float]:
        """Return a value per joint, or raise and say which joints have none."""
        if isinstance(given, Mapping):
            for joint in given:
                check_choice(f"joint of {self.path} in {what}", joint, self.joints)
            values = self.found[what] | {joint: float(value) for joint, value in given.items()}
        elif given is not None:
            values = dict.fromkeys(self.joints, float(given))
        else:
            values = self.found[what]
        missing = [joint for joint in self.joints if joint not in values]
        if missing:
            motors = [joint for joint in missing if joint in self.motors]
            why = "the model has none"
            if what in ("stiffness", "damping") and motors:
                why = f"{', '.join(motors)} {'has a motor' if len(motors) == 1 else 'have motors'}"
                why += ", but a policy sets joint angles that a position servo follows"
            raise InputError(
                f"{self.path}: no {what} for {', '.join(missing)}: {why}. Give {what}=... as one "
                f"number or by joint, e.g. {what}={{{missing[0]!r}: {_EXAMPLES[what]}}}."
            )
        for joint in self.joints:
            if not (values[joint] > 0 or (what == "damping" and values[joint] == 0)):
                raise InputError(
                    f"{self.path}: {what} of {joint} must be positive, got {values[joint]}."
                )
        return values


_EXAMPLES = {"stiffness": "40.0", "damping": "1.0", "effort": "30.0", "velocity": "20.0"}


def _read_mirror(
    joints: list[str], given: Mapping[str, str] | None, feet: Sequence[str], path: Path
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return what each joint becomes under mirroring, and its sign."""
    if given is None:
        return None, None
    if len(feet) > 1 and len(feet) % 2:
        raise InputError(
            f"{path}: a robot with {len(feet)} feet cannot be mirrored: they must come in "
            "left-right pairs. Leave mirror out."
        )
    partner: dict[str, tuple[str, int]] = {}
    for one, text in given.items():
        sign, other = (-1, text[1:]) if text.startswith("-") else (1, text)
        for first, second in ((one, other), (other, one)):
            check_choice(f"joint of {path} in mirror", first, joints)
            if partner.setdefault(first, (second, sign)) != (second, sign):
                raise InputError(f"{path}: mirror has two entries for {first!r}.")
    missing = [joint for joint in joints if joint not in partner]
    if missing:
        raise InputError(
            f"{path}: mirror has no entry for {', '.join(missing)}; a joint in the middle maps to "
            f"itself, {{{missing[0]!r}: {missing[0]!r}}}, or to '-{missing[0]}' for roll and yaw."
        )
    order = tuple(joints.index(partner[joint][0]) for joint in joints)
    return order, tuple(partner[joint][1] for joint in joints)


def _measure(robot: Robot) -> tuple[float, float]:
    """Return the heights of the base above ground (default pose) and of the feet above soles."""
    mujoco = import_mujoco()
    spec = make_robot_spec(robot)
    spec.worldbody.add_geom(
        name="height_reference", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1)
    )
    model = compile_spec(spec, robot.name)
    data = mujoco.MjData(model)
    above = 100.0  # high enough that nothing touches
    data.qpos[:7] = 0, 0, above, 1, 0, 0, 0
    data.qpos[7:] = robot.default_pose
    mujoco.mj_kinematics(model, data)
    plane = model.geom("height_reference").id
    lowest, offsets = [], []
    for foot in robot.feet:
        sole = min(
            mujoco.mj_geomDistance(model, data, plane, int(geom), 2 * above, None)
            for geom in colliding_geoms(model, (foot,))
        )
        lowest.append(sole)
        offsets.append(float(data.body(foot).xpos[2]) - sole)
    height = float(data.body(robot.base).xpos[2]) - min(lowest)
    if height <= 0:
        raise InputError(
            f"{robot.name}: in the default pose the feet are above the base {robot.base!r}. The "
            "robot must stand upright when the base's orientation is the identity, z up."
        )
    return height, float(np.mean(offsets))
