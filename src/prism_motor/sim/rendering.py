"""Images of a robot on machines without a display."""

from __future__ import annotations

import functools
import importlib
import os
import platform
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import PrismError
from prism_motor.sim.scene import import_mujoco

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot


GHOST = (0.13, 0.42, 0.72, 0.3)
"""Colour of a second, translucent robot."""


class RenderingError(PrismError, OSError):
    """No rendering backend works."""


@functools.cache
def find_backend() -> str:
    """Return the first rendering backend that works here; ``MUJOCO_GL`` overrides the choice.

    Each is tried in its own process: a failed one leaves PyOpenGL unusable for the next.
    """
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen:
        return chosen
    if platform.system() != "Linux":
        return "cgl" if platform.system() == "Darwin" else "glfw"
    for backend in ("egl", "osmesa", "glfw"):
        code = f"from mujoco.{backend} import GLContext; GLContext(8, 8).make_current()"
        try:
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, check=True, timeout=60
            )
        except subprocess.SubprocessError:  # it failed, or a driver never answered
            continue
        return backend
    raise RenderingError(
        "Neither EGL nor OSMesa works on this machine, so nothing can be drawn. On Debian and "
        "Ubuntu: apt-get install libosmesa6 (software), or libegl1 with a graphics driver."
    )


def make_contexts(model: Any, width: int, height: int) -> tuple[Any, Any]:
    """Return a context of the rendering backend, made current, and MuJoCo's for the model in it."""
    mujoco, backend = import_mujoco(), find_backend()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # glfw only warns without a screen; the next line fails
            context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
            context.make_current()
            return context, mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
    except Exception as error:  # every backend fails in its own way
        raise RenderingError(
            f"Cannot draw with MUJOCO_GL={backend}: {str(error).rstrip('.')}. Unset it to choose "
            "automatically."
        ) from error


class Renderer:
    """Draws a robot from a camera that follows it; use as a context manager.

    Args:
        model: The compiled ``mjModel``.
        robot: The robot in it.
        width: Width of the images, pixels.
        height: Height of the images, pixels.
        azimuth: Viewing direction, degrees; the robot starts facing 0.
        elevation: Viewing angle relative to the ground, degrees.
        zoom: How many times as close as by default the camera is.
    """

    def __init__(
        self,
        model: Any,
        robot: Robot,
        *,
        width: int,
        height: int,
        azimuth: float = 140.0,
        elevation: float = -10.0,
        zoom: float = 1.0,
    ) -> None:
        mujoco = import_mujoco()
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        self._context, self._drawing = make_contexts(model, width, height)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._drawing)
        self._model, self._data, self._ghost = model, mujoco.MjData(model), mujoco.MjData(model)
        self._scene = mujoco.MjvScene(model, maxgeom=1000)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth, self._camera.elevation = azimuth, elevation
        self._camera.distance = (1.2 + 1.4 * robot.stand_height) / zoom
        self._camera.lookat[:] = (0.0, 0.0, 0.8 * robot.stand_height)
        self._picture = np.zeros((height, width, 3), dtype=np.uint8)

    def draw(
        self, qpos: np.ndarray, ghost: np.ndarray | None = None, look_at: np.ndarray | None = None
    ) -> np.ndarray:
        """Return an image (height, width, 3) of the robot in a state.

        Args:
            qpos: The state.
            ghost: A second state, drawn translucent and without a shadow.
            look_at: Where the camera looks, horizontally; default: at the robot.
        """
        mujoco = import_mujoco()
        self._data.qpos[:] = qpos
        mujoco.mj_forward(self._model, self._data)
        self._follow(qpos[:2] if look_at is None else look_at)
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera,
            mujoco.mjtCatBit.mjCAT_ALL.value, self._scene,
        )  # fmt: skip
        for geom in self._scene.geoms[: self._scene.ngeom]:
            if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:  # the ground's own shadow flickers on it
                geom.category = mujoco.mjtCatBit.mjCAT_DECOR.value  # casts no shadow
        if ghost is not None:
            self._add_ghost(ghost)
        self._context.make_current()
        height, width, _ = self._picture.shape
        view = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(view, self._scene, self._drawing)
        mujoco.mjr_readPixels(self._picture, None, view, self._drawing)
        return self._picture[::-1].copy()

    def _add_ghost(self, qpos: np.ndarray) -> None:
        """Add the robot in a second state to the scene, in one translucent colour."""
        mujoco = import_mujoco()
        self._ghost.qpos[:] = qpos
        mujoco.mj_forward(self._model, self._ghost)
        first = self._scene.ngeom
        mujoco.mjv_addGeoms(
            self._model, self._ghost, self._option, mujoco.MjvPerturb(),
            mujoco.mjtCatBit.mjCAT_DYNAMIC.value, self._scene,
        )  # fmt: skip
        for geom in self._scene.geoms[first : self._scene.ngeom]:
            geom.rgba[:] = GHOST
            geom.matid, geom.transparent = -1, 1
            geom.category = mujoco.mjtCatBit.mjCAT_DECOR.value

    def look_at(self, place: np.ndarray) -> None:
        """Turn the camera to a place on the ground at once."""
        self._camera.lookat[:2] = place

    def _follow(self, place: np.ndarray) -> None:
        """Move smoothly with the robot, so that its sway stays visible; jump after a reset."""
        way = place - self._camera.lookat[:2]
        self._camera.lookat[:2] += way if np.linalg.norm(way) > 0.6 else 0.15 * way

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *_: object) -> None:
        # In this order and before the interpreter ends, or OSMesa complains.
        self._drawing.free()
        self._context.free()
