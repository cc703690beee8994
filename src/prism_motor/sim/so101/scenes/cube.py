"""A cube, and a round zone marked on the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.so101.outcome import Watcher, ZoneWatcher
from prism_motor.sim.so101.placement import PlacementRange
from prism_motor.sim.so101.scenes.scene import Array, Scene, add_box, add_thing_body

HALF = 0.0125
"""Half the side of the cube, m."""

ZONE, ZONE_RADIUS = (0.27, 0.0), 0.045
"""Centre and radius of the zone, m."""

_INSIDE = ZONE_RADIUS - HALF * 2**0.5
"""Distance of the cube's centre at which all of it is in the zone, however it is turned."""

_RED, _GREEN = (0.8, 0.2, 0.15, 1.0), (0.25, 0.62, 0.35, 1.0)


class PushCube(Scene):
    """Push the cube into the zone and let go of it."""

    name = "push-cube-v0"
    instruction = "Push the cube into the green zone"
    body = "cube"
    narrow = PlacementRange((0.17, 0.19), 0.03, 0.3)
    wide = PlacementRange((0.165, 0.2), 0.06, 0.785)
    height = HALF

    def add_thing(self, spec: Any) -> None:
        """Add the cube, of 20 g, and the zone, which is only seen."""
        mujoco = import_mujoco()
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            pos=(*ZONE, 0.0004),
            size=(ZONE_RADIUS, 0.0004, 0.0),
            rgba=_GREEN,
            contype=0,
            conaffinity=0,
        )
        cube = add_thing_body(spec, self.body, self.height)
        add_box(cube, (0, 0, 0), (HALF, HALF, HALF), _RED, mass=0.02, friction=0.4, priority=1)

    def watcher(self, model: Any) -> Watcher:
        """Return what watches the cube."""
        return ZoneWatcher(model, self.body, ZONE, _INSIDE)

    def target(self, data: Any) -> Array:
        """Return the middle of the zone, at the height of the cube's."""
        return np.array([*ZONE, HALF])
