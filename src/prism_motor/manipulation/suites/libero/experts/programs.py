"""From the goal of a task to skills in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from prism_motor._errors import InputError
from prism_motor.manipulation.suites.libero.experts.articulated import (
    DOORS,
    DRAWERS,
    KNOBS,
    close_door,
    close_drawer,
    open_drawer,
    turn_knob,
)
from prism_motor.manipulation.suites.libero.experts.grasps import Grasp, Part
from prism_motor.manipulation.suites.libero.experts.scene import Array, Goal, Scene
from prism_motor.manipulation.suites.libero.experts.skills import Skill, grasp, insert, place, push


class NoExpertError(InputError):
    """A task asks for something that no skill can do."""


_ORDER = ("turnon", "open", "on", "in", "close")
"""Predicates in the order in which they are worked on: what must be open is closed last."""


@dataclass(frozen=True)
class Spot:
    """Where on a target things are put."""

    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the target's origin, in its frame."""
    spread: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Added for the second thing that goes there and taken off for the first."""
    aligned: bool = False
    """Whether the axes of the thing and of the target should be parallel."""
    enter: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the spot to where the thing starts to go in, in the target's frame; zero: above."""
    grasp: Grasp | None = None
    """How things are taken that go there; default: as their category is."""


SPOTS: dict[tuple[str, str], Spot] = {
    ("flat_stove", "cook_region"): Spot(spread=(0.045, 0.0, 0.0)),
    ("basket", "contain_region"): Spot(spread=(0.0, 0.03, 0.0)),
    ("desk_caddy", "back_contain_region"): Spot(aligned=True),
    ("wooden_cabinet", "top_region"): Spot(offset=(0.0, -0.014, 0.0)),
    ("microwave", "heating_region"): Spot(
        offset=(0.0, -0.005, -0.066),
        enter=(0.0, -0.2, 0.0),
        grasp=Part(point=(0.064, 0.0, 0.056), closing=(0.0, 1.0, 0.0), ahead=(-0.94, 0.0, -0.34)),
    ),
}
"""Spots by category and region; everywhere else things go to the middle."""

PUSHED = ("plate",)
"""Categories that are too flat to be lifted."""


@dataclass(frozen=True)
class Step:
    """One skill of a program."""

    skill: str
    """``put``, ``open``, ``open ajar``, ``close`` or ``turn on``."""
    thing: str
    """What it is done to."""
    target: str = ""
    """Where it is put."""


def derive_program(goals: Sequence[Goal], closed: Sequence[str] = ()) -> tuple[Step, ...]:
    """Turn goals into steps.

    Args:
        goals: What should be true.
        closed: Regions that something can be put into only after they are opened.
    """
    steps: list[Step] = []
    for predicate, thing, *target in sorted(goals, key=lambda goal: _rank(goal[0])):
        if predicate in ("on", "in"):
            if target[0] in closed:
                steps.append(Step("open ajar", target[0]))
            steps.append(Step("put", thing, target[0]))
        else:
            steps.append(Step({"turnon": "turn on"}.get(predicate, predicate), thing))
    return tuple(steps)


def check_program(scene: Scene, program: Sequence[Step]) -> None:
    """Refuse a program with a step that no skill can do."""
    for step in program:
        category, region = scene.category(step.thing), scene.region(step.thing)
        known = (
            step.skill == "put"
            or (step.skill in ("open", "close") and region in DRAWERS.get(category, {}))
            or (step.skill == "close" and category in DOORS)
            or (step.skill == "turn on" and category in KNOBS)
        )
        if not known:
            raise NoExpertError(
                f"This task has no expert: no skill can {step.skill} a {category}. Skills "
                f"put things, open and close {sorted(DRAWERS)}, close {sorted(DOORS)}, "
                f"turn on {sorted(KNOBS)}."
            )


def perform(scene: Scene, step: Step) -> Skill:
    """Yield the commands of one step."""
    if step.skill == "put":
        yield from _put(scene, step.thing, step.target)
    elif step.skill in ("open", "open ajar"):
        yield from open_drawer(scene, step.thing, ajar=step.skill == "open ajar")
    elif step.skill == "close":
        door = scene.category(step.thing) in DOORS
        yield from (close_door if door else close_drawer)(scene, step.thing)
    else:
        yield from turn_knob(scene, step.thing)


def _put(scene: Scene, thing: str, target: str) -> Skill:
    spot = SPOTS.get((scene.category(target), scene.region(target)), Spot())
    sharing = [goal[1] for goal in scene.goals if goal[-1] == target]
    side = 0.0 if len(sharing) < 2 else (-1.0, 1.0)[sharing.index(thing)]
    goal = scene.pose(target).at(np.array(spot.offset) + side * np.array(spot.spread))
    if scene.category(thing) in PUSHED:
        yield from push(scene, thing, goal)
        return
    yield from grasp(scene, thing, goal, spot.grasp)
    if any(spot.enter):
        enter = scene.pose(target).rotation @ np.array(spot.enter)
        yield from insert(scene, thing, goal, enter)
    elif spot.aligned:
        turn = _parallel(scene.pose(thing).rotation, scene.pose(target).rotation)
        yield from place(scene, thing, goal, turn=turn)
    else:
        yield from place(scene, thing, goal)


def _parallel(held: Array, frame: Array) -> Array:
    """Return a rotation, turned about the vertical until its x axis is parallel to a frame's."""
    yaws = [float(np.arctan2(axes[1, 0], axes[0, 0])) for axes in (frame, held)]
    yaw = (yaws[0] - yaws[1] + np.pi / 2) % np.pi - np.pi / 2
    return Rotation.from_euler("z", yaw).as_matrix() @ held


def _rank(predicate: str) -> int:
    if predicate not in _ORDER:
        raise NoExpertError(f"No skill reaches {predicate!r}; there are skills for {_ORDER}.")
    return _ORDER.index(predicate)
