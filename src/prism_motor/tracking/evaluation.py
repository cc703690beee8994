"""How well a policy tracks clips, beside what needs no policy: held poses and open-loop drives.

A clip is cut into pieces; a robot begins in the first frame of a piece and acts until its last,
whatever happens. EMD does not see a fall, so every episode has the share of upright frames, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import EvaluationError, InputError
from prism_motor.tracking.conditions import find_condition
from prism_motor.tracking.env import CONTACT, TrackingEnv
from prism_motor.tracking.metrics import (
    earth_movers_distance,
    foot_slip,
    joint_distances,
    root_drift,
    time_to_fall,
)
from prism_motor.tracking.prompts.latents import tracking_prompt
from prism_motor.tracking.task import StartConfig

if TYPE_CHECKING:
    from prism_motor.tracking.policy import TrackingPolicy
    from prism_motor.tracking.references import References
    from prism_motor.tracking.task import TrackingTask

_ROWS = 32
"""Rows of a pass through a policy. Rounding depends on them, and what falls depends on rounding, so
they are always as many: then it does not matter which pieces are tracked at the same time."""

_ENDLESS = StartConfig(lying=0.0, duration=1000.0, after_fall=None)


class Piece(NamedTuple):
    """Part of a clip."""

    clip: str
    """Name of the clip."""
    number: int
    """Which piece of it, from 0."""
    first: int
    """Its first frame among all clips."""
    frames: int
    """Frames, at least two."""


@dataclass(frozen=True)
class TrackingEpisode:
    """One tracked piece of a clip."""

    KEY: ClassVar = ("clip", "piece")
    """Fields that identify it within an evaluation."""

    condition: str
    """Name of the condition."""
    evaluation_seed: int
    """Seed of what is random."""
    clip: str
    """Name of the clip."""
    piece: int
    """Which piece of the clip, from 0."""
    seconds: float
    """Length, s."""
    stood: bool
    """Whether the robot was upright in every frame."""
    upright: float
    """Share of frames in which it was."""
    time_to_fall: float
    """Seconds until it was first not upright, or the whole length."""
    emd: float
    """Earth mover's distance between the joint angles of both, rad."""
    joint_distance: float
    """Mean absolute difference of joint angles, mrad."""
    velocity_distance: float
    """The same of their change between frames, mrad."""
    proximity: float
    """Share of frames with the whole pose close to the clip's."""
    root_drift: float
    """Mean horizontal distance between both paths of the pelvis, m."""
    foot_slip: float
    """Mean horizontal speed of feet that touch the ground, m/s."""
    open_loop_upright: float
    """Upright share of drives that aim at each next frame of the clip."""
    open_loop_emd: float
    """Their EMD, rad."""
    default_pose_upright: float
    """Upright share of drives that hold the default pose."""
    default_pose_emd: float
    """Their EMD, rad."""
    mean_pose_upright: float
    """Upright share of drives that hold the mean pose of the clip."""
    mean_pose_emd: float
    """Their EMD, rad."""


@dataclass(frozen=True)
class TrackedPiece:
    """What a robot did along a piece; the first frame is the start."""

    piece: Piece
    """The piece."""
    qpos: np.ndarray
    """Positions (T, 7 + joints)."""
    upright: np.ndarray
    """Whether it was upright (T,)."""
    foot_velocity: np.ndarray
    """Velocities of the feet (T, feet, 3), m/s."""
    contact: np.ndarray
    """Which feet touched the ground (T, feet)."""


Controller = Callable[[Tensor, Tensor], Tensor]
"""Maps observations (N, size) and frames of all clips (N,) to actions (N, joints)."""


def cut_pieces(references: References, seconds: float, dt: float) -> list[Piece]:
    """Cut all clips into pieces; a last one of less than a second joins the one before it."""
    longest = max(2, round(seconds / dt))
    pieces = []
    for index, name in enumerate(references.names):
        first, end = int(references.starts[index]), int(references.starts[index + 1])
        cuts = list(range(first, end, longest))
        if len(cuts) > 1 and (end - cuts[-1]) * dt < 1.0:
            cuts.pop()
        for number, (start, stop) in enumerate(zip(cuts, [*cuts[1:], end], strict=True)):
            pieces.append(Piece(name, number, start, stop - start))
    return pieces


def prompt_clips(policy: TrackingPolicy, references: References, window: int) -> Tensor:
    """Return the latents of all frames of all clips (T, d), those of the coming frames."""
    device = next(policy.parameters()).device
    prompts = []
    for index in range(len(references.names)):
        seen = references.observations(policy.layout, index).to(device)
        latents = tracking_prompt(policy, seen, window)
        prompts.append(torch.cat([latents, latents[-1:]]))
    return torch.cat(prompts)


def policy_controller(policy: TrackingPolicy, references: References, window: int) -> Controller:
    """Return the controller that prompts a policy with the coming frames of the clip."""
    table = prompt_clips(policy, references, window)
    device = table.device

    def control(observations: Tensor, frames: Tensor) -> Tensor:
        found = act_in_blocks(policy, observations.to(device), table[frames.to(device)])
        return found.to(observations.device)

    return control


def act_in_blocks(
    act: Callable[[Tensor, Tensor], Tensor], observations: Tensor, latents: Tensor
) -> Tensor:
    """Return the actions of all robots, from passes that always have the same number of rows."""
    blocks = zip(observations.split(_ROWS), latents.split(_ROWS), strict=True)
    return torch.cat([act(_fill(one), _fill(other))[: len(one)] for one, other in blocks])


