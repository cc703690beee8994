"""Prompts by name, made into latents: a motion, a pose of one that is held, or a reward."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError, PrismError, check_choice, show
from prism_motor.tracking.metrics import Upright
from prism_motor.tracking.motions.library import find_clips, shipped_clips
from prism_motor.tracking.motions.sampling import make_motion
from prism_motor.tracking.prompts.latents import goal_prompt, tracking_prompt
from prism_motor.tracking.prompts.reward_names import find_reward
from prism_motor.tracking.prompts.reward_search import FoundPrompt, SearchConfig, search_reward
from prism_motor.tracking.references import References

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prism_motor.tracking.policy import TrackingPolicy
    from prism_motor.tracking.prompts.states import PromptStates
    from prism_motor.tracking.task import TrackingTask

_FILE = re.compile(r"(?:motion:|goal:)?(?P<file>.+\.npz)(?:@.*)?")
_GOAL = re.compile(r"(.+?)(?:@(-?\d+(?:\.\d+)?))?")


@dataclass(frozen=True)
class Prompt:
    """What a policy is asked for."""

    kind: Literal["motion", "goal", "reward"]
    """A motion to track, a pose to hold, or a reward to maximise."""
    name: str
    """Name of the motion or the reward."""
    seconds: float = 0.0
    """When in the motion the pose is, s."""

    def __str__(self) -> str:
        if self.kind == "goal":
            return f"goal:{self.name}@{self.seconds:g}"
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class Prompted:
    """A prompt as latents."""

    prompt: Prompt
    """The prompt."""
    latents: Tensor
    """One latent per control step (T, d), on the CPU; a single one is held."""
    frames: np.ndarray | None
    """The frame of all clips that each step aims at (T,); ``None`` for a reward."""
    start: int
    """Frame of all clips in which a robot begins."""
    source: str
    """Where the latents come from, for people."""

    def __len__(self) -> int:
        return len(self.latents)


def load_library(
    task: TrackingTask, more: Sequence[str] = ()
) -> tuple[References, frozenset[str], str]:
    """Return a run's clips with all shipped ones, the names of the run's, and a note if any lacks.

    Args:
        task: The task of the run.
        more: Files of further clips.
    """
    note = ""
    try:
        own = find_clips(task.clips)
    except (PrismError, OSError) as error:
        own, note = [], f"The clips that the policy was trained on are not here: {error}"
    trained = frozenset(clip.name for clip in own)
    clips = {clip.name: clip for clip in [*find_clips(shipped_clips()), *own]}
    clips |= {clip.name: clip for clip in find_clips(more)} if more else {}
    chosen = sorted(clips.values(), key=lambda clip: (clip.name not in trained, clip.name.lower()))
    return References([make_motion(clip, 1 / task.control_dt) for clip in chosen]), trained, note


def motion_files(prompts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files of clips that some prompts name, and the prompts by names of motions."""
    files, named = [], []
    for text in prompts:
        found = _FILE.fullmatch(text)
        if found is not None:
            files.append(found["file"])
            text = text.replace(found["file"], find_clips([found["file"]])[0].name)
        named.append(text)
    return list(dict.fromkeys(files)), named


