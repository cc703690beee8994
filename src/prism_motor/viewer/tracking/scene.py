"""A robot and its reference in the browser: the reference is translucent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import viser

from prism_motor.viewer.floor import Floor
from prism_motor.viewer.robots import DrawnRobot, PushArrow
from prism_motor.viewer.shapes import ACCENT, rgb
from prism_motor.viewer.tracking.placing import yaw_of
from prism_motor.viewer.tracking.readings import GHOST

if TYPE_CHECKING:
    from prism_motor.viewer.tracking.session import TrackingSession

_OPACITY = 0.3
_ASIDE = 0.9
"""How far to the robot's right the reference stands beside it, m."""


class TrackingScene:
    """The robot of a session and its reference on a floor.

    Args:
        server: The browser's server.
        session: Whose robot is shown.
        colour: Colour of the policy, as #rrggbb.
        primitives: Draw simple shapes even where a package with meshes is installed.

    Attributes:
        ghost: Whether the reference is shown.
        beside: Whether it stands beside the robot.
    """

    def __init__(
        self, server: viser.ViserServer, session: TrackingSession, colour: str, *, primitives: bool
    ) -> None:
        self._server, self._session = server, session
        self.ghost, self.beside = True, False
        robot = session.env.robot
        self.floor = Floor(server, robot.stand_height, robots=1)
        place = self.floor.PLACE
        self._robot = DrawnRobot(
            server, robot, f"{place}/robot", repaint={ACCENT: rgb(colour)}, primitives=primitives
        )
        self._reference = DrawnRobot(
            server, robot, f"{place}/reference",
            repaint=rgb(GHOST), primitives=primitives, opacity=_OPACITY,
        )  # fmt: skip
        self._here = server.scene.add_frame(f"{place}/here", show_axes=False)
        self._push = PushArrow(server, f"{place}/here/push", robot.stand_height)

    def draw(self) -> None:
        """Show the current state; browsers apply it at once."""
        qpos, ghost = self._session.poses()
        with self._server.atomic():
            self._robot.draw(qpos)
            seen = ghost is not None and self.ghost
            if self._reference.root.visible != seen:
                self._reference.root.visible = seen
            if seen and ghost is not None:
                self._reference.draw(self._aside(ghost) if self.beside else ghost)
            yaw = yaw_of(qpos[3:7])
            self._here.position = (qpos[0], qpos[1], 0.0)
            self._here.wxyz = (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
            self._push.draw(self._session.pushed, self._session.time)
            self.floor.run_after(qpos[:2])

    def _aside(self, ghost: np.ndarray) -> np.ndarray:
        yaw = yaw_of(ghost[3:7])
        moved = ghost.copy()
        moved[:2] += _ASIDE * np.array([np.sin(yaw), -np.cos(yaw)])
        return moved
