"""A robot on the ground, with the sensors that tasks read."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor._ranges import between

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot

SOLVERS = {1: (5, 8), 2: (20, 20)}
"""Most iterations of the contact solver, and of each line search, by version.

On average 2.4 to 3.6 iterations are needed. Version 1 cuts off some that need more: a few percent
of control steps are off by up to 10 rad/s. Runs from before there were versions keep it.
"""
SOLVER = max(SOLVERS)
"""Version of the solver in new runs."""
SolverVersion = Annotated[int, between(min(SOLVERS), SOLVER)]


def import_mujoco(who: str = "prism_motor.sim", extra: str = "locomotion") -> Any:
    """Import MuJoCo (it has no type information) or name the extra that provides it."""
    try:
        import mujoco
    except ImportError as error:
        raise missing_extra(who, extra, error) from error
    except RuntimeError as error:  # MuJoCo looks at MUJOCO_GL when it is imported
        raise InputError(f"MuJoCo cannot be loaded: {error}. Unset MUJOCO_GL.") from error
    module: Any = mujoco
    # By itself, MuJoCo writes its warnings to a file in the working folder.
    if module.get_mju_user_warning() is None:
        module.set_mju_user_warning(logging.getLogger(__name__).warning)
    return module


def build_model(robot: Robot, *, timestep: float, solver: int = SOLVER) -> Any:
    """Compile a robot on the ground into the ``mjModel`` that physics steps.

    It has no textures, which would be nearly all of its memory; ``meshes.picture_model`` has them.

    Args:
        robot: The robot.
        timestep: Physics step, s.
        solver: Version of the solver, in :data:`SOLVERS`.
    """
    spec = make_scene(robot, timestep=timestep, solver=solver)
    _drop_textures(spec, list(spec.textures))
    return compile_spec(spec, robot.name)


def scene_xml(robot: Robot, *, timestep: float, solver: int = SOLVER) -> str:
    """Return the self-contained MJCF of a robot on the ground: it refers to no other file."""
    spec = make_scene(robot, timestep=timestep, solver=solver)
    model = compile_spec(spec, robot.name)
    if _embed_files(spec, model):
        compile_spec(spec, robot.name)
    with _all_digits():
        return spec.to_xml()


def compile_spec(spec: Any, name: str) -> Any:
    """Compile an ``MjSpec``; errors name the robot."""
    with _naming(name):
        return spec.compile()


@contextmanager
def _naming(robot: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise InputError(f"MuJoCo cannot compile the model of {robot}: {error}") from error


def make_scene(robot: Robot, *, timestep: float, solver: int = SOLVER) -> Any:
    """Return the ``MjSpec`` of a robot on the ground, with the sensors that tasks read.

    A model with its own ground (geoms of the world body) keeps it. Contact friction is that of the
    feet, whose geoms have priority over the ground's.
    """
    spec = make_robot_spec(robot)
    _set_options(spec, timestep, solver)
    with _naming(robot.name):  # our names may clash with the model's
        if not spec.worldbody.geoms:
            _add_ground(spec)
        if not spec.worldbody.lights:
            _add_lights(spec)
        _add_sensors(spec, robot)
    return spec


def make_robot_spec(robot: Robot) -> Any:
    """Return the ``MjSpec`` of just the robot: its bodies and one position servo per joint."""
    mujoco = import_mujoco()
    read = mujoco.MjSpec
    spec = read.from_file(robot.file) if robot.file else read.from_string(robot.xml)
    # Keyframes, sensors and actuators of a foreign model refer to joints that may be locked.
    for element in [*spec.keys, *spec.sensors, *spec.actuators]:
        spec.delete(element)
    for name, angle in robot.locked:
        _lock(spec, name, angle)
    for body in robot.feet:
        for geom in spec.body(body).geoms:
            if geom.contype or geom.conaffinity:
                geom.priority = max(geom.priority, 1)
    for joint in robot.joints:
        if joint.armature is not None:
            spec.joint(joint.name).armature = joint.armature
        if joint.friction is not None:
            spec.joint(joint.name).frictionloss = joint.friction
        spec.add_actuator(
            name=joint.name,
            target=joint.name,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gaintype=mujoco.mjtGain.mjGAIN_FIXED,
            gainprm=[joint.stiffness] + [0.0] * 9,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE,
            biasprm=[0.0, -joint.stiffness, -joint.damping] + [0.0] * 7,
            ctrllimited=False,
            forcelimited=True,
            forcerange=[-joint.torque_limit, joint.torque_limit],
        )
    return spec


def colliding_geoms(model: Any, bodies: Sequence[str] | None = None) -> np.ndarray:
    """Return the geoms of a model, or of some of its bodies, that can touch other things."""
    geoms = np.flatnonzero((model.geom_contype != 0) | (model.geom_conaffinity != 0))
    if bodies is None:
        return geoms
    return geoms[np.isin(model.geom_bodyid[geoms], [model.body(body).id for body in bodies])]


def _lock(spec: Any, name: str, angle: float) -> None:
    """Weld a hinge: its body is turned about the joint's axis, and the joint is removed."""
    from scipy.spatial.transform import Rotation

    joint = spec.joint(name)
    body = joint.parent
    if angle:
        stated_as_quaternion = import_mujoco().mjtOrientation.mjORIENTATION_QUAT
        quaternion = body.quat
        if body.alt.type != stated_as_quaternion:
            quaternion = spec.resolve_orientation(
                spec.compiler.degree, spec.compiler.eulerseq, body.alt
            )
        orientation = Rotation.from_quat(np.roll(quaternion, -1))  # MuJoCo: wxyz; SciPy: xyzw
        turn = Rotation.from_rotvec(angle * joint.axis / np.linalg.norm(joint.axis))
        body.pos = body.pos + orientation.apply(joint.pos - turn.apply(joint.pos))
        body.quat = np.roll((orientation * turn).as_quat(), 1)
        body.alt.type = stated_as_quaternion
        # Joints that precede this one in the same body must not turn with it.
        names = [other.name for other in body.joints]
        for other in body.joints[: names.index(name)]:
            other.axis = turn.inv().apply(other.axis)
            other.pos = joint.pos + turn.inv().apply(other.pos - joint.pos)
    spec.delete(joint)


