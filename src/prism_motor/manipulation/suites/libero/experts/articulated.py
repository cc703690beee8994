"""Articulated objects: where to hold them, and the skills that move them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from prism_motor.manipulation.suites.libero.experts.grasps import DOWN
from prism_motor.manipulation.suites.libero.experts.scene import (
    LiberoScene,
    Pose,
    facing,
    nearest_turn,
)
from prism_motor.manipulation.suites.libero.experts.skills import (
    CLOSED,
    OPEN,
    HandCommand,
    Skill,
    is_blocked,
    move,
    rise,
    stay,
)


@dataclass(frozen=True)
class Drawer:
    """A drawer that slides out along -y of its frame, with a bar along x as its handle."""

    handle: tuple[float, float, float]
    """Middle of the bar, in the frame of the drawer."""
    opened: float = -0.155
    """Joint position to pull it to when it should be open."""
    ajar: float = -0.128
    """Joint position that is open enough to put something in."""
    closed: float = 0.002
    """Joint position to push it to."""


@dataclass(frozen=True)
class Knob:
    """A bar on a vertical axis; larger angles turn it on."""

    bar: tuple[float, float, float]
    """Where to hold it, in the frame of the knob."""
    closing: tuple[float, float, float]
    """Direction from finger to finger, in the frame of the knob."""
    turned: float = 0.9
    """Angle to turn it by."""


@dataclass(frozen=True)
class Door:
    """A door along x of its frame, on a vertical hinge, that closes as its joint grows."""

    push: tuple[float, float, float]
    """Where the fingers push, slightly behind the outer face, in the frame of the door."""
    closed: float = -0.003
    """Joint position to push it to."""


_CABINET = {
    "top_region": Drawer(handle=(-0.003, -0.102, 0.184)),
    "middle_region": Drawer(handle=(-0.003, -0.102, 0.110)),
    "bottom_region": Drawer(handle=(-0.003, -0.102, 0.041)),
}
DRAWERS: dict[str, dict[str, Drawer]] = {"wooden_cabinet": _CABINET, "white_cabinet": _CABINET}
"""Drawers by category and region."""

KNOBS: dict[str, Knob] = {
    "flat_stove": Knob(bar=(0.001, 0.010, 0.040), closing=(1.0, 0.0, 0.0)),
}
"""Knobs by category."""

DOORS: dict[str, Door] = {"microwave": Door(push=(0.19, 0.02, 0.075))}
"""Doors by category."""


def is_shut(scene: LiberoScene, name: str) -> bool:
    """Return whether a region is in a drawer that is not open enough to put something in."""
    drawer = DRAWERS.get(scene.category(name), {}).get(scene.region(name))
    return drawer is not None and scene.joint(name) > drawer.ajar + 0.01


def open_drawer(scene: LiberoScene, name: str, *, ajar: bool = False) -> Skill:
    """Grasp the handle from the front, with a finger above and one below, and pull it open."""
    drawer = DRAWERS[scene.category(name)][scene.region(name)]
    end = drawer.ajar if ajar else drawer.opened
    frame = scene.joint_frame(name)
    out = -frame.rotation[:, 1]
    # Grasping from above, the fingers would slip off the bar at the slightest disturbance.
    ahead = DOWN * np.cos(1.5) - out * np.sin(1.5)
    across = np.cross(ahead, frame.rotation[:, 0])
    rotation = nearest_turn(facing(ahead, across), scene.hand().rotation)
    at = Pose(frame.at(drawer.handle), rotation)
    behind = at.moved(-0.10 * ahead)
    yield from rise(scene, behind.position[2], OPEN)
    yield from move(scene, behind.moved((0, 0, 0.05)), OPEN, near=0.03, turned=0.2, patience=120)
    yield from move(scene, behind, OPEN, near=0.015, turned=0.08)
    # The palm reaches the handle slightly before the middle of the fingers does.
    yield from move(scene, at, OPEN, near=0.006, patience=40, until=is_blocked(scene, at))
    yield from stay(scene, CLOSED, 10)
    pulled = scene.hand().moved(out * (scene.joint(name) - end + 0.03))
    # The drawers are damped: pulling faster, the fingers would lose the handle.
    yield from move(scene, pulled, CLOSED, speed=0.4, until=lambda: scene.joint(name) < end)
    yield from stay(scene, OPEN, 6)
    yield from move(scene, scene.hand().moved(-0.06 * ahead), OPEN, near=0.02)
    yield from rise(scene, behind.position[2] + 0.15, OPEN)


def close_drawer(scene: LiberoScene, name: str) -> Skill:
    """Push the handle in with closed fingers, the hand leaning away from the cabinet."""
    drawer = DRAWERS[scene.category(name)][scene.region(name)]
    frame = scene.joint_frame(name)
    out = -frame.rotation[:, 1]
    ahead = DOWN * np.cos(0.8) - out * np.sin(0.8)
    rotation = nearest_turn(facing(ahead, frame.rotation[:, 0]), scene.hand().rotation)
    handle = frame.at(drawer.handle)
    before = Pose(handle + 0.06 * out, rotation)
    yield from move(scene, before.moved((0, 0, 0.15)), CLOSED, near=0.03, turned=0.2, patience=120)
    yield from move(scene, before, CLOSED, near=0.02)
    home = before.moved(-out * (0.12 + drawer.closed - scene.joint(name)))
    yield from move(scene, home, CLOSED, until=lambda: scene.joint(name) > drawer.closed)
    yield from move(scene, scene.hand().moved(0.10 * out), CLOSED, near=0.03)


def turn_knob(scene: LiberoScene, name: str) -> Skill:
    """Grasp the bar from above and turn the hand with it."""
    knob = KNOBS[scene.category(name)]
    frame = scene.joint_frame(name)
    closing = frame.rotation @ np.array(knob.closing)
    rotation = nearest_turn(facing(DOWN, closing), scene.hand().rotation)
    at = Pose(frame.at(knob.bar), rotation)
    yield from move(scene, at.moved((0, 0, 0.12)), OPEN, near=0.03, turned=0.2, patience=120)
    yield from move(scene, at, OPEN, near=0.006, turned=0.06)
    yield from stay(scene, CLOSED, 8)
    turn = Rotation.from_rotvec([0.0, 0.0, knob.turned]).as_matrix()
    around = frame.position + turn @ (at.position - frame.position)
    done = Pose(around, turn @ rotation)
    yield from move(scene, done, CLOSED, near=0.005, turned=0.02, patience=40)
    yield from stay(scene, OPEN, 6)
    yield from rise(scene, scene.hand().position[2] + 0.10, OPEN)


def close_door(scene: LiberoScene, name: str) -> Skill:
    """Follow the outer face of the door with closed fingers until it is shut."""
    door = DOORS[scene.category(name)]
    x, y, z = door.push

    def at(aside: float, above: float = 0.0) -> Pose:
        frame = scene.joint_frame(name)
        return Pose(frame.at((x, y - aside, z + above)), rotation)

    rotation = nearest_turn(facing(DOWN, np.array([1.0, 0.0, 0.0])), scene.hand().rotation)
    yield from rise(scene, at(0.1, 0.15).position[2], CLOSED)
    yield from move(scene, at(0.1, 0.15), CLOSED, near=0.03, turned=0.2, patience=120)
    yield from move(scene, at(0.1), CLOSED, near=0.02)
    for _ in range(120):
        if scene.joint(name) > door.closed:
            break
        yield HandCommand(at(0.0), CLOSED)
    yield from move(scene, at(0.12), CLOSED, near=0.03)
    yield from rise(scene, scene.hand().position[2] + 0.10, OPEN)
