"""The privileged state of a LIBERO problem for experts, by the names used in its goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Goal = tuple[str, ...]
"""A predicate and its arguments, e.g. ``("on", "akita_black_bowl_1", "plate_1")``."""

_HAND = "gripper0_grip_site"
_FINGERS = ("gripper0_finger_joint1", "gripper0_finger_joint2")
_PLANE = 0
"""MuJoCo's type of infinite geoms."""
_ROBOT = ("robot0_", "gripper0_", "mount0_")


@dataclass(frozen=True)
class Pose:
    """Position and orientation in world coordinates."""

    position: Array
    """Metres (3)."""
    rotation: Array
    """Its axes as columns (3 x 3)."""

    def at(self, offset: Array | tuple[float, float, float]) -> Array:
        """Return the world position of a point given in this frame."""
        return self.position + self.rotation @ np.asarray(offset)

    def moved(self, shift: Array | tuple[float, float, float]) -> Pose:
        """Return the pose shifted by a world vector."""
        return Pose(self.position + np.asarray(shift), self.rotation)


@dataclass(frozen=True)
class Boxes:
    """Oriented boxes around collision geometry."""

    centres: Array
    """World (n x 3)."""
    rotations: Array
    """Axes as columns (n x 3 x 3)."""
    halves: Array
    """Half sizes (n x 3)."""

    def corners(self) -> Array:
        """Return all corners (8 n x 3)."""
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T
        local = signs[None] * self.halves[:, None]
        return (self.centres[:, None] + np.einsum("nij,nkj->nki", self.rotations, local)).reshape(
            -1, 3
        )

    def distance(self, points: Array) -> float:
        """Return the smallest distance of any point to any box; negative inside, at most 0.05."""
        middle = points.mean(axis=0)
        size = np.linalg.norm(points - middle, axis=1).max()
        gaps = np.linalg.norm(self.centres - middle, axis=1) - np.linalg.norm(self.halves, axis=1)
        near = gaps - size < 0.05
        if not near.any():
            return 0.05
        offset = points[None] - self.centres[near, None]
        outside = np.abs(offset @ self.rotations[near]) - self.halves[near, None]
        far = np.linalg.norm(np.maximum(outside, 0.0), axis=-1)
        return min(0.05, float(np.min(far + np.minimum(outside.max(axis=-1), 0.0))))


