"""Tracking: from measurements and latents to joint targets, in a simulation or on a robot."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .clips import OFF_SPHERE, Clip
from .contracts import is_tracking
from .control import LARGEST, Reading, SafeController, vector
from .files import Export
from .rules import RunnerError, SafetyStop
from .simulation import HOLD_SECONDS, advance, diverged, import_mujoco, read, rotation


@dataclass(frozen=True)
class TrackedClip:
    """What happened while a clip was tracked."""

    seconds: float
    """Time until the stop or the end."""
    stop: SafetyStop | None
    """Why the controller stopped; ``None`` if it did not."""
    upright: np.ndarray
    """Whether the robot was upright, per frame (T,); after a stop it is not."""
    qpos: np.ndarray
    """Positions per frame until the stop."""
    actions: np.ndarray
    """Applied action of every control step."""
    emd: float
    """Earth mover's distance between the joint angles of both until the stop, rad."""


class Tracker(SafeController):
    """The policy and everything around it: observation, history, actions to joint targets.

    A command is a latent, of the contract's size and length; ``Clip.latent(step)`` has those of the
    clips that were exported with the policy, ``encode`` those of your own goals.
    """

    def _prepare(self) -> None:
        contract = self.contract
        if not is_tracking(contract):
            raise RunnerError("This is a contract for walking: use Controller, not Tracker.")
        self._blocks = contract["observation"]["blocks"]
        for block in self._blocks:
            if block["source"] not in TRACKED:
                raise RunnerError(
                    f"Unknown observation source {block['source']!a}; this runner knows: "
                    f"{', '.join(sorted(TRACKED))}."
                )
        self.reach = contract["action"]["reach"]
        self._units = np.array(contract["action"]["units"], float)
        self._ages = 1 + max(block["age"] for block in self._blocks)
        self._scales = {block["source"]: block["scale"] for block in self._blocks}

    def _try(self, reading: Reading) -> None:
        self._observe([self._see(reading)])

    def reset(self) -> None:
        """Restart: empty history, no stop."""
        super().reset()
        self._past: deque[dict[str, np.ndarray]] = deque(maxlen=self._ages)

    def _see(self, reading: Reading) -> dict[str, np.ndarray]:
        """Return the values of all sources now, in single precision as in training."""
        return {name: TRACKED[name](self, reading).astype(np.float32) for name in self._scales}

    def _observe(self, past: Any) -> np.ndarray:
        """Return what the policy sees (1, size); before the start everything was zero."""
        seen = np.zeros((1, self.contract["observation"]["size"]), np.float32)
        for block in self._blocks:
            if block["age"] < len(past):
                values = past[block["age"]][block["source"]]
                what, entries = f"the observation source {block['source']!a}", range(block["size"])
                checked = vector(what, "entry", values, entries, -LARGEST, LARGEST)
                first = block["first"]
                scaled = np.float32(block["scale"]) * checked.astype(np.float32)
                seen[0, first : first + block["size"]] = scaled
        return seen

    def _decide(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        rule = self.contract["latent"]
        latent = vector("the", "latent", command, range(rule["size"]), -LARGEST, LARGEST)
        length = float(np.linalg.norm(latent))
        if abs(length / rule["length"] - 1) > OFF_SPHERE:
            raise RunnerError(f"the latent is {length:.4g} long; it must be {rule['length']:.4g}")
        self._past.appendleft(self._see(reading))
        feed = {"observation": self._observe(self._past), "latent": latent[None].astype(np.float32)}
        limit = self.contract["action"]["clip"]
        self.action = np.clip(self._infer(feed), -limit, limit)
        return self.default_pose + self._units * self.action


def _gravity(controller: Tracker, reading: Reading) -> np.ndarray:
    """Return the direction of gravity in the base's axes."""
    roll, pitch, _ = reading.euler
    return np.array(
        [
            math.sin(pitch),
            -math.cos(pitch) * math.sin(roll),
            -math.cos(pitch) * math.cos(roll),
        ]
    )


TRACKED: dict[str, Callable[[Tracker, Reading], np.ndarray]] = {
    "joint_position_from_default": lambda controller, reading: (
        reading.q.astype(np.float32) - controller.default_pose.astype(np.float32)
    ),
    "joint_velocity": lambda controller, reading: reading.dq,
    "gravity": _gravity,
    "base_angular_velocity": lambda controller, reading: reading.angular_velocity,
    "last_action": lambda controller, reading: controller.action,
}
"""Sources of the blocks of an observation for tracking, by the contract's name."""


def encode(export: Export, goals: np.ndarray) -> np.ndarray:
    """Return the latents (N, size) of goals (N, entries), laid out as the contract's ``goal``."""
    rule = export.contract["goal"]
    goals = np.asarray(goals, np.float32)
    if goals.ndim != 2 or goals.shape[1] != rule["size"] or not np.isfinite(goals).all():
        raise RunnerError(
            f"Goals must be rows of {rule['size']} finite numbers, got the shape {goals.shape}."
        )
    (latents,) = export.backward.run(None, {"goal": goals})
    return latents


def track(export: Export, clip: Clip, seconds: float | None = None) -> TrackedClip:
    """Let a simulated robot track a clip from its first frame to its last, or until a stop.

    A fall ends nothing, as in ``prism eval``; after a stop the robot holds for a while.

    Args:
        export: What to run.
        clip: What to track.
        seconds: How long; default: all of the clip.
    """
    mujoco = import_mujoco()
    contract, model = export.contract, export.model
    control, data = contract["control"], mujoco.MjData(model)
    tracker = Tracker(contract, export.session, clock=lambda: data.time)
    data.qpos[:], data.qvel[:] = clip.start
    steps = len(clip.qpos) - 1
    if seconds is not None:
        steps = min(steps, max(1, round(seconds / control["dt"])))
    limits = contract["upright"]
    upright = np.zeros(steps + 1, bool)
    upright[0] = _stands(limits, data.qpos)
    states, actions, stop = [data.qpos.copy()], [], None
    for step in range(steps):
        try:
            targets = tracker.step(read(data.qpos, data.qvel), clip.latent(step))
        except SafetyStop as caught:
            stop = caught
            break
        actions.append(tracker.action)
        advance(control, model, data, targets)
        if diverged(data):
            targets = tracker.hold("the simulation diverged")
            stop = SafetyStop(str(tracker.stopped), targets)
            break
        states.append(data.qpos.copy())
        upright[step + 1] = _stands(limits, data.qpos)
    if stop:
        for _ in range(round(HOLD_SECONDS / control["dt"])):
            advance(control, model, data, stop.targets)
    found = np.array(states)
    return TrackedClip(
        seconds=len(actions) * control["dt"],
        stop=stop,
        upright=upright,
        qpos=found,
        actions=np.array(actions),
        emd=earth_movers_distance(found[:, 7:], clip.qpos[: len(found), 7:]),
    )


def _stands(limits: dict[str, Any], qpos: np.ndarray) -> bool:
    tilted = rotation(qpos[3:7])[2, 2] < math.cos(math.radians(limits["tilt"]))
    return bool(qpos[2] >= limits["height"] and not tilted)


def earth_movers_distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the EMD between two sets of as many poses, an assignment problem solved exactly.

    Shortest augmenting paths; every row joins the assignment by one path, found with the prices of
    rows and columns that keep all costs non-negative.
    """
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    squares = (found**2).sum(1)[:, None] + (wanted**2).sum(1) - 2 * found @ wanted.T
    costs = np.sqrt(np.maximum(squares, 0.0))
    size = len(costs)
    row_price, column_price = np.zeros(size), np.zeros(size)
    row_of = np.full(size, -1)
    for row in range(size):
        # Grow a tree of tight edges from this row until it reaches a free column.
        nearest, parent = np.full(size, math.inf), np.full(size, -1)
        done = np.zeros(size, bool)
        visited, at, length, column = [row], row, 0.0, -1
        while True:
            offer = length + costs[at] - row_price[at] - column_price
            better = ~done & (offer < nearest)
            nearest[better], parent[better] = offer[better], at
            column = int(np.argmin(np.where(done, math.inf, nearest)))
            length = nearest[column]
            done[column] = True
            if row_of[column] < 0:
                break
            at = int(row_of[column])
            visited.append(at)
        # Update the prices, then exchange along the path.
        reached = done & (row_of >= 0)
        row_price[row] += length
        row_price[row_of[reached]] += length - nearest[reached]
        column_price[done] -= length - nearest[done]
        while True:
            owner = int(parent[column])
            before = np.flatnonzero(row_of == owner)
            row_of[column] = owner
            if owner == row:
                break
            column = int(before[0])
    return float(costs[row_of, np.arange(size)].mean())


def run_tracking(export: Export, seconds: float | None, name: str | None) -> TrackedClip:
    """Track one clip and print what happened."""
    contract, clips = export.contract, export.clips
    if name is None:
        name = next(iter(clips))
    if name not in clips:
        raise RunnerError(f"--clip: there is no {name!a}; this export has: {', '.join(clips)}.")
    tracked = track(export, clips[name], seconds)
    made, frames = contract["provenance"], len(tracked.upright)
    total = (frames - 1) * contract["control"]["dt"]
    print(f"robot         {contract['robot']}, policy {made['policy_sha256'][:12]}")
    others = ", ".join(other for other in clips if other != name)
    print(f"clip          {name}{f' (also: {others})' if others else ''}")
    print(f"{'stopped after' if tracked.stop else 'tracked      '} {tracked.seconds:.2f} s", end="")
    print(f" of {total:.2f} s")
    print(f"upright       {tracked.upright.mean():.1%} of {frames} frames", end="")
    print(", those after the stop counted as fallen" if tracked.stop else "")
    print(f"EMD           {tracked.emd:.3f} rad", end="")
    print(" until the stop" if tracked.stop else "")
    return tracked