def _set_options(spec: Any, timestep: float, solver: int) -> None:
    mujoco = import_mujoco()
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    # The cap keeps one bad contact from stalling all others.
    spec.option.iterations, spec.option.ls_iterations = SOLVERS[solver]
    # Autoreset would hide a diverged simulation; without it, NaN shows up and ends training.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET


def _add_ground(spec: Any) -> None:
    mujoco = import_mujoco()
    picture = {"width": 256, "height": 256}
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.93, 0.95, 0.98), rgb2=(0.55, 0.68, 0.84), **picture,
    )  # fmt: skip
    spec.add_texture(
        name="ground", type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=(0.82, 0.84, 0.86), rgb2=(0.72, 0.76, 0.80), **picture,
    )  # fmt: skip
    textures = [""] * int(mujoco.mjtTextureRole.mjNTEXROLE)
    textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = "ground"
    spec.add_material(
        name="ground", textures=textures, texrepeat=(1, 1), texuniform=True, specular=0.1
    )
    spec.worldbody.add_geom(
        name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05), material="ground",
        contype=1, conaffinity=2,
    )  # fmt: skip


def _add_lights(spec: Any) -> None:
    mujoco = import_mujoco()
    spec.visual.quality.shadowsize = 2048
    spec.visual.global_.offwidth, spec.visual.global_.offheight = 1280, 960
    headlight = spec.visual.headlight
    headlight.ambient, headlight.diffuse, headlight.specular = [0.38] * 3, [0.22] * 3, [0.05] * 3
    directional = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    # Shadows fall straight down from a weak light: slanted ones leave stripes on the ground.
    spec.worldbody.add_light(
        mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM, type=directional, pos=(0, 0, 3),
        dir=(0, 0, -1), diffuse=(0.3, 0.3, 0.3), specular=(0, 0, 0),
    )  # fmt: skip
    spec.worldbody.add_light(
        type=directional, castshadow=False, pos=(2, -2, 3), dir=(-0.5, 0.6, -0.5),
        diffuse=(0.45, 0.44, 0.42), specular=(0.2, 0.2, 0.2),
    )  # fmt: skip