class LiberoScene:
    """A LIBERO problem after a reset; all values are read from its current state.

    Args:
        problem: LIBERO's original environment, after its reset.
    """

    def __init__(self, problem: Any) -> None:
        self._problem = problem
        self._model: Any = problem.sim.model._model
        self._data: Any = problem.sim.data._data
        self._hand = self._model.site(_HAND).id
        self._fingers = [self._model.joint(name).qposadr[0] for name in _FINGERS]
        self._owners = [self._owner(geom) for geom in range(self._model.ngeom)]
        self.goals: tuple[Goal, ...] = tuple(tuple(g) for g in problem.parsed_problem["goal_state"])

    def holds(self, goal: Goal) -> bool:
        """Return whether a predicate is true now."""
        return bool(self._problem._eval_predicate(list(goal)))

    def category(self, name: str) -> str:
        """Return the category of an object, fixture or region."""
        return self._problem.get_object(self.parent(name)).category_name

    def parent(self, name: str) -> str:
        """Return the object or fixture of a region; other names are returned unchanged."""
        site = self._problem.object_sites_dict.get(name)
        return name if site is None or site.parent_name is None else site.parent_name

    def region(self, name: str) -> str:
        """Return the name of a region within its object; empty for an object."""
        parent = self.parent(name)
        return "" if parent == name else name.removeprefix(f"{parent}_")

    def hand(self) -> Pose:
        """Pose of the point between the finger pads: x points to a finger, z ahead."""
        data = self._data
        return Pose(
            data.site_xpos[self._hand].copy(), data.site_xmat[self._hand].reshape(3, 3).copy()
        )

    def opening(self) -> float:
        """Distance between the finger pads."""
        return float(np.abs(self._data.qpos[self._fingers]).sum())

    def pose(self, name: str) -> Pose:
        """Return the pose of an object, fixture or region."""
        if name in self._problem.object_sites_dict:
            site = self._model.site(name).id
            return Pose(
                self._data.site_xpos[site].copy(), self._data.site_xmat[site].reshape(3, 3).copy()
            )
        body = self._problem.obj_body_id[name]
        return Pose(self._data.xpos[body].copy(), self._data.xmat[body].reshape(3, 3).copy())

    def joint(self, name: str) -> float:
        """Return the joint position of an articulated region or fixture."""
        return float(self._data.qpos[self._joint(name).qposadr[0]])

    def joint_frame(self, name: str) -> Pose:
        """Return the frame of the body that the joint of a region or fixture moves."""
        body = self._joint(name).bodyid[0]
        return Pose(self._data.xpos[body].copy(), self._data.xmat[body].reshape(3, 3).copy())

    def still(self) -> bool:
        """Return whether no object is falling or sliding."""
        model, data = self._model, self._data
        things = self._problem.objects_dict.values()
        starts = [model.joint(thing.joints[-1]).dofadr[0] for thing in things]
        return all(np.linalg.norm(data.qvel[at : at + 3]) < 0.1 for at in starts)

    def boxes(self, name: str) -> Boxes:
        """Return the collision geometry of an object or fixture."""
        return self._boxes([g for g, owner in enumerate(self._owners) if owner == name])

    def obstacles(self, *but: str) -> Boxes:
        """Return the collision geometry of everything except the robot and some objects."""
        hidden = {*but, "robot", None}
        return self._boxes([g for g, owner in enumerate(self._owners) if owner not in hidden])

    def touches(self, name: str, *, hand: bool) -> bool:
        """Return whether an object touches the robot (``hand``) or anything else."""
        for contact in self._data.contact[: self._data.ncon]:
            owners = [self._owners[contact.geom1], self._owners[contact.geom2]]
            if name in owners:
                owners.remove(name)
                if (owners[0] == "robot") == hand:
                    return True
        return False

    def _joint(self, name: str) -> Any:
        site = self._problem.object_sites_dict.get(name)
        holder = site or self._problem.get_object(name)
        return self._model.joint(holder.joints[0])

    def _owner(self, geom: int) -> str | None:
        """Return the owner of a geom; ``None`` for planes and geoms that do not collide."""
        model = self._model
        if not (model.geom_contype[geom] or model.geom_conaffinity[geom]):
            return None
        if model.geom_type[geom] == _PLANE:
            return None
        body = int(model.geom_bodyid[geom])
        bodies = {index: name for name, index in self._problem.obj_body_id.items()}
        while body:
            if body in bodies:
                return bodies[body]
            if model.body(body).name.startswith(_ROBOT):
                return "robot"
            body = int(model.body_parentid[body])
        return "world"

    def _boxes(self, geoms: list[int]) -> Boxes:
        local = self._model.geom_aabb[geoms].reshape(-1, 2, 3)
        rotations = self._data.geom_xmat[geoms].reshape(-1, 3, 3)
        centres = self._data.geom_xpos[geoms] + np.einsum("nij,nj->ni", rotations, local[:, 0])
        return Boxes(centres, rotations, local[:, 1])


def facing(ahead: Array, closing: Array) -> Array:
    """Return the rotation of a hand that points ``ahead`` and closes along ``closing``."""
    z = ahead / float(np.linalg.norm(ahead))
    x = closing - z * float(closing @ z)
    x /= float(np.linalg.norm(x))
    return np.column_stack([x, np.cross(z, x), z]).astype(np.float64)


def nearest_turn(rotation: Array, hand: Array) -> Array:
    """Return the rotation or its equivalent with swapped fingers, whichever is nearer."""
    swapped = rotation @ np.diag([-1.0, -1.0, 1.0])
    return min((rotation, swapped), key=lambda r: turn_between(r, hand))


def turn_between(first: Array, second: Array) -> float:
    """Return the angle between two rotations."""
    # The trace is a fast way, and choosing a grasp compares hundreds of rotations.
    return float(np.arccos(np.clip((np.trace(first.T @ second) - 1.0) / 2.0, -1.0, 1.0)))
