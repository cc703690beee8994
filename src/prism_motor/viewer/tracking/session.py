"""One robot under a tracking policy, in real time: prompted, pushed, loaded and put back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import EvaluationError, InputError, PrismError
from prism_motor.sim.dynamics import Dynamics
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.prompts.blending import Fade
from prism_motor.tracking.prompts.reward_names import find_reward
from prism_motor.tracking.task import NOMINAL, StartConfig
from prism_motor.viewer.pushes import Push, added_velocity
from prism_motor.viewer.robots import between_poses
from prism_motor.viewer.tracking.placing import Placing, yaw_of

if TYPE_CHECKING:
    from prism_motor.tracking.prompts.prompter import Prompt, Prompted, Prompter

REMEMBERED = 10.0
"""Length of the trace, s."""
LYING = 2.0
"""How long a fallen robot is left lying before it is put back, s."""

_ENDLESS = StartConfig(lying=0.0, duration=1000.0, after_fall=None)
_FOREVER = 10_000
"""Control steps after which the environment's clock is set back; nothing ends an episode."""


class TrackedMoment(NamedTuple):
    """What happened in a control step."""

    time: float
    """On the session's clock, s."""
    upright: bool
    """Whether the robot is."""
    height: float
    """Height of the pelvis, m."""
    wanted: float
    """That of the reference, m; NaN without one."""
    apart: float
    """Mean absolute difference of joint angles from the reference, rad; NaN without one."""
    reward: float
    """The reward that is maximised; NaN without one."""