def _add_sensors(spec: Any, robot: Robot) -> None:
    """Add net contact forces on feet, base and others, and frames of feet and knees."""
    mujoco = import_mujoco()
    kinds, frame = mujoco.mjtSensor, mujoco.mjtObj.mjOBJ_XBODY
    # What is reported, how contacts are reduced, how many readings there are.
    net_force = [1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1]

    def add(body: str, quantity: str, kind: Any, what: Any, **options: Any) -> None:
        name = f"{body}_{quantity}"
        spec.add_sensor(name=name, type=kind, objtype=what, objname=body, **options)

    for body in (*robot.feet, robot.base, *robot.touching):
        add(body, "force", kinds.mjSENS_CONTACT, mujoco.mjtObj.mjOBJ_BODY, intprm=net_force)
    for body in robot.feet:
        add(body, "position", kinds.mjSENS_FRAMEPOS, frame)
        add(body, "velocity", kinds.mjSENS_FRAMELINVEL, frame)
    for body in robot.knees:
        add(body, "position", kinds.mjSENS_FRAMEPOS, frame)


def _embed_files(spec: Any, model: Any) -> bool:
    """Embed meshes from files into a spec and drop such textures; return if there were any."""
    from scipy.spatial.transform import Rotation

    meshes = [mesh for mesh in spec.meshes if mesh.file]
    for mesh in meshes:
        mesh_id = model.mesh(mesh.name or Path(mesh.file).stem).id
        first, count = model.mesh_vertadr[mesh_id], model.mesh_vertnum[mesh_id]
        face, faces = model.mesh_faceadr[mesh_id], model.mesh_facenum[mesh_id]
        # MuJoCo has moved the vertices into a frame of their own, and will do so again.
        turn = Rotation.from_quat(np.roll(model.mesh_quat[mesh_id], -1))
        vertices = turn.apply(model.mesh_vert[first : first + count]) + model.mesh_pos[mesh_id]
        mesh.name = model.mesh(mesh_id).name
        mesh.file, mesh.content_type, mesh.scale = "", "", (1, 1, 1)
        mesh.uservert = vertices.ravel()
        mesh.userface = model.mesh_face[face : face + faces].ravel()
    textures = [texture for texture in spec.textures if texture.file or any(texture.cubefiles)]
    _drop_textures(spec, textures)
    return bool(meshes or textures)


def _drop_textures(spec: Any, textures: list[Any]) -> None:
    """Delete textures; materials that had them keep their colours."""
    for texture in textures:
        for material in spec.materials:
            material.textures = [t if t != texture.name else "" for t in material.textures]
        spec.delete(texture)


@contextmanager
def _all_digits() -> Iterator[None]:
    """Let MuJoCo write numbers exactly; six digits would give a different robot.

    There is no public setting. Where a release lacks this one, six digits have to do.
    """
    packages = Path(import_mujoco().__file__).parents[1]
    names = ("_mjPRIVATE__get_xml_precision", "_mjPRIVATE__set_xml_precision")
    files = [*packages.glob("mujoco*/**/libmujoco.*"), *packages.glob("mujoco*/**/mujoco.dll")]
    for file in sorted(files):
        library = ctypes.CDLL(str(file))
        if all(hasattr(library, name) for name in names):
            get_digits, set_digits = (getattr(library, name) for name in names)
            before = get_digits()
            set_digits(17)
            try:
                yield
            finally:
                set_digits(before)
            return
    yield
