"""An arm in the browser that a person moves, and the episodes recorded there."""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import viser

from prism_motor._checks import find_mistake
from prism_motor._console import count
from prism_motor._figures import INK
from prism_motor.manipulation.demonstrations.takes import Takes
from prism_motor.manipulation.suites.so101.environment import So101Environment
from prism_motor.manipulation.tasks import make_environment
from prism_motor.sim.so101.twin import FRAME
from prism_motor.viewer.teleop.panel import TeleopPanel
from prism_motor.viewer.teleop.scene import TeleopScene
from prism_motor.viewer.teleop.session import TeleopSession

if TYPE_CHECKING:
    from pathlib import Path

    from prism_motor.manipulation.tasks import Task
    from prism_motor.viewer.controls import Click

_FAINT, _RED = "#7b8794", "#c8283c"
_VIEW = 200
"""Largest side to which camera images are enlarged, pixels."""
_RATE_OVER = 1.0
"""Time over which the achieved rate is measured, s."""


def make_show(
    out: Path, task: Task, *, episodes: int = 5, image_size: int = 96, seed: int = 1
) -> TeleopShow:
    """Return what ``prism teleop`` shows; raise if episodes cannot be recorded there.

    Args:
        out: Folder of the dataset.
        task: A task of one of the suites of the twin.
        episodes: How many episodes are wanted in all.
        image_size: Side of the recorded images, pixels.
        seed: Seed of the placements.
    """
    environment = make_environment(task, image_size=image_size)
    assert isinstance(environment, So101Environment)
    return TeleopShow(
        TeleopSession(environment, Takes(out, environment), episodes=episodes, seed=seed)
    )


class TeleopShow:
    """A session with its image and controls.

    Args:
        session: What is shown.
    """

    paused = False
    speed = 1.0

    def __init__(self, session: TeleopSession) -> None:
        self.session = session
        self._problem = ""
        self._rate, self._measured = 0.0, (time.perf_counter(), 0)

    def open(self, server: viser.ViserServer) -> None:
        """Set up scene, controls and camera images."""
        gui, session = server.gui, self.session
        self.scene = TeleopScene(server, session)
        self.panel = TeleopPanel(gui, session)
        views = gui.add_panel()
        with views.add_tab("Cameras"):
            blank = np.zeros((1, 1, 3), np.uint8)  # only the loop's thread may draw
            self._views = {
                camera: gui.add_image(blank, label=camera, format="jpeg")
                for camera in session.environment.cameras
            }
        views.dock_left()
        views.set_width(230)

    def apply(self) -> bool:
        """Apply the operator's input; return whether there was any."""
        actions: list[Click] = self.panel.take_clicks()
        if changes := self.panel.take_changes():
            actions.append(lambda session: session.move(**changes))
        pulled = self.scene.take_pull()
        if pulled is not None:
            actions.append(lambda session: session.move(position=pulled))
        for action in actions:
            self._do(action)
        return bool(actions)

    def _do(self, action: Click) -> None:
        """Do what the operator asked for, or say why it cannot be done."""
        try:
            action(self.session)
            self._problem = ""
        except Exception as error:
            said = find_mistake(error)
            if said is None:
                raise
            self._problem = said

    def advance(self, seconds: float) -> None:
        """Let the arm move."""
        self.session.advance(seconds)

    def draw(self) -> None:
        """Show the arm."""
        self.scene.draw()

    def report(self, pace: str) -> None:
        """Show what the cameras see, and how the episode goes."""
        session = self.session
        self.panel.show(session)
        for camera, image in session.view().items():
            factor = max(1, _VIEW // len(image))
            self._views[camera].image = image.repeat(factor, axis=0).repeat(factor, axis=1)
        self._measure()
        problem = self._problem or session.takes.failure
        said = problem or session.hand.said or session.said
        colour = _RED if problem or session.hand.said else INK
        self.panel.status.content = (
            f'<div style="padding:2px 12px;font-size:12px;color:{INK}">{_episode(session)}'
            f"<div>{_outcome(session)}</div>"
            f'<div style="color:{colour}">{escape(said)}</div>'
            f'<div style="color:{_FAINT}">{self._rate:.0f} of {1 / FRAME:.0f} frames per second'
            f"{', writing the dataset' if session.takes.writing else ''}</div></div>"
        )

    def _measure(self) -> None:
        then, steps = self._measured
        now = time.perf_counter()
        if now - then >= _RATE_OVER:
            self._rate = (self.session.steps - steps) / (now - then)
            self._measured = (now, self.session.steps)

    def close(self) -> None:
        """Complete the dataset."""
        self.session.close()


def _episode(session: TeleopSession) -> str:
    kept, wanted = len(session.kept), session.episodes
    if session.recording:
        seconds = session.frames * FRAME
        ended = " The minute is over: keep or discard." if session.full else ""
        return (
            f'<div><b style="color:{_RED}">● recording episode {kept + 1} of {wanted}</b>: '
            f"{session.frames} frames, {seconds:.1f} s.{ended}</div>"
        )
    return f"<div><b>{kept} of {count(wanted, 'episode')} kept</b>, not recording</div>"


def _outcome(session: TeleopSession) -> str:
    outcome = session.outcome
    marks = (
        ("pressed", outcome.pressed),
        ("released", outcome.released),
        ("success", outcome.success),
    )
    return " · ".join(f"<b>{name} ✓</b>" if done else f"{name} –" for name, done in marks)
