"""Models for drawing: with another package's meshes if it is installed, else our primitives.

Physics never uses them. A drawn model is the robot's own with different visible geometry: bodies
and joints are the same, so a state of the simulation is also a state of the drawn model.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor.sim.robots.primitives import ACCENT, DARK, LIGHT
from prism_motor.sim.scene import compile_spec, import_mujoco, make_scene

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot

_G1 = ("mjlab", "asset_zoo/robots/unitree_g1/xmls/g1.xml")
_SOURCES = {"g1": _G1, "g1-29": _G1, "g1-29-soft-waist": _G1}
"""The package that ships a robot's meshes, and the model in it, by robot."""


@dataclass(frozen=True)
class _Piece:
    """A mesh on one of our bodies."""

    body: str
    """Our body."""
    file: Path
    """The mesh."""
    position: np.ndarray
    """Position in the body's frame, m."""
    quaternion: np.ndarray
    """Orientation in the body's frame, wxyz."""
    colour: str
    """Colour in our palette."""


def find_meshes(robot: Robot) -> Path | None:
    """Return the model whose meshes fit a robot, if its package is installed."""
    package, file = _SOURCES.get(robot.name, (None, None))
    found = find_spec(package) if package else None
    for folder in (found.submodule_search_locations if found else None) or ():
        if (Path(folder) / str(file)).is_file():
            return Path(folder) / str(file)
    return None


@functools.cache  # meshes take seconds to compile
def picture_model(robot: Robot, *, primitives: bool = False) -> Any:
    """Compile the ``mjModel`` to draw a robot with.

    Args:
        robot: The robot.
        primitives: Draw our primitives even where meshes are installed.
    """
    spec = make_scene(robot, timestep=0.005)
    source = None if primitives else find_meshes(robot)
    if source is not None:
        _dress(spec, _pieces(spec, robot, source))
    return compile_spec(spec, robot.name)


def _dress(spec: Any, pieces: list[_Piece]) -> None:
    """Replace the visual-only primitives of a model with meshes."""
    mujoco = import_mujoco()
    for geom in spec.geoms:
        if geom.classname.name == "visual":
            spec.delete(geom)
    looks = spec.find_default("visual")
    for index, piece in enumerate(pieces):
        name = f"picture_{index}"
        spec.add_mesh(name=name, file=str(piece.file))
        spec.body(piece.body).add_geom(
            looks, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, pos=piece.position,
            quat=piece.quaternion, rgba=[float(part) for part in piece.colour.split()],
        )  # fmt: skip


def _pieces(spec: Any, robot: Robot, source: Path) -> list[_Piece]:
    """Attach every mesh of a foreign model to our corresponding body.

    Their bodies are named like ours with the suffix ``_link``. Bodies that ours lacks (waist, arms)
    are locked to their nearest ancestor, in the pose where all joints are zero, as in our model.
    """
    from scipy.spatial.transform import Rotation

    mujoco = import_mujoco()
    files = _mesh_files(source)
    ours = {body.name for body in spec.bodies}
    model = mujoco.MjModel.from_xml_path(str(source))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    pieces = []
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_MESH.value):
        mesh, body = model.geom_dataid[geom], model.geom_bodyid[geom]
        while body and model.body(body).name.removesuffix("_link") not in ours:
            body = model.body_parentid[body]
        if not body:
            continue  # part of their scene, not of the robot
        name = model.body(body).name.removesuffix("_link")
        # MuJoCo has moved the vertices into a frame of their own, and will do so again.
        moved = Rotation.from_quat(np.roll(model.mesh_quat[mesh], -1)).as_matrix()
        turn = data.geom_xmat[geom].reshape(3, 3) @ moved.T
        place = data.geom_xpos[geom] - turn @ model.mesh_pos[mesh]
        base = data.xmat[body].reshape(3, 3)
        pieces.append(
            _Piece(
                body=name,
                file=files[model.mesh(mesh).name],
                position=base.T @ (place - data.xpos[body]),
                quaternion=np.roll(Rotation.from_matrix(base.T @ turn).as_quat(), 1),
                colour=ACCENT if name in robot.feet else _shade(model, int(geom)),
            )
        )
    return pieces


def _mesh_files(source: Path) -> dict[str, Path]:
    """Return the files of a model's meshes by name."""
    spec = import_mujoco().MjSpec.from_file(str(source))
    folder = source.parent / spec.meshdir
    return {mesh.name or Path(mesh.file).stem: folder / mesh.file for mesh in spec.meshes}


def _shade(model: Any, geom: int) -> str:
    """Return the one of our two greys that a geom's material is closer to."""
    material = model.geom_matid[geom]
    rgba = model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]
    return DARK if rgba[:3].mean() < 0.5 else LIGHT
