"""Robots and other bodies in the browser, and the arrow of a push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from prism_motor.sim.meshes import picture_model
from prism_motor.sim.scene import import_mujoco
from prism_motor.viewer.pushes import DIRECTIONS, Push
from prism_motor.viewer.shapes import Rgb, body_meshes, linear

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot

_PUSH: Rgb = (200, 40, 50)
_PUSH_SECONDS = 0.5
"""How long the arrow of a push is shown."""


class DrawnBodies:
    """The bodies of a model in the scene.

    Args:
        server: The browser's server.
        model: The compiled ``mjModel``.
        place: Their name in the scene tree.
        repaint: Colours of the model to replace.
        opacity: 1: solid.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: Any,
        place: str,
        *,
        repaint: Mapping[Rgb, Rgb] | Rgb,
        opacity: float = 1.0,
    ) -> None:
        self.root = server.scene.add_frame(place, show_axes=False)
        meshes = body_meshes(model, repaint, opacity)
        self._bodies = {
            body: server.scene.add_frame(f"{place}/{body}", show_axes=False) for body in meshes
        }
        for body, glb in meshes.items():
            server.scene.add_glb(
                f"{place}/{body}/mesh", glb, cast_shadow=opacity == 1.0, receive_shadow=False
            )

    def draw(self, data: Any) -> None:
        """Show the bodies where they are in an ``MjData``."""
        for body, frame in self._bodies.items():
            frame.position = data.xpos[body]
            frame.wxyz = data.xquat[body]


class DrawnRobot:
    """One robot in the scene.

    Args:
        server: The browser's server.
        robot: The robot.
        place: Its name in the scene tree.
        repaint: Colours of its model to replace.
        primitives: Draw simple shapes even where meshes are installed.
        opacity: 1: solid.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        robot: Robot,
        place: str,
        *,
        repaint: Mapping[Rgb, Rgb] | Rgb,
        primitives: bool,
        opacity: float = 1.0,
    ) -> None:
        mujoco = import_mujoco()
        self._model = picture_model(robot, primitives=primitives)
        self._data = mujoco.MjData(self._model)
        self._forward = mujoco.mj_kinematics
        self._bodies = DrawnBodies(server, self._model, place, repaint=repaint, opacity=opacity)
        self.root = self._bodies.root

    def draw(self, qpos: np.ndarray) -> None:
        """Show the robot in a state."""
        self._data.qpos[:] = qpos
        self._forward(self._model, self._data)
        self._bodies.draw(self._data)


class PushArrow:
    """An arrow that shows a push for a moment.

    Args:
        server: The browser's server.
        place: Its name in the scene tree, below a frame that stands where the robot does.
        height: Standing height of the robot, m.
    """

    def __init__(self, server: viser.ViserServer, place: str, height: float) -> None:
        self._height = height
        self._arrow: Any = server.scene.add_arrows(
            place, np.zeros((1, 2, 3)), np.array([linear(_PUSH)]),
            shaft_radius=0.02, head_radius=0.05, head_length=0.1, visible=False,
        )  # fmt: skip

    def draw(self, push: Push | None, time: float) -> None:
        """Show a push while it is fresh."""
        seen = push is not None and time - push.time < _PUSH_SECONDS
        if seen and push is not None:
            tip = np.array([0.0, 0.0, 1.2 * self._height])
            way = np.array([*DIRECTIONS[push.direction], 0.0])
            self._arrow.points = np.array(
                [[tip - (0.15 + push.speed) * way, tip - 0.15 * way]], dtype=np.float32
            )
        if self._arrow.visible != seen:
            self._arrow.visible = seen


def between_poses(before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
    """Return the state at a share of the way between two states that are close."""
    after = after.copy()
    if np.dot(before[3:7], after[3:7]) < 0:  # the same rotation, the short way round
        after[3:7] *= -1
    pose = before + share * (after - before)
    pose[3:7] /= np.linalg.norm(pose[3:7])
    return pose