class Prompter:
    """Makes latents of prompts for one policy.

    Args:
        policy: The policy.
        task: Its task.
        references: The motions that it can be asked for.
        states: What latents of rewards are made of.
        trained: Names of the motions that it was trained on.
        search: How latents of rewards are looked for.
    """

    def __init__(
        self,
        policy: TrackingPolicy,
        task: TrackingTask,
        references: References,
        states: PromptStates,
        *,
        trained: frozenset[str] = frozenset(),
        search: SearchConfig | None = None,
    ) -> None:
        self.policy, self.task, self.references, self.states = policy, task, references, states
        self.trained, self._search = trained, search or SearchConfig()
        self._device = next(policy.parameters()).device
        self.home = _calmest(references)
        self._found: dict[str, FoundPrompt] = {}

    def read(self, text: str) -> Prompt:
        """Read a prompt: ``motion:wave``, ``goal:wave@1.5``, ``reward:crouch-0.5``.

        A name without a kind is a motion's, else a reward's.
        """
        kind, colon, name = text.partition(":")
        if not colon:
            kind, name = ("motion" if text in self.references.names else "reward"), text
        if kind == "motion":
            return Prompt("motion", self._motion(name))
        if kind == "goal":
            found = _GOAL.fullmatch(name)
            if found is None:
                raise InputError(
                    f"Unknown prompt {show(text)}; poses are written goal:MOTION@SECONDS."
                )
            return self.goal(self._motion(found[1]), float(found[2] or 0.0))
        if kind == "reward":
            try:
                return Prompt("reward", find_reward(name).name)
            except InputError as error:
                if colon:
                    raise
                known = ", ".join(self.references.names)
                raise InputError(
                    f"{show(text)} is neither a motion nor a reward. Motions: {known}. {error}"
                ) from None
        raise InputError(
            f"Unknown prompt {show(text)}; prompts are motion:NAME, goal:NAME@SECONDS and "
            "reward:NAME."
        )

    def _motion(self, name: str) -> str:
        return check_choice("motion", name, self.references.names)

    def goal(self, motion: str, seconds: float) -> Prompt:
        """Return the prompt of a pose, or raise if it is outside of its motion."""
        longest = self.seconds(motion)
        if not 0 <= seconds <= longest + 1e-6:
            raise InputError(
                f"{motion} is {longest:.2f} s long; a pose of it is at 0 to {longest:.2f} s, got "
                f"{seconds:g}."
            )
        return Prompt("goal", motion, seconds)

    def seconds(self, motion: str) -> float:
        """Return the length of a motion, s."""
        length = self.references.lengths[self.references.names.index(motion)]
        return float((length - 1) * self.task.control_dt)

    def make(self, prompt: Prompt) -> Prompted:
        """Make the latents of a prompt; those of a reward take a while the first time."""
        if prompt.kind == "motion":
            return self._track(prompt)
        if prompt.kind == "goal":
            return self._hold(prompt)
        return self._maximise(prompt)

    @torch.inference_mode()
    def _track(self, prompt: Prompt) -> Prompted:
        references = self.references
        index = references.names.index(prompt.name)
        seen = references.observations(self.policy.layout, index).to(self._device)
        latents = tracking_prompt(self.policy, seen, self.task.ahead).cpu()
        first, ahead = int(references.starts[index]), self.task.ahead
        coming = "each next frame" if ahead == 1 else f"the next {ahead} frames"
        return Prompted(
            prompt,
            latents,
            first + 1 + np.arange(len(latents)),
            first,
            f"backward map of {coming} of {prompt.name}, {self._origin(prompt.name)}",
        )

    @torch.inference_mode()
    def _hold(self, prompt: Prompt) -> Prompted:
        references = self.references
        index = references.names.index(prompt.name)
        within = min(
            round(prompt.seconds / self.task.control_dt), int(references.lengths[index]) - 1
        )
        frames = references.frames(self.policy.layout, index)
        parts = {
            name: value[within : within + 1].to(self._device)
            for name, value in vars(frames).items()
        }
        one = replace(frames, **parts)
        return Prompted(
            prompt,
            goal_prompt(self.policy, one).cpu(),
            references.starts[index] + np.array([within]),
            self.home,
            f"backward map of {prompt.name} at {prompt.seconds:.2f} s, at rest, "
            f"{self._origin(prompt.name)}",
        )

    def _maximise(self, prompt: Prompt) -> Prompted:
        if prompt.name not in self._found:
            self._found[prompt.name] = search_reward(
                self.policy,
                self.task,
                self.references,
                self.states,
                find_reward(prompt.name),
                start=self.home,
                poses=self._known(),
                config=self._search,
            )
        found, search = self._found[prompt.name], self._search
        return Prompted(
            prompt,
            found.latent[None],
            None,
            self.home,
            f"{self.states.source}, best reward among them {found.reached:.2g}; best of "
            f"{len(found.scores)} latents, {search.seconds:g} s after {search.settling:g} s: mean "
            f"reward {found.score:.2g} ({min(found.scores):.2g} to {max(found.scores):.2g})",
        )

    def _known(self) -> np.ndarray:
        """Return the poses of all motions that the policy was trained on (N, 36)."""
        references = self.references
        of_clip = np.repeat(np.arange(len(references.names)), references.lengths)
        known = [name in self.trained for name in references.names]
        return references.qpos[np.array(known)[of_clip]]

    def _origin(self, motion: str) -> str:
        return "which it was trained on" if motion in self.trained else "which it never saw"


def _calmest(references: References) -> int:
    """Return the upright frame with the smallest velocities."""
    x, y = references.qpos[:, 4], references.qpos[:, 5]
    vertical = 1 - 2 * (x * x + y * y)
    gravity = np.stack([np.zeros_like(vertical), np.zeros_like(vertical), -vertical], axis=1)
    up = Upright()(references.qpos[:, 2], gravity)
    speed = np.linalg.norm(references.qvel, axis=1) + np.where(up, 0.0, np.inf)
    return int(np.argmin(speed)) if up.any() else 0
