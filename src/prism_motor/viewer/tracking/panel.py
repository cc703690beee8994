"""The user's controls of a tracking policy: what it is asked for, and what happens to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import viser

from prism_motor.tracking.prompts.prompter import Prompt
from prism_motor.tracking.prompts.reward_names import KINDS, example_rewards
from prism_motor.viewer.controls import Click, DisturbControls, ViewControls

if TYPE_CHECKING:
    from prism_motor.viewer.tracking.session import TrackingSession

_KINDS = {"a motion": "motion", "a pose": "goal", "a reward": "reward"}


@dataclass(frozen=True)
class TrackingControls:
    """Values of the sliders and boxes."""

    prompt: Prompt
    """What the policy is asked for."""
    fade: float
    """Seconds from one latent to the next."""
    every: float
    """Seconds after which it is the next prompt's turn; 0: never."""
    ghost: bool
    """Whether the reference is shown."""
    beside: bool
    """Whether it is shown beside the robot."""
    picks_up: bool
    """Whether a fallen robot is put back."""
    friction: float
    """Sliding friction."""
    payload: float
    """Mass on the pelvis, kg."""
    paused: bool
    """Whether the simulation is paused."""
    speed: float
    """Simulated seconds per second."""
    follow: bool
    """Whether the view follows the robot."""


class TrackingPanel:
    """The controls on the right of the browser window.

    Args:
        gui: The GUI of the browser's server.
        session: What is controlled; gives choices and first values.
    """

    def __init__(self, gui: viser.GuiApi, session: TrackingSession) -> None:
        self._prompter, self._gui = session.prompter, gui
        first = session.prompted.prompt
        self.status = gui.add_html("")
        self._add_prompt(session, first)
        self._add_reference()
        self.disturb = DisturbControls(gui, session.mass, session.friction)
        self.view = ViewControls(gui)

    def _add_prompt(self, session: TrackingSession, first: Prompt) -> None:
        gui, motions = self._gui, session.prompter.references.names
        asked = [one.name for one in session.playlist if one.kind == "reward"]
        rewards = tuple(dict.fromkeys([*example_rewards(), *asked]))
        motion = first.name if first.kind != "reward" else motions[0]
        with gui.add_folder("Prompt"):
            self.kind = gui.add_dropdown(
                "Ask for", tuple(_KINDS),
                initial_value=next(label for label, kind in _KINDS.items() if kind == first.kind),
            )  # fmt: skip
            self.motion = gui.add_dropdown("Motion", motions, initial_value=motion)
            self.pose = gui.add_slider(
                "Pose at, %", 0, 100, 1, round(100 * self._share(first)),
                hint="Where in the motion the pose is that is held.",
            )  # fmt: skip
            self.reward = gui.add_dropdown(
                "Reward", rewards,
                initial_value=first.name if first.kind == "reward" else rewards[0],
            )  # fmt: skip
            self._meaning = gui.add_html("")
            self.fade = gui.add_slider(
                "Blend over, s", 0.0, 3.0, 0.1, session.fade,
                hint="How long it takes from one latent to the next, along a great circle.",
            )  # fmt: skip
            self.every = gui.add_slider(
                "Next after, s", 0.0, 30.0, 0.5, session.every,
                hint="The prompts of the command take turns; 0: they do not.",
                visible=len(session.playlist) > 1,
            )  # fmt: skip
            self.picks_up = gui.add_checkbox(
                "Pick up", True, hint="Put a fallen robot back to where its prompt begins."
            )
        for control in (self.kind, self.motion, self.reward):
            control.on_update(lambda _: self._show_choices())
        self._show_choices()

    def _share(self, prompt: Prompt) -> float:
        longest = self._prompter.seconds(prompt.name) if prompt.kind == "goal" else 0.0
        return prompt.seconds / longest if longest else 0.0

    def _show_choices(self) -> None:
        """Show the controls of the kind of prompt that is chosen, and what a reward means."""
        kind = _KINDS[self.kind.value]
        self.motion.visible = kind != "reward"
        self.pose.visible = kind == "goal"
        self.reward.visible = kind == "reward"
        self._meaning.visible = kind == "reward"
        meaning = next(one for one in KINDS if one.read(self.reward.value) is not None)
        self._meaning.content = (
            '<div style="padding:0 12px 4px;font-size:11px;color:#7b8794">'
            f"<b>{meaning.grammar}</b>: {meaning.meaning}</div>"
        )

    def _add_reference(self) -> None:
        with self._gui.add_folder("Reference"):
            self.ghost = self._gui.add_checkbox("Show it", True)
            self.beside = self._gui.add_checkbox("Beside the robot", False)

    def show_prompt(self, prompt: Prompt) -> None:
        """Show a prompt whose turn has come."""
        self.kind.value = next(label for label, kind in _KINDS.items() if kind == prompt.kind)
        if prompt.kind == "reward":
            self.reward.value = prompt.name
        else:
            self.motion.value = prompt.name
            self.pose.value = round(100 * self._share(prompt))
        self._show_choices()

    def prompt(self) -> Prompt:
        """Return the prompt that is chosen."""
        kind = _KINDS[self.kind.value]
        if kind == "reward":
            return Prompt("reward", self.reward.value)
        if kind == "motion":
            return Prompt("motion", self.motion.value)
        seconds = self.pose.value / 100 * self._prompter.seconds(self.motion.value)
        return Prompt("goal", self.motion.value, round(seconds, 2))

    def read(self) -> TrackingControls:
        """Return the current values."""
        return TrackingControls(
            prompt=self.prompt(),
            fade=self.fade.value,
            every=self.every.value,
            ghost=self.ghost.value,
            beside=self.beside.value,
            picks_up=self.picks_up.value,
            friction=self.disturb.friction.value,
            payload=self.disturb.payload.value,
            paused=self.view.paused.value,
            speed=self.view.speed.value,
            follow=self.view.follow.value,
        )

    def take_clicks(self) -> list[Click]:
        """Return the clicks since the last call, as functions to apply to the session."""
        return [*self.disturb.clicks.take(), *self.view.clicks.take()]