def _fill(rows: Tensor) -> Tensor:
    """Return rows (n, size), and zeros up to what a pass has."""
    return torch.cat([rows, rows.new_zeros(_ROWS - len(rows), rows.shape[1])])


def baselines(references: References, units: Tensor) -> dict[str, Controller]:
    """Return what needs no policy: open-loop drives, and two held poses."""
    aimed = torch.cat([references.actions(i, units) for i in range(len(references.names))])
    mean = torch.cat(
        [
            references.hold(i, units).expand(int(references.lengths[i]), -1)
            for i in range(len(references.names))
        ]
    )
    return {
        "open_loop": lambda _, frames: aimed[frames],
        "default_pose": lambda _, frames: torch.zeros(len(frames), aimed.shape[1]),
        "mean_pose": lambda _, frames: mean[frames],
    }


def track(
    control: Controller,
    task: TrackingTask,
    references: References,
    pieces: Sequence[Piece],
    *,
    condition: str = "nominal",
    seed: int = 0,
    threads: int = 1,
    report: Callable[[], None] | None = None,
) -> list[TrackedPiece]:
    """Let one robot track each piece, all at the same time.

    Args:
        control: What acts.
        task: The task that it was trained on.
        references: The clips.
        pieces: What to track.
        condition: Name of a condition in :data:`prism_motor.tracking.conditions.CONDITIONS`.
        seed: Seed of whatever is random in it.
        threads: Threads of the simulation; they do not change the result.
        report: Called after every control step.
    """
    random = find_condition(condition, task.randomisation)
    changed = replace(task, starts=_ENDLESS, randomisation=random)
    env = TrackingEnv(changed, references, len(pieces), seed=seed, threads=threads)
    first = torch.tensor([piece.first for piece in pieces])
    lengths = torch.tensor([piece.frames for piece in pieces])
    env.begin_at(first)
    recorder = _Recorder(env, int(lengths.max()))
    recorder.note(0)
    with torch.inference_mode():
        for step in range(1, int(lengths.max())):
            frames = torch.minimum(first + step - 1, first + lengths - 2)
            actions = control(env.observations, frames)
            if not torch.isfinite(actions).all():
                bad = int((~torch.isfinite(actions)).nonzero()[0, 0])
                raise EvaluationError(
                    f"In frame {step} of {pieces[bad].clip} an action is not finite: either the "
                    "policy's weights or the simulation diverged; evaluate another checkpoint."
                )
            env.step(actions)
            recorder.note(step)
            done = (lengths == step + 1).nonzero()[:, 0]
            if len(done):
                env.engine.rest(done.numpy())
            if report is not None:
                report()
    return [recorder.read(index, piece) for index, piece in enumerate(pieces)]


class _Recorder:
    """Notes what all robots do."""

    def __init__(self, env: TrackingEnv, frames: int) -> None:
        self._env = env
        robots, feet = env.envs, len(env.robot.feet)
        self._qpos = np.zeros((frames, *env.engine.qpos.shape))
        self._velocity = np.zeros((frames, robots, feet, 3))
        self._contact = np.zeros((frames, robots, feet), dtype=bool)
        self._upright = np.zeros((frames, robots), dtype=bool)
        self._names = [
            tuple(f"{foot}_{what}" for foot in env.robot.feet) for what in ("velocity", "force")
        ]

    def note(self, frame: int) -> None:
        engine = self._env.engine
        self._qpos[frame] = engine.qpos
        velocity, force = (engine.sensors(names) for names in self._names)
        self._velocity[frame] = velocity
        self._contact[frame] = np.linalg.norm(force, axis=-1) > CONTACT
        self._upright[frame] = self._env.stands().numpy()

    def read(self, index: int, piece: Piece) -> TrackedPiece:
        within = slice(0, piece.frames)
        return TrackedPiece(
            piece,
            self._qpos[within, index],
            self._upright[within, index],
            self._velocity[within, index],
            self._contact[within, index],
        )


def measure(tracked: TrackedPiece, references: References, dt: float) -> dict[str, float | bool]:
    """Return the measures of a tracked piece, without those of the baselines."""
    piece = tracked.piece
    wanted = references.qpos[piece.first : piece.first + piece.frames]
    found = tracked.qpos
    distances = joint_distances(found[:, 7:], wanted[:, 7:])
    return {
        "seconds": (piece.frames - 1) * dt,
        "stood": bool(tracked.upright.all()),
        "upright": float(tracked.upright.mean()),
        "time_to_fall": time_to_fall(tracked.upright, dt),
        "emd": earth_movers_distance(found[:, 7:], wanted[:, 7:]),
        "joint_distance": distances["joint"],
        "velocity_distance": distances["velocity"],
        "proximity": distances["proximity"],
        "root_drift": root_drift(found[:, :3], wanted[:, :3]),
        "foot_slip": foot_slip(tracked.foot_velocity, tracked.contact),
    }


def find_pieces(pieces: Sequence[Piece], keys: Sequence[tuple[str, int]]) -> list[Piece]:
    """Return pieces by clip and number."""
    known = {(piece.clip, piece.number): piece for piece in pieces}
    missing = [key for key in keys if key not in known]
    if missing:
        raise InputError(f"There is no piece {missing[0][1]} of a clip {missing[0][0]!r}.")
    return [known[key] for key in keys]
