"""Poses and joints of the things a task is about."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism_motor.manipulation.environment import Array

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


class Objects:
    """Reads the things that a task's goal and instruction name, in a fixed order.

    Each thing gives its position and quaternion, then the positions of its own joints (drawers,
    doors, knobs).

    Args:
        problem: LIBERO's own environment.
    """

    def __init__(self, problem: Any) -> None:
        model = problem.sim.model._model
        self._data = problem.sim.data._data
        self._bodies: list[int] = []
        self._joints: list[list[int]] = []
        names: list[str] = []
        for thing in _things_of_interest(problem):
            joints = [model.joint(name) for name in _own_joints(problem, thing)]
            self._bodies.append(problem.obj_body_id[thing])
            self._joints.append([int(joint.qposadr[0]) for joint in joints])
            names += [f"{thing}_{axis}" for axis in _POSE]
            names += [joint.name for joint in joints]
        self.names = tuple(names)

    def read(self) -> Array:
        """Return the values now, in the order of ``names``."""
        data = self._data
        parts: list[Array] = []
        for body, joints in zip(self._bodies, self._joints, strict=True):
            parts += [data.xpos[body], data.xquat[body], data.qpos[joints]]
        return np.concatenate(parts)


def _things_of_interest(problem: Any) -> list[str]:
    """List the objects and fixtures of interest; a region counts as the thing it is part of."""
    goal = [name for predicate in problem.parsed_problem["goal_state"] for name in predicate[1:]]
    things: list[str] = []
    for name in [*problem.obj_of_interest, *goal]:
        region = problem.object_sites_dict.get(name)
        thing = name if region is None else region.parent_name
        if thing in problem.obj_body_id and thing not in things:
            things.append(thing)
    return things


def _own_joints(problem: Any, thing: str) -> list[str]:
    """List hinges and slides of a thing, without the joint that lets it move freely."""
    model = problem.sim.model._model
    free = 0
    return [name for name in problem.get_object(thing).joints if model.joint(name).type[0] != free]
