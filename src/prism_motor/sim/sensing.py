"""Sensors for scenes in MuJoCo: camera images and contact forces."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.sim.rendering import make_contexts
from prism_motor.sim.scene import import_mujoco

Array = NDArray[np.float64]
Image = NDArray[np.uint8]

RENDERERS = ("fast", "stock")
"""How images are drawn: without what costs most, or as the suite's own renderer draws them."""

_UNDRAWN = 5
"""A geometry group that is not rendered."""


class CameraRenderer:
    """Renders a compiled model from its cameras.

    The ``fast`` renderer leaves out multisampling, shadows and reflections, and geometry outside of
    a camera's view: without a GPU, rendering time grows with the number of faces.

    Args:
        model: The compiled ``mjModel``.
        size: Side of the square images, pixels; larger ones can be rendered too.
        hidden: Geometry groups that are not rendered.
        renderer: One of :data:`RENDERERS`.
    """

    def __init__(
        self, model: Any, size: int, hidden: Sequence[int] = (), renderer: str = "fast"
    ) -> None:
        mujoco = import_mujoco()
        self._fast = renderer == "fast"
        if self._fast:
            model.vis.quality.offsamples = 0
        model.vis.global_.offwidth, model.vis.global_.offheight = size, size
        self._canvas = _Canvas(model, size)
        atexit.register(self._canvas.free)  # registered after EGL's handler, so runs before it
        self._scene = mujoco.MjvScene(model, maxgeom=2000)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag.value] &= not self._fast
        self._option = mujoco.MjvOption()
        self._option.geomgroup[list(hidden)] = 0
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED.value
        self._model, self._largest = model, size
        self._groups = model.geom_group.copy()

    def render(self, data: Any, camera: str, size: int) -> Image:
        """Return an image (size, size, 3) of the scene as ``data`` holds it."""
        mujoco = import_mujoco()
        self._canvas.context.make_current()
        if size > self._largest:
            mujoco.mjr_resizeOffscreen(size, size, self._canvas.renderer)
            self._largest = size
        self._camera.fixedcamid = self._model.camera(camera).id
        if self._fast:
            outside = _outside(self._model, data, self._camera.fixedcamid)
            self._model.geom_group[outside] = _UNDRAWN
        mujoco.mjv_updateScene(
            self._model, data, self._option, None, self._camera,
            mujoco.mjtCatBit.mjCAT_ALL.value, self._scene,
        )  # fmt: skip
        self._model.geom_group[:] = self._groups
        view = mujoco.MjrRect(0, 0, size, size)
        mujoco.mjr_render(view, self._scene, self._canvas.renderer)
        image = np.empty((size, size, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(image, None, view, self._canvas.renderer)
        return image[::-1]

    def close(self) -> None:
        """Free the renderer; this also happens at exit."""
        atexit.unregister(self._canvas.free)
        self._canvas.free()


class _Canvas:
    """Resources that must be freed before the interpreter exits, or OSMesa and EGL complain."""

    def __init__(self, model: Any, size: int) -> None:
        mujoco = import_mujoco()
        self.context: Any
        self.renderer: Any
        self.context, self.renderer = make_contexts(model, size, size)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.renderer)

    def free(self) -> None:
        self.context.make_current()
        self.renderer.free()
        self.renderer = self.context = None  # the context frees itself with its last reference


def crop_square(image: Image) -> Image:
    """Return the square in the middle of an image; a square one as it is."""
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def scale(image: Image, size: int) -> Image:
    """Return a square image at another size, each pixel the mean of those it covers."""
    from PIL import Image as Picture

    if image.shape[:2] == (size, size):
        return image
    scaled = Picture.fromarray(image).resize((size, size), Picture.Resampling.BOX)
    return np.array(scaled)


def _outside(model: Any, data: Any, camera: int) -> NDArray[np.bool_]:
    """Return which geoms lie entirely outside of a camera's view."""
    seen = (data.geom_xpos - data.cam_xpos[camera]) @ data.cam_xmat[camera].reshape(3, 3)
    half = np.deg2rad(model.cam_fovy[camera]) / 2.0
    radius, depth = model.geom_rbound, -seen[:, 2]
    beside = np.abs(seen[:, :2]).max(1) * np.cos(half) - depth * np.sin(half)
    infinite = radius == 0.0  # planes have no bounding sphere
    return ((beside > radius) | (depth < -radius)) & ~infinite


def contact_forces(model: Any, data: Any, bodies: Sequence[int]) -> Array:
    """Return the contact force on each body (bodies x 3), in world coordinates and newtons.

    Contacts between two of the bodies, such as finger on finger, are left out.

    Args:
        model: The compiled ``mjModel``.
        data: Its state, after a step.
        bodies: Ids of the bodies.
    """
    mujoco = import_mujoco()
    rows = {body: row for row, body in enumerate(bodies)}
    forces = np.zeros((len(bodies), 3))
    local = np.zeros(6)
    for index in range(data.ncon):
        contact = data.contact[index]
        first, second = (rows.get(int(model.geom_bodyid[geom])) for geom in contact.geom)
        if (first is None) == (second is None):
            continue
        mujoco.mj_contactForce(model, data, index, local)
        # The rows of the frame are its axes; the first points from the first geom to the second.
        force = local[:3] @ contact.frame.reshape(3, 3)
        if second is not None:
            forces[second] += force
        elif first is not None:
            forces[first] -= force
    return forces
