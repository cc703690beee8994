"""Tracking policies in the browser: prompted by a motion, a pose or a reward, pushed and loaded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import viser

from prism_motor._checks import InputError
from prism_motor._console import note
from prism_motor._figures import INK
from prism_motor.arms import arm_colours
from prism_motor.domains import open_run, require_domain
from prism_motor.tracking.domain import TRACKING
from prism_motor.tracking.prompts.prompter import Prompter, load_library, motion_files
from prism_motor.tracking.prompts.states import find_states
from prism_motor.viewer.pushes import describe_divergence
from prism_motor.viewer.tracking.panel import TrackingControls, TrackingPanel
from prism_motor.viewer.tracking.readings import FAINT, TrackingPlots
from prism_motor.viewer.tracking.scene import TrackingScene
from prism_motor.viewer.tracking.session import TrackingSession

if TYPE_CHECKING:
    from prism_motor.domains import PlayRequest


def make_show(request: PlayRequest) -> TrackingShow:
    """Return what ``prism play`` shows of a tracking run."""
    if len(request.runs) != 1:
        raise InputError(
            f"One tracking policy can be played at a time, got {len(request.runs)} runs."
        )
    if request.command is not None:
        raise InputError(
            "--command is for walking policies; a tracking policy is told what to do with "
            "--prompts, e.g. --prompts reward:move-ego-0-0.3"
        )
    path = request.runs[0]
    require_domain(path, "tracking", "this")
    run, _, config = open_run(path)
    files, prompts = motion_files(request.prompts)
    references, trained, missing = load_library(config.task, files)
    states = find_states(run, run.load(), references)
    for remark in filter(None, (missing, states.note)):
        note(remark)
    policy = TRACKING.place_policy(path, device=request.device)
    prompter = Prompter(policy, config.task, references, states, trained=trained)
    asked = [prompter.read(text) for text in prompts or references.names[:1]]
    session = TrackingSession(path.resolve().name, prompter, asked)
    colour = arm_colours([config.arm])[config.arm]
    return TrackingShow(session, colour, primitives=request.primitives)


class TrackingShow:
    """A session with its image and controls.

    Args:
        session: What is shown.
        colour: Colour of the policy, as #rrggbb.
        primitives: Draw simple shapes even where a package with meshes is installed.
    """

    def __init__(self, session: TrackingSession, colour: str, *, primitives: bool = False) -> None:
        self.session, self._colour, self._primitives = session, colour, primitives

    def open(self, server: viser.ViserServer) -> None:
        """Set up scene, controls and plots."""
        gui, session = server.gui, self.session
        self.scene = TrackingScene(server, session, self._colour, primitives=self._primitives)
        self.panel = TrackingPanel(gui, session)
        readings = gui.add_panel()
        with readings.add_tab("Live"):
            self._source = gui.add_html("")
            self._plots = TrackingPlots(gui, session, self._colour)
        readings.dock_left()
        readings.set_width(330)
        self._controls: TrackingControls = self.panel.read()
        self._shown = session.playlist[0]

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
        self._show_turn()
        controls, before, session = self.panel.read(), self._controls, self.session
        clicks = self.panel.take_clicks()
        if controls == before and not clicks:
            return False
        self._controls = controls
        session.fade, session.every = controls.fade, controls.every
        session.picks_up = controls.picks_up
        if controls.prompt != before.prompt:
            session.ask(controls.prompt)
        if (controls.friction, controls.payload) != (before.friction, before.payload):
            session.change(friction=controls.friction, payload=controls.payload)
        self.scene.ghost, self.scene.beside = controls.ghost, controls.beside
        self.scene.floor.follow = controls.follow
        for click in clicks:
            click(session)
        return True

    def _show_turn(self) -> None:
        """Show in the controls whose turn it is, without asking for it again."""
        turn = self.session.turn
        if turn != self._shown:
            self._shown = turn
            self.panel.show_prompt(turn)
            self._controls = self.panel.read()

    def advance(self, seconds: float) -> None:
        """Let the robot act."""
        self.session.advance(seconds)

    def draw(self) -> None:
        """Show the robot and its reference."""
        self.scene.draw()

    def report(self, pace: str) -> None:
        """Show plots, where the latent comes from, and how the robot is."""
        self._plots.draw()
        session = self.session
        state = "upright" if session.lying is None else "<b>fallen</b>"
        falls = f", fallen {session.falls} ×" if session.falls else ""
        push = f"<div>{session.pushed}</div>" if session.pushed else ""
        push += f"<div>{describe_divergence(session.diverged)}</div>" if session.diverged else ""
        waiting = session.waiting
        search = f"<div>looking for a latent of {escape(str(waiting))} …</div>" if waiting else ""
        problem = (
            f'<div style="color:#c8283c">{escape(session.problem)}</div>' if session.problem else ""
        )
        self.panel.status.content = (
            f'<div style="padding:2px 12px;font-size:12px;color:{INK}">'
            f'<div><b style="color:{self._colour}">{escape(session.name)}</b>: {state}{falls}</div>'
            f'{push}{search}{problem}<div style="color:{FAINT}">{pace}</div></div>'
        )
        prompted = session.prompted
        self._source.content = (
            f'<div style="padding:4px 12px;font-size:12px;color:{INK}">'
            f"<b>{escape(str(prompted.prompt))}</b>"
            f'<div style="color:{FAINT};font-size:11px">latent: {escape(prompted.source)}'
            "</div></div>"
        )

    def close(self) -> None:
        """Stop looking for latents."""
        self.session.close()