class TrackingSession:
    """A robot and what it is asked for; independent of any browser.

    Args:
        name: Name of the policy.
        prompter: The policy, with all that it can be asked for.
        prompts: What it is asked for first; the others follow when it is their turn.

    Attributes:
        time: Simulated time, s.
        prompted: What it does now.
        waiting: The reward whose latent is being looked for, if any.
        problem: Why the last prompt could not be made, if so.
        fade: Seconds from one latent to the next.
        every: Seconds after which it is the next prompt's turn; 0: never.
        picks_up: Whether a fallen robot is put back.
        falls: How often it has fallen.
        diverged: How often its physics diverged, after which it starts again.
        lying: Seconds since it fell; ``None`` while it is upright.
        pushed: The last push.
        trace: The last seconds.
    """

    def __init__(self, name: str, prompter: Prompter, prompts: Sequence[Prompt]) -> None:
        if not prompts:
            raise InputError("A session needs at least one prompt to begin with.")
        self.name, self.prompter, self.playlist = name, prompter, tuple(prompts)
        task = replace(prompter.task, starts=_ENDLESS, randomisation=NOMINAL)
        self.env = TrackingEnv(task, prompter.references, 1, seed=0)
        self.control_dt = task.control_dt
        self.mass = float(self.env.engine.model.body_mass.sum())
        self.friction, self.payload = 1.0, 0.0
        self.time, self._clock = 0.0, 0.0
        self.fade, self.every, self.picks_up = 0.5, 5.0 if len(self.playlist) > 1 else 0.0, True
        self.problem, self.falls, self._turn = "", 0, 0
        self.diverged = 0
        self.pushed: Push | None = None
        self.trace: deque[TrackedMoment] = deque(maxlen=round(REMEMBERED / self.control_dt))
        self._worker = ThreadPoolExecutor(1, "prism-prompt")
        self._search: tuple[Prompt, Future[Prompted]] | None = None
        self._device = next(prompter.policy.parameters()).device
        self._use(prompter.make(self.turn))
        self.restart()

    def close(self) -> None:
        """Stop looking for latents."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    # --- prompts ---

    @property
    def waiting(self) -> Prompt | None:
        """The reward whose latent is being looked for."""
        return None if self._search is None else self._search[0]

    def ask(self, prompt: Prompt) -> None:
        """Prompt the policy; for a reward the robot goes on as before until a latent is found."""
        self.problem = ""
        if self._search is not None and self.waiting != prompt:
            self._search[1].cancel()  # if it has not begun yet: at most one search ever waits
            self._search = None
        if prompt.kind != "reward":
            self._use(self.prompter.make(prompt))
        elif self._search is None:
            self._search = (prompt, self._worker.submit(self.prompter.make, prompt))

    def _use(self, prompted: Prompted) -> None:
        before: Tensor | None = getattr(self, "latent", None)
        self._before = prompted.latents[0] if before is None else before
        self.prompted, self._step, self._since = prompted, 0, self._clock
        self.latent = self._before
        judge = prompted.prompt.kind == "reward"
        self._reward = find_reward(prompted.prompt.name) if judge else None
        self._place()

    def _place(self) -> None:
        """Put the reference where the robot is."""
        frames = self.prompted.frames
        self._placing: Placing | None = None
        if frames is not None:
            aim = frames[0] if len(self.prompted) == 1 else frames[0] - 1
            wanted = self.prompter.references.qpos[aim]
            self._placing = Placing.between(wanted, self.env.engine.qpos[0])
        self._ghost_before = self.ghost

    def _take_found(self) -> None:
        """Go on with what the search has found."""
        if self._search is None or not self._search[1].done():
            return
        (_, found), self._search = self._search, None
        try:
            self._use(found.result())
        except PrismError as error:
            self.problem = str(error)

    def _take_turns(self) -> None:
        due = self.every > 0 and self._clock - self._since >= self.every
        if due and len(self.playlist) > 1 and self._search is None:
            self._turn = (self._turn + 1) % len(self.playlist)
            self.ask(self.playlist[self._turn])

    @property
    def turn(self) -> Prompt:
        """The prompt of the command whose turn it is."""
        return self.playlist[self._turn]

    # --- time ---

    def advance(self, seconds: float) -> None:
        """Advance time; the robot is simulated to the end of its current control step."""
        self.time += seconds
        while self._clock < self.time:
            self.step()

    @torch.inference_mode()
    def step(self) -> None:
        """Advance by one control step."""
        self._take_found()
        self._take_turns()
        if self.lying is not None and self.lying >= LYING and self.picks_up:
            self._begin()
        if self._step >= len(self.prompted) and len(self.prompted) > 1:
            self._step = 0
            self._place()
        self._qpos_before, self._ghost_before = self.qpos, self.ghost
        latents = self.prompted.latents
        now = latents[min(self._step, len(latents) - 1)]
        self.latent = Fade(self._since, self.fade)(self._before, now, self._clock)
        seen = self.env.observations.to(self._device)
        action = self.prompter.policy(seen, self.latent[None].to(self._device)).cpu()
        if not torch.isfinite(action).all():
            raise EvaluationError(
                f"The action of {self.name} is not finite: its weights are broken. Play another "
                "checkpoint."
            )
        if int(self.env.clocks[0]) > _FOREVER:
            self.env.clocks.zero_()
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is put right below
            outcome = self.env.step(action)
        self._step += 1
        self._clock += self.control_dt
        if self.env.engine.diverged()[0]:
            self.diverged += 1
            self._begin()
            return
        self._judge(bool(outcome.upright[0]))
        self._note(outcome.qpos, outcome.qvel)

    def _judge(self, upright: bool) -> None:
        if upright:
            self.lying = None
        elif self.lying is None:
            self.lying, self.falls = 0.0, self.falls + 1
        else:
            self.lying += self.control_dt
        if self.pushed is not None:
            self.pushed.judge(self._clock, self.lying is not None)

    def _note(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        ghost = self.ghost
        wanted, apart = float("nan"), float("nan")
        if ghost is not None:
            wanted, apart = float(ghost[2]), float(np.abs(qpos[0, 7:] - ghost[7:]).mean())
        reward = float("nan") if self._reward is None else float(self._reward(qpos, qvel)[0])
        up = self.lying is None
        self.trace.append(TrackedMoment(self._clock, up, float(qpos[0, 2]), wanted, apart, reward))

    @property
    def upright(self) -> float:
        """Share of the last seconds in which the robot was upright; NaN before the first."""
        return float(np.mean([one.upright for one in self.trace])) if self.trace else float("nan")

    # --- poses ---

    @property
    def qpos(self) -> np.ndarray:
        """The robot's state now."""
        return self.env.engine.qpos[0].copy()

    @property
    def ghost(self) -> np.ndarray | None:
        """The state that the reference has now; ``None`` without one."""
        if self._placing is None or self.prompted.frames is None:
            return None
        frames = self.prompted.frames
        # After step k the robot should be in the frame that step k aimed at.
        frame = frames[0] - 1 if self._step == 0 and len(frames) > 1 else frames[
            min(max(self._step - 1, 0), len(frames) - 1)
        ]  # fmt: skip
        return self._placing(self.prompter.references.qpos[frame])

    def poses(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the states of robot and reference at this time within the last control step."""
        share = min(1.0, max(0.0, 1 - (self._clock - self.time) / self.control_dt))
        ghost, before = self.ghost, self._ghost_before
        if ghost is not None and before is not None:
            ghost = between_poses(before, ghost, share)
        return between_poses(self._qpos_before, self.qpos, share), ghost

    # --- the user ---

    def change(self, *, friction: float, payload: float) -> None:
        """Change sliding friction and the mass on the pelvis (kg) under way."""
        self.friction, self.payload = friction, payload
        self.env.engine.set_dynamics(Dynamics(friction=friction, base_mass=payload))

    def push(self, direction: str, speed: float) -> None:
        """Add a velocity (m/s) to the whole robot, in its own axes."""
        engine = self.env.engine
        added = added_velocity(direction, speed, yaw_of(engine.qpos[0, 3:7]))
        engine.push(np.arange(1), engine.qvel[:, :2] + added, engine.qvel[:, 3:6])
        self.pushed = Push(direction, speed, self._clock)

    @torch.inference_mode()
    def restart(self) -> None:
        """Put the robot where the prompt begins, and forget the past."""
        self.pushed = None
        self.trace.clear()
        self.falls = 0
        self._begin()

    def _begin(self) -> None:
        """Put the robot where the prompt begins."""
        self.env.begin_at(torch.tensor([self.prompted.start]))
        self.lying: float | None = None
        self._step, self._since = 0, self._clock
        self._before = self.latent = self.prompted.latents[0]
        self._place()
        self._qpos_before = self.qpos
