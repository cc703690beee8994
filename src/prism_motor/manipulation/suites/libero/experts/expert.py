"""An expert for any LIBERO task whose goal its skills can reach.

The goal becomes a program: skills in the right order, each of which yields commands for the hand,
which proportional control turns into actions of LIBERO's operational-space controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prism_motor.manipulation.environment import Expert, NoExpertError
from prism_motor.manipulation.suites.libero.experts.articulated import (
    DOORS,
    DRAWERS,
    KNOBS,
    close_door,
    close_drawer,
    is_shut,
    open_drawer,
    turn_knob,
)
from prism_motor.manipulation.suites.libero.experts.grasps import Grasp, Part
from prism_motor.manipulation.suites.libero.experts.scene import Array, Goal, LiberoScene, Pose
from prism_motor.manipulation.suites.libero.experts.skills import (
    OPEN,
    HandCommand,
    Skill,
    grasp,
    insert,
    place,
    push,
)

if TYPE_CHECKING:
    from prism_motor.manipulation.suites.libero.environment import LiberoEnvironment

_ORDER = ("turnon", "open", "on", "in", "close")
"""Order in which predicates are achieved: things are put in before they are closed."""


@dataclass(frozen=True)
class Spot:
    """Where to put objects on a target."""

    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the target's origin, in its frame."""
    spread: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Added for the second object that goes there and subtracted for the first."""
    aligned: bool = False
    """Whether to align the axes of the object with those of the target."""
    enter: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the spot to where insertion starts, in the target's frame; zero: from above."""
    grasp: Grasp | None = None
    """How to grasp objects that go there; default: the grasp of their category."""


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
"""Spots by category and region; elsewhere, objects go to the middle."""

PUSHED = ("plate",)
"""Categories that are too flat to lift."""


@dataclass(frozen=True)
class ProgramStep:
    """One skill of a program."""

    skill: str
    """``put``, ``open``, ``open ajar``, ``close`` or ``turn on``."""
    thing: str
    """What it is done to."""
    target: str = ""
    """Where it is put."""


def derive_program(goals: Sequence[Goal], closed: Sequence[str] = ()) -> tuple[ProgramStep, ...]:
    """Turn goals into steps.

    Args:
        goals: What should be true.
        closed: Regions that must be opened before something can be put into them.
    """
    steps: list[ProgramStep] = []
    for predicate, thing, *target in sorted(goals, key=lambda goal: _rank(goal[0])):
        if predicate in ("on", "in"):
            if target[0] in closed:
                steps.append(ProgramStep("open ajar", target[0]))
            steps.append(ProgramStep("put", thing, target[0]))
        else:
            steps.append(ProgramStep({"turnon": "turn on"}.get(predicate, predicate), thing))
    return tuple(steps)


def check_program(scene: LiberoScene, program: Sequence[ProgramStep]) -> None:
    """Reject a program with a step that no skill can do."""
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


def perform(scene: LiberoScene, step: ProgramStep) -> Skill:
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


def _put(scene: LiberoScene, thing: str, target: str) -> Skill:
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
        raise NoExpertError(f"No skill achieves {predicate!r}; there are skills for {_ORDER}.")
    return _ORDER.index(predicate)


@dataclass(frozen=True)
class Gains:
    """Proportional control: action per metre and per radian of error."""

    linear: float = 12.0
    """1 / m; 20 would move the controller's goal to the target in one step."""
    angular: float = 2.0
    """1 / rad; 2 moves the controller's goal to the target in one step."""


def steer(hand: Pose, command: HandCommand, gains: Gains) -> NDArray[np.float64]:
    """Return the action (7 values in [-1, 1]) that moves the hand to the commanded pose."""
    error = command.pose.position - hand.position
    turn = Rotation.from_matrix(command.pose.rotation @ hand.rotation.T).as_rotvec()
    return np.concatenate(
        [
            _limit(gains.linear * error, command.speed),
            _limit(gains.angular * turn, 1.0),
            [command.fingers],
        ]
    )


class LiberoExpert(Expert):
    """Works on unmet goals until all are met, retrying what failed.

    Args:
        environment: The environment it acts in.
        gains: Gains of the proportional control.
    """

    def __init__(self, environment: LiberoEnvironment, *, gains: Gains | None = None) -> None:
        super().__init__(environment)
        self.gains = gains or Gains()
        self._scene: LiberoScene | None = None
        self._commands: Skill = iter(())

    def reset(self) -> None:
        """Start over with a new scene; call it after every reset of the environment."""
        scene = LiberoScene(self.environment.problem)
        check_program(scene, derive_program(scene.goals))
        self._scene = scene
        self._commands = pursue_goals(scene)

    def act(self) -> NDArray[np.float32]:
        """Return the next action, in [-1, 1], for the current state of the environment."""
        if self._scene is None:
            self.reset()
        assert self._scene is not None
        action = steer(self._scene.hand(), next(self._commands), self.gains)
        return np.clip(action, -1.0, 1.0).astype(np.float32)


def pursue_goals(scene: LiberoScene) -> Skill:
    """Yield commands forever, always for the first step that is left to do."""
    # Some of LIBERO's scenes start with objects in the air.
    for _ in range(20):
        if scene.still():
            break
        yield HandCommand(scene.hand(), OPEN)
    while True:
        left = [goal for goal in scene.goals if not scene.holds(goal)]
        closed = [goal[-1] for goal in left if is_shut(scene, goal[-1])]
        if left:
            yield from perform(scene, derive_program(left, closed)[0])
        yield HandCommand(scene.hand(), OPEN)


def _limit(vector: Array, largest: float) -> Array:
    return vector * min(1.0, largest / max(float(np.linalg.norm(vector)), 1e-9))
