"""Walkers on a floor in the browser, with their commands and velocities as arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from prism_motor._figures import INK
from prism_motor.viewer.floor import Floor
from prism_motor.viewer.robots import DrawnRobot, PushArrow
from prism_motor.viewer.shapes import ACCENT, linear, rgb
from prism_motor.viewer.walking.walker import Walker

if TYPE_CHECKING:
    from prism_motor.viewer.walking.session import Session

_LANE = 0.9
"""Distance between robots that walk side by side, m, per metre of standing height."""
_ARROW_HEIGHT = 0.012
_LEASH = 0.3
"""How far from the middle robots are drawn while the view follows, m, per metre of height."""


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
        colour = rgb(walker.colour)
        self._robot = DrawnRobot(
            server, walker.env.robot, place, repaint={ACCENT: colour}, primitives=primitives
        )
        self.root = self._robot.root
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
        self._push = PushArrow(server, f"{place}/velocity/push", height)

    def draw(self, qpos: np.ndarray) -> None:
        """Show the walker in a state."""
        self._robot.draw(qpos)
        yaw = float(self.walker.env.state.euler[0, 2])
        self._velocity.position = (qpos[0], qpos[1], 0.0)
        self._velocity.wxyz = (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        self.label.position = (qpos[0], qpos[1], self.label.position[2])
        self._draw_arrows()

    def _draw_arrows(self) -> None:
        walker = self.walker
        points = np.zeros((2, 2, 3))
        points[..., 2] = _ARROW_HEIGHT
        points[0, 1, :2] = walker.command[:2]
        points[1, 1, :2] = walker.velocity[:2]
        points[1, :, 2] *= 2
        self._arrows.points = points.astype(np.float32)
        self._push.draw(walker.pushed, walker.time)


class RobotScene:
    """All robots of a session on one floor.

    Args:
        server: The browser's server.
        session: Whose walkers are shown.
        primitives: Draw simple shapes even where a package with meshes is installed.
    """

    def __init__(
        self, server: viser.ViserServer, session: Session, *, primitives: bool = False
    ) -> None:
        self._server, self._session = server, session
        height = max(walker.env.robot.stand_height for walker in session.walkers)
        self._lane, self._leash = _LANE * height, _LEASH * height
        self.floor = Floor(server, height, robots=len(session.walkers))
        self.figures = [
            RobotFigure(server, walker, f"/world/{i}", primitives=primitives)
            for i, walker in enumerate(session.walkers)
        ]

    def draw(self) -> None:
        """Show the current state; browsers apply it at once."""
        shown = self._session.shown
        poses = {i: self.figures[i].walker.pose(self._session.time) for i in shown}
        middle = np.mean([pose[:2] for pose in poses.values()], axis=0)
        with self._server.atomic():
            for i, figure in enumerate(self.figures):
                if figure.root.visible != (i in shown):
                    figure.root.visible = i in shown
                if i in shown:
                    pose = poses[i]
                    if self.floor.follow:
                        pose[:2] = middle + within(pose[:2] - middle, self._leash)
                    pose[1] -= (shown.index(i) - (len(shown) - 1) / 2) * self._lane
                    figure.draw(pose)
                figure.label.visible = len(shown) > 1
            self.floor.run_after(middle)


def within(way: np.ndarray, longest: float) -> np.ndarray:
    """Return a way (2,), cut to the longest: who strays is kept in view."""
    length = float(np.linalg.norm(way))
    return way if length <= longest else way * (longest / length)
