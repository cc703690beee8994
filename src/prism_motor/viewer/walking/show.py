"""Walking policies in the browser: command, push and load one, or two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import viser

from prism_motor._checks import InputError
from prism_motor._figures import INK
from prism_motor.viewer.pushes import describe_divergence
from prism_motor.viewer.walking.loading import load_walkers
from prism_motor.viewer.walking.panel import WalkingControls, WalkingPanel
from prism_motor.viewer.walking.readings import FAINT, FiringPlots, VelocityPlots
from prism_motor.viewer.walking.scene import RobotScene
from prism_motor.viewer.walking.session import Session

if TYPE_CHECKING:
    from prism_motor.analysis.live import TopInteractions
    from prism_motor.domains import PlayRequest
    from prism_motor.viewer.walking.walker import Walker

COMMAND = (0.4, 0.0, 0.0)
"""Forward and sideways velocity (m/s) and yaw rate (rad/s) to begin with."""


def make_show(request: PlayRequest) -> WalkingShow:
    """Return what ``prism play`` shows of walking runs."""
    if request.prompts:
        raise InputError(
            "--prompts are for policies that track motions; tell walking policies where to go "
            "with --command."
        )
    walkers, products = zip(*load_walkers(request.runs, request.device), strict=True)
    command = COMMAND if request.command is None else request.command
    session = Session(walkers, None if command == "random" else command)
    return WalkingShow(session, products, primitives=request.primitives)


class WalkingShow:
    """A session of walkers with its image and controls.

    Args:
        session: What is shown.
        tops: The products to show per walker; ``None`` for policies without any.
        primitives: Draw simple shapes even where a package with meshes is installed.
    """

    def __init__(
        self,
        session: Session,
        tops: Sequence[TopInteractions | None],
        *,
        primitives: bool = False,
    ) -> None:
        self.session, self._tops, self._primitives = session, tops, primitives

    def open(self, server: viser.ViserServer) -> None:
        """Set up scene, controls and plots."""
        gui, session = server.gui, self.session
        self.scene = RobotScene(server, session, primitives=self._primitives)
        self.panel = WalkingPanel(gui, session)
        readings = gui.add_panel()
        with readings.add_tab("Live"):
            self._velocity = VelocityPlots(gui, session)
            self._firing = FiringPlots(gui, session, self._tops)
        readings.dock_left()
        readings.set_width(330)
        self._controls: WalkingControls = self.panel.read()

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._controls.paused

    @property
    def speed(self) -> float:
        """Simulated seconds per second."""
        return self._controls.speed

    def apply(self) -> bool:
        """Apply the user's input; return whether there was any."""
        controls = self.panel.read()
        session, before = self.session, self._controls
        clicks = self.panel.take_clicks()
        if controls == before and not clicks:
            return False
        self._controls = controls
        if controls.shown != session.shown:
            session.show(*controls.shown)
        if controls.command != session.command:
            session.tell(controls.command)
        if (controls.friction, controls.payload) != (before.friction, before.payload):
            session.change(friction=controls.friction, payload=controls.payload)
        self.scene.floor.follow = controls.follow
        for click in clicks:
            click(session)
        return True

    def advance(self, seconds: float) -> None:
        """Let the robots walk."""
        self.session.advance(seconds)

    def draw(self) -> None:
        """Show the robots where they are."""
        self.scene.draw()

    def report(self, pace: str) -> None:
        """Show plots, and how the walkers are."""
        self._velocity.draw()
        self._firing.draw()
        lines = "".join(map(_status, self.session.walking))
        self.panel.status.content = (
            f'<div style="padding:2px 12px;font-size:12px;color:{INK}">{lines}'
            f'<div style="color:{FAINT}">{pace}</div></div>'
        )

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _status(walker: Walker) -> str:
    """Return one line per walker: its state, its falls, and the outcome of the last push."""
    state = "walking" if walker.lying is None else "<b>fallen</b>, will stand up in a moment"
    falls = f", fallen {walker.falls} ×" if walker.falls else ""
    push = f"<br>{walker.pushed}" if walker.pushed else ""
    broken = f"<br>{describe_divergence(walker.diverged)}" if walker.diverged else ""
    return (
        f'<div><b style="color:{walker.colour}">{escape(walker.name)}</b>: '
        f"{state}{falls}{push}{broken}</div>"
    )
