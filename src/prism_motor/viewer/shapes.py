"""Geometry of MuJoCo models as meshes that a browser can draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import trimesh
from trimesh.exchange.gltf import export_glb
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from prism_motor._checks import InputError
from prism_motor.sim.scene import import_mujoco

_SEEN = 2
"""Geoms up to this group are drawn, as in MuJoCo's own viewer."""

_PUFFED = 0.004
"""How much further out the surface of a translucent robot is, m."""

Rgb = tuple[int, int, int]

BLUE = "#1a6bb8"
"""Default colour of a policy."""
ACCENT: Rgb = (26, 107, 184)
"""Colour in the robots' models that is replaced by the policy's colour."""


def rgb(colour: str) -> Rgb:
    """Read a colour written as #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def linear(colour: Rgb) -> list[float]:
    """Return a colour in linear light, 0 to 1, as shaders expect it."""
    screen = np.asarray(colour) / 255
    light = np.where(screen <= 0.04045, screen / 12.92, ((screen + 0.055) / 1.055) ** 2.4)
    return light.tolist()


def body_meshes(
    model: Any, repaint: Mapping[Rgb, Rgb] | Rgb, opacity: float = 1.0
) -> dict[int, bytes]:
    """Return one glTF file per visible body, in the body's frame.

    Args:
        model: The compiled ``mjModel``; planes are left out.
        repaint: Colours to replace, or one colour for everything.
        opacity: 1: solid.
    """
    plane = import_mujoco().mjtGeom.mjGEOM_PLANE.value
    scenes: dict[int, trimesh.Scene] = {}
    for geom in range(model.ngeom):
        if model.geom_group[geom] > _SEEN or model.geom_type[geom] == plane:
            continue
        mesh = geom_mesh(model, geom)
        colour = geom_colour(model, geom)
        if opacity < 1:  # surfaces of a solid robot in the same place would flicker through
            mesh.vertices = mesh.vertices + _PUFFED * mesh.vertex_normals
        painted = repaint.get(colour, colour) if isinstance(repaint, Mapping) else repaint
        mesh.visual = TextureVisuals(material=_material(painted, opacity))
        scenes.setdefault(int(model.geom_bodyid[geom]), trimesh.Scene()).add_geometry(mesh)
    return {body: export_glb(scene, include_normals=True) for body, scene in scenes.items()}


def geom_mesh(model: Any, geom: int) -> trimesh.Trimesh:
    """Return a geom as triangles in the frame of its body."""
    kinds = import_mujoco().mjtGeom
    kind = kinds(int(model.geom_type[geom]))
    x, y, z = model.geom_size[geom]
    if kind == kinds.mjGEOM_SPHERE:
        mesh = trimesh.creation.icosphere(subdivisions=3, radius=x)
    elif kind == kinds.mjGEOM_ELLIPSOID:
        mesh = trimesh.creation.icosphere(subdivisions=3, radius=1.0)
        mesh.apply_scale((x, y, z))
    elif kind == kinds.mjGEOM_CAPSULE:
        mesh = trimesh.creation.capsule(radius=x, height=2 * y, count=(24, 24))
    elif kind == kinds.mjGEOM_CYLINDER:
        mesh = trimesh.creation.cylinder(radius=x, height=2 * y, sections=32)
    elif kind == kinds.mjGEOM_BOX:
        mesh = trimesh.creation.box(extents=(2 * x, 2 * y, 2 * z))
    elif kind == kinds.mjGEOM_MESH:
        mesh = _triangles(model, int(model.geom_dataid[geom]))
    else:
        raise InputError(f"Cannot draw a geom of type {kind.name}; use boxes, spheres or meshes.")
    if kind in (kinds.mjGEOM_BOX, kinds.mjGEOM_CYLINDER):
        mesh = trimesh.graph.smooth_shade(mesh, angle=np.radians(40))  # edges stay sharp
    mesh.apply_transform(_transform(model.geom_pos[geom], model.geom_quat[geom]))
    return mesh


def geom_colour(model: Any, geom: int) -> Rgb:
    """Return a geom's colour, or that of its material."""
    material = int(model.geom_matid[geom])
    rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
    r, g, b = (round(255 * float(value)) for value in rgba[:3])
    return r, g, b


def _triangles(model: Any, mesh: int) -> trimesh.Trimesh:
    vertex, vertices = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    face, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return trimesh.Trimesh(
        model.mesh_vert[vertex : vertex + vertices],
        model.mesh_face[face : face + faces],
        process=False,
    )


def _transform(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    matrix = trimesh.transformations.quaternion_matrix(quaternion)
    matrix[:3, 3] = position
    return matrix


def _material(colour: Rgb, opacity: float) -> PBRMaterial:
    """Return a matte plastic."""
    return PBRMaterial(
        baseColorFactor=[*linear(colour), opacity],
        metallicFactor=0.05,
        roughnessFactor=0.55,
        alphaMode="BLEND" if opacity < 1 else None,
    )
