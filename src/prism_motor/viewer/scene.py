"""Robots on a floor in the browser.

The user controls the camera: to follow the robots, the floor moves under them like a treadmill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from prism_motor._figures import INK
from prism_motor.sim.meshes import picture_model
from prism_motor.sim.scene import import_mujoco
from prism_motor.viewer.shapes import Rgb, body_meshes, linear, rgb
from prism_motor.viewer.walker import DIRECTIONS, Walker

if TYPE_CHECKING:
    from prism_motor.viewer.session import Session

_ACCENT: Rgb = (26, 107, 184)
"""Colour in the robots' models that is replaced by the policy's colour."""
_TILE = 1.0
"""Period of the floor, m."""
_LANE = 0.9
"""Distance between robots that walk side by side, m, per metre of standing height."""
_ARROW_HEIGHT = 0.012
_PUSH: Rgb = (200, 40, 50)
_PUSH_SECONDS = 0.5
"""How long the arrow of a push is shown."""


class RobotFigure:
    """One robot in the scene.

    Args:
        server: The browser's server.
        walker: Whose state is shown.
        place: Name of the robot in the scene tree.
        primitives: Draw simple shapes even where meshes are installed.
    """

    def __init__(
        self, server: viser.ViserServer, walker: Walker, place: str, *, primitives: bool
    ) -> None:
        self.walker = walker
        mujoco = import_mujoco()
        self._model = picture_model(walker.env.robot, primitives=primitives)
        self._data = mujoco.MjData(self._model)
        self._forward = mujoco.mj_kinematics
        self.root = server.scene.add_frame(place, show_axes=False)
        colour = rgb(walker.colour)
        meshes = body_meshes(self._model, {_ACCENT: colour})
        self._bodies = {
            body: server.scene.add_frame(f"{place}/{body}", show_axes=False) for body in meshes
        }
        for body, glb in meshes.items():
            server.scene.add_glb(f"{place}/{body}/mesh", glb, receive_shadow=False)
        height = walker.env.robot.stand_height
        self.label = server.scene.add_label(
            f"{place}/label",
            walker.name,
            position=(0.0, 0.0, 1.75 * height),
            anchor="bottom-center",
        )
        self._velocity = server.scene.add_frame(f"{place}/velocity", show_axes=False)
        self._arrows: Any = server.scene.add_arrows(
            f"{place}/velocity/arrows", np.zeros((2, 2, 3)),
            np.array([linear(rgb(INK)), linear(colour)]),
            shaft_radius=0.012, head_radius=0.032, head_length=0.07,
        )  # fmt: skip
        self._push: Any = server.scene.add_arrows(
            f"{place}/velocity/push", np.zeros((1, 2, 3)), np.array([linear(_PUSH)]),
            shaft_radius=0.02, head_radius=0.05, head_length=0.1, visible=False,
        )  # fmt: skip

    def draw(self, time: float, lane: float) -> np.ndarray:
        """Show the walker at a time, moved aside by its lane; return where it stands, (2,)."""
        qpos = self.walker.pose(time)
        qpos[1] += lane
        self._data.qpos[:] = qpos
        self._forward(self._model, self._data)
        for body, frame in self._bodies.items():
            frame.position = self._data.xpos[body]
            frame.wxyz = self._data.xquat[body]
        yaw = float(self.walker.env.state.euler[0, 2])
        self._velocity.position = (qpos[0], qpos[1], 0.0)
        self._velocity.wxyz = (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        self.label.position = (qpos[0], qpos[1], self.label.position[2])
        self._draw_arrows()
        return qpos[:2]

    def _draw_arrows(self) -> None:
        walker = self.walker
        points = np.zeros((2, 2, 3))
        points[..., 2] = _ARROW_HEIGHT
        points[0, 1, :2] = walker.command[:2]
        points[1, 1, :2] = walker.velocity[:2]
        points[1, :, 2] *= 2
        self._arrows.points = points.astype(np.float32)
        push = walker.pushed
        seen = push is not None and walker.time - push.time < _PUSH_SECONDS
        if seen and push is not None:
            tip = np.array([0.0, 0.0, 1.2 * walker.env.robot.stand_height])
            way = np.array([*DIRECTIONS[push.direction], 0.0])
            self._push.points = np.array(
                [[tip - (0.15 + push.speed) * way, tip - 0.15 * way]], dtype=np.float32
            )
        if self._push.visible != seen:
            self._push.visible = seen


class RobotScene:
    """All robots of a session on one floor.

    Args:
        server: The browser's server.
        session: Whose walkers are shown.
        primitives: Draw simple shapes even where a package with meshes is installed.

    Attributes:
        follow: Whether the floor moves under the robots instead of the robots over the floor.
    """

    def __init__(
        self, server: viser.ViserServer, session: Session, *, primitives: bool = False
    ) -> None:
        self._server, self._session = server, session
        self.follow = True
        self._center = np.zeros(2)
        height = max(walker.env.robot.stand_height for walker in session.walkers)
        self._lane = _LANE * height
        _set_up(server, height, robots=len(session.walkers))
        self._world = server.scene.add_frame("/world", show_axes=False)
        self._floor = server.scene.add_grid(
            "/floor", infinite_grid=True, plane_color=(226, 231, 237), plane_opacity=1.0,
            cell_size=_TILE / 2, cell_color=(208, 215, 223), section_size=_TILE,
            section_color=(184, 193, 204), fade_distance=18.0, shadow_opacity=0.25,
        )  # fmt: skip
        self.figures = [
            RobotFigure(server, walker, f"/world/{i}", primitives=primitives)
            for i, walker in enumerate(session.walkers)
        ]

    def draw(self) -> None:
        """Show the current state; browsers apply it at once."""
        shown = self._session.shown
        with self._server.atomic():
            places = []
            for i, figure in enumerate(self.figures):
                if figure.root.visible != (i in shown):
                    figure.root.visible = i in shown
                if i in shown:
                    lane = (shown.index(i) - (len(shown) - 1) / 2) * self._lane
                    places.append(figure.draw(self._session.time, -lane))
                figure.label.visible = len(shown) > 1
            if self.follow:
                self._run_after(np.mean(places, axis=0))

    def _run_after(self, place: np.ndarray) -> None:
        """Move smoothly, so that the robots' sway stays visible; jump after a restart."""
        way = place - self._center
        self._center = self._center + (way if np.linalg.norm(way) > 0.6 else 0.15 * way)
        self._world.position = (-self._center[0], -self._center[1], 0.0)
        x, y = -np.mod(self._center, _TILE)
        self._floor.position = (x, y, 0.0)


def _set_up(server: viser.ViserServer, height: float, robots: int) -> None:
    """Set up sky light, a sun with shadows, and an initial view from the front left."""
    scene = server.scene
    scene.set_up_direction("+z")
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    scene.add_light_hemisphere(
        "/sky", sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=1.6
    )
    scene.add_light_directional("/sun", position=(1.2, 0.8, 3.0), intensity=2.0, cast_shadow=True)
    away = height * (1.0 + 0.15 * robots)
    server.initial_camera.position = (2.3 * away, 2.1 * away, 1.2 * away)
    server.initial_camera.look_at = (0.1 * height, 0.0, 0.8 * height)
    server.initial_camera.fov = 0.75
