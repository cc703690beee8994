"""Contact forces on some bodies of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prism_motor.manipulation.environment import Array
from prism_motor.sim.scene import import_mujoco


def contact_forces(model: Any, data: Any, bodies: Sequence[int]) -> Array:
    """Return the contact force on each body (bodies x 3), in world coordinates and newtons.

    Contacts between two of the bodies, such as finger on finger, are left out.

    Args:
        model: The compiled ``mjModel``.
        data: Its state, after a step.
        bodies: Ids of the bodies.
    """
    mujoco = import_mujoco()
    rows = {body: row for row, body in enumerate(bodies)}
    forces = np.zeros((len(bodies), 3))
    local = np.zeros(6)
    for index in range(data.ncon):
        contact = data.contact[index]
        first, second = (rows.get(int(model.geom_bodyid[geom])) for geom in contact.geom)
        if (first is None) == (second is None):
            continue
        mujoco.mj_contactForce(model, data, index, local)
        # The frame's rows are its axes; the first points from the first geom to the second.
        force = local[:3] @ contact.frame.reshape(3, 3)
        if second is not None:
            forces[second] += force
        elif first is not None:
            forces[first] -= force
    return forces
