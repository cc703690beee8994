"""Models to draw: with the meshes of another package where one is installed, else our primitives.

Physics never sees them. A picture's model is the robot's own with other geometry to look at: bodies
and joints are the same, so a state of the simulation is a state of the picture.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from prism_motor.sim.robots.mjcf import ACCENT, DARK, LIGHT, text
from prism_motor.sim.robots.robot import Robot
from prism_motor.sim.scene import import_mujoco, scene_xml

_SOURCES = {"g1": ("mjlab", "asset_zoo/robots/unitree_g1/xmls/g1.xml")}
"""Robot to the package that ships meshes of it and its model there."""


@dataclass(frozen=True)
class _Piece:
    """A mesh on one of our bodies."""

    body: str
    """Our body."""
    file: Path
    """The mesh."""
    position: np.ndarray
    """Where it is in the body's frame, m."""
    quaternion: np.ndarray
    """How it is turned in the body's frame, wxyz."""
    colour: str
    """In our palette."""


def find_meshes(robot: Robot) -> Path | None:
    """Return the model whose meshes fit a robot, if a package with one is installed."""
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
    xml = scene_xml(robot, timestep=0.005)
    source = None if primitives else find_meshes(robot)
    if source is not None:
        xml = _dress(xml, _pieces(robot, source))
    return import_mujoco().MjModel.from_xml_string(xml)


def _dress(xml: str, pieces: list[_Piece]) -> str:
    """Replace the primitives of a model that are only seen by meshes."""
    root = ElementTree.fromstring(xml)
    assets = ElementTree.SubElement(root, "asset")
    bodies = {body.get("name"): body for body in root.iter("body")}
    for body in bodies.values():
        for geom in body.findall("geom[@class='visual']"):
            body.remove(geom)
    for index, piece in enumerate(pieces):
        name = f"picture_{index}"
        ElementTree.SubElement(assets, "mesh", {"name": name, "file": str(piece.file)})
        pose = {"pos": text(tuple(piece.position)), "quat": text(tuple(piece.quaternion))}
        looks = {"class": "visual", "type": "mesh", "mesh": name, "rgba": piece.colour}
        ElementTree.SubElement(bodies[piece.body], "geom", looks | pose)
    return ElementTree.tostring(root, encoding="unicode")


def _pieces(robot: Robot, source: Path) -> list[_Piece]:
    """Place every mesh of a foreign model on the one of our bodies that carries it.

    Their bodies are called as ours with ``_link`` behind it. What is no body of ours (waist, arms)
    is locked to the next one below it, in the pose where all joints are zero, as in our model.
    """
    mujoco = import_mujoco()
    files = _mesh_files(source)
    ours = {body.get("name", "") for body in ElementTree.fromstring(robot.xml).iter("body")}
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
        turn = data.geom_xmat[geom].reshape(3, 3) @ _matrix(model.mesh_quat[mesh]).T
        place = data.geom_xpos[geom] - turn @ model.mesh_pos[mesh]
        base = data.xmat[body].reshape(3, 3)
        pieces.append(
            _Piece(
                body=name,
                file=files[model.mesh(mesh).name],
                position=base.T @ (place - data.xpos[body]),
                quaternion=_quaternion(base.T @ turn),
                colour=ACCENT if name in robot.feet else _shade(model, int(geom)),
            )
        )
    return pieces


def _mesh_files(source: Path) -> dict[str, Path]:
    """Return the files of a model's meshes by name."""
    root = ElementTree.parse(source).getroot()
    compiler = root.find("compiler")
    folder = source.parent / ("" if compiler is None else compiler.get("meshdir", ""))
    return {mesh.get("name", ""): folder / mesh.get("file", "") for mesh in root.iter("mesh")}


def _shade(model: Any, geom: int) -> str:
    """Return the one of our two greys that a geom's material is closer to."""
    material = model.geom_matid[geom]
    rgba = model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]
    return DARK if rgba[:3].mean() < 0.5 else LIGHT


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    matrix = np.empty(9)
    import_mujoco().mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def _quaternion(matrix: np.ndarray) -> np.ndarray:
    quaternion = np.empty(4)
    import_mujoco().mju_mat2Quat(quaternion, matrix.ravel())
    return quaternion
