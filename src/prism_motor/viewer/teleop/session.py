"""A person moves the twin's arm and records episodes; nothing here knows of a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor.manipulation.demonstrations.collection import SEEDS_APART
from prism_motor.manipulation.demonstrations.recording import Demonstration
from prism_motor.manipulation.demonstrations.takes import Take, Takes
from prism_motor.manipulation.environment import Image, Observation
from prism_motor.manipulation.suites.so101.environment import So101Environment
from prism_motor.sim.so101.outcome import TwinOutcome
from prism_motor.sim.so101.twin import FRAME
from prism_motor.viewer.teleop.hand import TipHand, TipTarget

MOST_FRAMES = 1800
"""Longest episode: a minute."""

_SLACK = 1e-9


class TeleopSession:
    """The twin under an operator's hand, with the episodes that are kept.

    Commands that make no sense now raise an :class:`~prism_motor._checks.InputError` and change
    nothing. Equal seeds and commands at equal frames record equal episodes.

    Args:
        environment: The twin as an environment of its suite.
        takes: Where kept episodes go.
        episodes: How many are wanted in all.
        seed: Seed of the placements.

    Attributes:
        recording: Whether frames are recorded now.
        seed: Seed of the present placement.
        steps: Frames simulated since the beginning.
        said: What the last command has led to.
    """

    def __init__(
        self, environment: So101Environment, takes: Takes, *, episodes: int = 5, seed: int = 1
    ) -> None:
        self.environment, self.takes, self.episodes = environment, takes, episodes
        self.twin = environment.twin
        self.hand = TipHand(self.twin)
        self.recording, self.steps, self.said = False, 0, ""
        self._time = self._simulated = 0.0
        self._seen: list[Observation] = []
        self._done: list[NDArray[np.float32]] = []
        # Placements go on after those of kept episodes.
        first = SEEDS_APART * seed
        used = [take.seed for take in takes.kept if 0 <= take.seed - first < SEEDS_APART]
        self._place(max(used, default=first - 1) + 1)

    # What the operator is shown.

    @property
    def target(self) -> TipTarget:
        """Where the tip shall be."""
        return self.hand.target

    @property
    def outcome(self) -> TwinOutcome:
        """What happened to the thing since the reset."""
        return self.twin.outcome

    @property
    def frames(self) -> int:
        """Frames of the episode that is being recorded."""
        return len(self._done)

    @property
    def kept(self) -> list[Take]:
        """The kept episodes."""
        return self.takes.kept

    @property
    def full(self) -> bool:
        """Whether the episode has reached its greatest length."""
        return self.frames >= MOST_FRAMES

    def view(self) -> dict[str, Image]:
        """Return what the cameras see, by name."""
        if self.recording and self._seen:
            return self._seen[-1].images
        return self.environment.observe(images=True).images

    # How the arm moves.

    def move(self, **changes: Any) -> None:
        """Change fields of the target; raise if it cannot be reached, and keep the last one."""
        self.hand.move(replace(self.target, **changes))

    def nudge(self, x: float, y: float, z: float) -> None:
        """Move the target by some metres."""
        before = self.target.position
        self.move(position=(before[0] + x, before[1] + y, before[2] + z))

    def press(self) -> None:
        """Lower the tip until a button closes, then lift it."""
        self.hand.press()

    def home(self) -> None:
        """Move the arm back to where episodes begin."""
        self.hand.move(self.hand.home)

    # What is recorded.

    def start(self) -> None:
        """Begin an episode at the present placement, with the arm at home."""
        self._check_idle("Start episode")
        if len(self.kept) >= self.episodes:
            raise InputError(
                f"All {self.episodes} episodes are kept. Stop with Ctrl-C, take the last one back, "
                "or ask for more with --episodes."
            )
        self._place(self.seed)
        self._set_recording(True)
        self.said = ""

    def keep(self) -> Take:
        """End the episode and keep it; the thing is put elsewhere."""
        self._check_recording("Stop and keep")
        if not self._done:
            raise InputError("The episode has no frame yet.")
        take = self.takes.keep(self._episode(), seed=self.seed, success=self.outcome.success)
        self._set_recording(False)
        self._place(self.seed + 1)
        self.said = f"Episode {len(self.kept)} kept: {_describe(take)}."
        return take

    def discard(self) -> None:
        """End the episode and forget it; the placement stays."""
        self._check_recording("Discard")
        self._set_recording(False)
        self._place(self.seed)
        self.said = "Episode discarded."

    def undo(self) -> Take:
        """Remove the last kept episode from the dataset."""
        self._check_idle("Undo last")
        take = self.takes.undo()
        self.said = f"Episode {len(self.kept) + 1} taken back: {_describe(take)}."
        return take

    def record_again(self) -> None:
        """Begin the present episode anew, or else the last kept one, which is removed."""
        if self.recording:
            self.discard()
        else:
            self._place(self.takes.undo().seed)
        self.start()

    def next_placement(self) -> None:
        """Put the thing elsewhere."""
        self._check_idle("Next placement")
        self._place(self.seed + 1)

    def advance(self, seconds: float) -> None:
        """Let time pass, in whole frames."""
        self._time += seconds
        while self._simulated + FRAME <= self._time + _SLACK:
            self._simulated += FRAME
            self.step()

    def step(self) -> None:
        """Simulate one frame; record what was seen before it, and what was commanded."""
        recorded = self.recording and not self.full
        seen = self.environment.observe(images=True) if recorded else None
        action = self.hand.act().astype(np.float32)
        if seen is not None:
            self._seen.append(seen)
            self._done.append(action)
        self.environment.advance(action)
        self.steps += 1

    def close(self) -> None:
        """Forget an unfinished episode, complete the dataset and free the renderer."""
        try:
            self.takes.close()
        finally:
            self.environment.close()

    def _place(self, seed: int) -> None:
        self.seed = seed
        self.environment.reset(seed=seed, images=False)
        self.hand.reset()

    def _set_recording(self, recording: bool) -> None:
        self.recording = recording
        self._seen, self._done = [], []
        self.takes.hold(recording)

    def _episode(self) -> Demonstration:
        return Demonstration(
            states=np.stack([seen.state for seen in self._seen]),
            objects=np.stack([seen.objects for seen in self._seen]),
            actions=np.stack(self._done),
            images={
                camera: np.stack([seen.images[camera] for seen in self._seen])
                for camera in self.environment.cameras
            },
        )

    def _check_idle(self, what: str) -> None:
        if self.recording:
            raise InputError(f"{what}: an episode is being recorded; keep or discard it first.")

    def _check_recording(self, what: str) -> None:
        if not self.recording:
            raise InputError(f"{what}: no episode is being recorded; start one first.")


def _describe(take: Take) -> str:
    return f"{take.frames} frames, {'a success' if take.success else 'not a success'}"
