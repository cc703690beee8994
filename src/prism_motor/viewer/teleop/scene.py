"""The arm, its table and the handle of the tip in the browser."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from prism_motor.viewer.floor import add_light
from prism_motor.viewer.robots import DrawnBodies
from prism_motor.viewer.shapes import linear, rgb

if TYPE_CHECKING:
    from prism_motor.viewer.teleop.session import TeleopSession

_LIMITS = ((-0.2, 0.5), (-0.45, 0.45), (-0.08, 0.5))
"""Where the handle can be pulled to, m; a little further than the arm reaches."""
_LET_GO = 0.5
"""Time without a pull after which the handle goes where the target is, s."""
_APART = 1e-4
"""Distance at which handle and target differ, m."""
_RED = "#c8283c"

Place = tuple[float, float, float]


class TeleopScene:
    """The twin of a session, and the handle by which its tip is pulled.

    Args:
        server: The browser's server.
        session: Whose twin is shown.
    """

    def __init__(self, server: viser.ViserServer, session: TeleopSession) -> None:
        self._server, self._session = server, session
        add_light(server)
        # From behind and beside the arm: forward is away from the viewer.
        server.initial_camera.position = (-0.24, -0.5, 0.5)
        server.initial_camera.look_at = (0.17, 0.0, 0.07)
        server.initial_camera.fov = 0.75
        self._bodies = DrawnBodies(server, session.twin.model, "/twin", repaint={})
        self.handle = server.scene.add_transform_controls(
            "/tip", scale=0.07, disable_rotations=True, translation_limits=_LIMITS,
            depth_test=False, opacity=0.85, position=session.target.position,
        )  # fmt: skip
        # Depth is hard to see on a screen: the line ends on what is below the tip.
        self._plumb: Any = server.scene.add_arrows(
            "/plumb", np.zeros((1, 2, 3)), np.array([linear(rgb(_RED))]),
            shaft_radius=0.0007, head_radius=0.003, head_length=0.006,
        )  # fmt: skip
        self._pulled: Place | None = None
        self._last_pull = -_LET_GO
        self.handle.on_update(self._note_pull)

    def _note_pull(self, event: viser.TransformControlsEvent) -> None:
        x, y, z = (float(value) for value in event.target.position)
        self._pulled, self._last_pull = (x, y, z), time.monotonic()

    def take_pull(self) -> Place | None:
        """Return where the handle was pulled since the last call."""
        pulled, self._pulled = self._pulled, None
        return pulled

    def draw(self) -> None:
        """Show the twin as it is, and the handle at the target unless somebody holds it."""
        with self._server.atomic():
            self._bodies.draw(self._session.twin.data)
            x, y, z = self._session.twin.tip
            ends = [[x, y, z], [x, y, min(z, 0.0)]]
            self._plumb.points = np.array([ends], dtype=np.float32)
            held = time.monotonic() - self._last_pull < _LET_GO
            place = np.array(self._session.target.position)
            if not held and np.abs(np.asarray(self.handle.position) - place).max() > _APART:
                self.handle.position = place
