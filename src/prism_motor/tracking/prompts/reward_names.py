"""Rewards that a policy can be prompted with, by name: ``move-ego-90-0.3``, ``raisearms-m-l``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prism_motor._checks import InputError, show
from prism_motor._ranges import Bounds, between
from prism_motor.tracking.prompts import reward_terms as terms
from prism_motor.tracking.prompts.reward_terms import RewardStates

Array = np.ndarray
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_AXES = "xyz"


@dataclass(frozen=True)
class RewardKind:
    """A family of rewards."""

    grammar: str
    """How its names are written; numbers are in capitals, choices in braces."""
    meaning: str
    """What it asks for, in one sentence."""
    ranges: dict[str, Bounds]
    """The numbers of a name, in their order."""
    compute: Callable[..., Array]
    """Computes it of states and what the name says."""
    examples: tuple[str, ...]
    """Names to choose from where names cannot be typed."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What its names look like."""
        parts = re.split(r"([A-Z]+|\{[^}]*\})", self.grammar)
        return re.compile("".join(map(_part, parts)))

    def read(self, name: str) -> tuple[str | float, ...] | None:
        """Return what a name of this kind says; ``None`` for other names."""
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        numbers = iter(self.ranges.items())
        said: list[str | float] = []
        for part in found.groups():
            if not re.fullmatch(_NUMBER, part):
                said.append(part)
                continue
            what, bounds = next(numbers)
            value = float(part)
            if value not in bounds:
                raise InputError(
                    f"Reward {show(name)}: {what} must be {bounds}, got {value:g} "
                    f"({self.grammar}: {self.meaning})."
                )
            said.append(value)
        return tuple(said)


def _part(text: str) -> str:
    if text.startswith("{"):
        return f"({'|'.join(text[1:-1].split(','))})"
    return _NUMBER if text.isupper() else re.escape(text)


@dataclass(frozen=True)
class Reward:
    """One reward."""

    name: str
    """Its name."""
    kind: RewardKind
    """Its family."""
    said: tuple[str | float, ...]
    """What its name says."""

    def __call__(self, qpos: Array, qvel: Array) -> Array:
        """Return the reward, 0 to 1, of states (N, 36) and (N, 35)."""
        return self.kind.compute(RewardStates(qpos, qvel), *self.said)


# Each is computed of states and what the name says. ----------------------------------------------


def _stand(states: RewardStates) -> Array:
    return terms.standing(states) * terms.upright(states) * terms.still(states)


def _move(states: RewardStates, angle: float, speed: float) -> Array:
    if speed == 0:
        return _stand(states)
    moving = terms.moving(states, angle, speed)
    return terms.standing(states) * terms.upright(states) * moving


def _move_low(states: RewardStates, height: float, angle: float, speed: float) -> Array:
    going = terms.still(states) if speed == 0 else terms.moving(states, angle, speed)
    return terms.pelvis_at(states, height) * terms.upright(states) * going


def _rotate(states: RewardStates, axis: str, rate: float, height: float) -> Array:
    up = terms.tolerance(states.height, height, np.inf, height, at_margin=0.01, shape="linear")
    turning = terms.turning(states, _AXES.index(axis), rate)
    return up * turning * (terms.upright(states) if axis == "z" else 1.0)


def _raise_arms(states: RewardStates, left: str, right: str) -> Array:
    wrists = terms.wrist(states, 0, left) * terms.wrist(states, 1, right)
    return _stand(states) * wrists


def _crouch(states: RewardStates, height: float) -> Array:
    return terms.pelvis_at(states, height) * terms.upright(states) * terms.still(states)


def _sit(states: RewardStates) -> Array:
    return terms.sitting(states) * terms.upright(states) * terms.still(states)


_ANGLE, _SPEED = between(-180, 180), between(0, 5)
_DIRECTIONS = (0, 90, 180, -90)

KINDS = (
    RewardKind("stand", "stand still and upright", {}, _stand, ("stand",)),
    RewardKind(
        "move-ego-ANGLE-SPEED",
        "move at SPEED m/s, ANGLE degrees to the left of ahead (0 ahead, -90 right, 180 back)",
        {"ANGLE": _ANGLE, "SPEED": _SPEED},
        _move,
        tuple(f"move-ego-{angle}-{speed}" for speed in (0.3, 0.7) for angle in _DIRECTIONS),
    ),
    RewardKind(
        "move-ego-lowH-ANGLE-SPEED",
        "the same with the pelvis at H m",
        {"H": between(0.2, 0.8), "ANGLE": _ANGLE, "SPEED": _SPEED},
        _move_low,
        tuple(f"move-ego-low0.6-{angle}-0.3" for angle in _DIRECTIONS),
    ),
    RewardKind(
        "rotate-{x,y,z}-RATE-H",
        "turn about the pelvis's own axis at RATE rad/s or faster, the pelvis above H m",
        {"RATE": between(-20, 20), "H": between(0.05, 0.8)},
        _rotate,
        ("rotate-z-1-0.5", "rotate-z--1-0.5", "rotate-x-5-0.5", "rotate-y-5-0.5"),
    ),
    RewardKind(
        "raisearms-{l,m}-{l,m}",
        "stand with the left and the right wrist low (l, 0.6 to 0.8 m) or raised (m, above 1 m)",
        {},
        _raise_arms,
        ("raisearms-m-m", "raisearms-m-l", "raisearms-l-m", "raisearms-l-l"),
    ),
    RewardKind(
        "crouch-H",
        "hold the pelvis at H m, the torso upright",
        {"H": between(0.15, 0.8)},
        _crouch,
        ("crouch-0.6", "crouch-0.45", "crouch-0.3"),
    ),
    RewardKind(
        "sitonground", "sit with the pelvis below 0.2 m, knees up", {}, _sit, ("sitonground",)
    ),
)
"""All families; a name belongs to the first that reads it."""


def example_rewards() -> list[str]:
    """Return the names of some rewards of every family."""
    return [name for kind in KINDS for name in kind.examples]


def find_reward(name: str) -> Reward:
    """Return a reward by its name, or raise an error with the nearest names and the grammar."""
    for kind in KINDS:
        said = kind.read(name)
        if said is not None:
            return Reward(name, kind, said)
    close = difflib.get_close_matches(name, example_rewards(), n=3, cutoff=0.4)
    hint = f" Did you mean {', '.join(close)}?" if close else ""
    known = "".join(f"\n  {kind.grammar}: {kind.meaning}" for kind in KINDS)
    raise InputError(f"Unknown reward {show(name)}.{hint} Rewards are written as{known}")
