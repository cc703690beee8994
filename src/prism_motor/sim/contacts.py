"""How many contacts and constraints a robot can have, from its geometry."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from prism_motor.sim.scene import colliding_geoms, import_mujoco

MOST_CONTACTS = 64
"""Room that is made at most unless more is asked for: geometry allows what never happens."""
_ROWS = {1: 1, 3: 4, 4: 6, 6: 10}
"""Constraints per contact with a pyramidal cone, by its dimension."""


@dataclass(frozen=True)
class Room:
    """What is kept in memory for one robot."""

    contacts: int
    """Contacts."""
    rows: int
    """Constraints: of contacts, joint limits, dry friction and equalities."""


def find_room(model: Any, contacts: int = 0) -> Room:
    """Return what a robot needs.

    Args:
        model: The compiled ``mjModel``.
        contacts: Contacts to make room for; 0: as many as the geometry allows, within reason.
    """
    contacts = contacts or max(1, min(count_contacts(model), MOST_CONTACTS))
    geoms = colliding_geoms(model)
    per_contact = max((_ROWS[int(dim)] for dim in model.geom_condim[geoms]), default=1)
    limits = int(np.count_nonzero(model.jnt_limited))
    friction = int(np.count_nonzero(model.dof_frictionloss))
    return Room(contacts, contacts * per_contact + limits + friction + 6 * int(model.neq))


def count_contacts(model: Any) -> int:
    """Return how many contacts there can be if everything that may touch does."""
    kinds = import_mujoco().mjtGeom
    plane, sphere, capsule = (
        int(kind) for kind in (kinds.mjGEOM_PLANE, kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE)
    )
    contype, affinity = model.geom_contype, model.geom_conaffinity
    welded = model.body_weldid[model.geom_bodyid]
    above = model.body_weldid[model.body_parentid[welded]]
    total = 0
    for a, b in combinations(colliding_geoms(model).tolist(), 2):
        touching = (contype[a] & affinity[b]) or (contype[b] & affinity[a])
        # Bodies do not collide with themselves, nor with the one they hang on, the ground excepted.
        related = welded[a] == welded[b] or (
            welded[a] and welded[b] and (above[a] == welded[b] or above[b] == welded[a])
        )
        if not touching or related:
            continue
        pair = {int(model.geom_type[a]), int(model.geom_type[b])}
        if sphere in pair:
            total += 1
        elif pair <= {plane, capsule}:
            total += 2
        else:
            total += 4 if plane in pair else 8
    return total
