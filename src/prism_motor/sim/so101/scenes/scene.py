"""A scene: one thing on a table in front of the arm, seen by two cameras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import check_choice
from prism_motor.sim.scene import compile_spec, import_mujoco
from prism_motor.sim.so101.arm import ServoSettings, add_arm, camera_turn
from prism_motor.sim.so101.outcome import Watcher
from prism_motor.sim.so101.placement import PlacementRange
from prism_motor.sim.so101.shapes import ARM, SCENE

Array = NDArray[np.float64]
Vector = tuple[float, ...]

TIMESTEP = 0.002
"""Longest physics step, s."""

CAMERAS = ("agent", "wrist")
"""A camera beside the table, and one on the gripper."""

_EYE, _LOOKED_AT = np.array([0.58, -0.26, 0.36]), np.array([0.2, 0.0, 0.05])


class Scene(ABC):
    """What a task puts on the table, where, and what it counts as success."""

    name: ClassVar[str]
    """Name of the task."""
    instruction: ClassVar[str]
    """What a person would be told."""
    body: ClassVar[str]
    """Name of the thing that is put somewhere."""
    narrow: ClassVar[PlacementRange]
    """Where it is put in a pilot of a few demonstrations."""
    wide: ClassVar[PlacementRange]
    """All poses at which the arm can do the task."""
    height: ClassVar[float]
    """Height of the thing's origin above the table, m."""

    @abstractmethod
    def add_thing(self, spec: Any) -> None:
        """Add the thing, at the origin of the table."""

    @abstractmethod
    def watcher(self, model: Any) -> Watcher:
        """Return what watches the thing."""

    @abstractmethod
    def target(self, data: Any) -> Array:
        """Return where the tip shall touch the thing or bring it, m (3)."""

    def placements(self, name: str) -> PlacementRange:
        """Return a range by name: ``narrow`` or ``wide``."""
        return getattr(self, check_choice("placement", name, ("narrow", "wide")))

    def build(self, servos: ServoSettings) -> Any:
        """Return the compiled ``mjModel``."""
        mujoco = import_mujoco()
        spec = mujoco.MjSpec()
        spec.compiler.degree = False
        spec.option.timestep = TIMESTEP
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = 10.0
        _add_surroundings(spec)
        add_arm(spec, servos)
        self.add_thing(spec)
        return compile_spec(spec, f"SO-101 {self.name}")


def _add_surroundings(spec: Any) -> None:
    """Add table, light and the camera beside it."""
    mujoco = import_mujoco()
    world = spec.worldbody
    spec.visual.headlight.ambient = (0.35, 0.35, 0.35)
    spec.visual.headlight.diffuse = (0.35, 0.35, 0.35)
    world.add_light(
        pos=(0.3, -0.3, 1.2), dir=(0.0, 0.2, -1.0), diffuse=(0.5, 0.5, 0.5),
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    )  # fmt: skip
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, width=64, height=384,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT, rgb1=(0.8, 0.84, 0.88), rgb2=(0.5, 0.55, 0.6),
    )  # fmt: skip
    add_box(world, (0.25, 0.0, -0.02), (0.6, 0.7, 0.02), (0.62, 0.64, 0.66, 1.0), friction=0.6)
    sight = _LOOKED_AT - _EYE
    right = np.cross(sight, (0.0, 0.0, 1.0))
    turn = camera_turn(tuple(right), tuple(np.cross(right, sight)))
    world.add_camera(name=CAMERAS[0], pos=_EYE, quat=turn, fovy=42.0)


def add_box(
    body: Any,
    centre: Vector,
    half: Vector,
    colour: Vector,
    *,
    mass: float = 0.0,
    friction: float = 0.6,
    priority: int = 0,
) -> None:
    """Add a box that collides with the arm and with other things.

    Args:
        body: Body that it belongs to.
        centre: Its centre, m.
        half: Its half sizes, m.
        colour: Red, green, blue and opacity.
        mass: Its mass, kg.
        friction: Coefficient of sliding.
        priority: That of the higher priority counts in a contact, else the larger friction.
    """
    mujoco = import_mujoco()
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=centre,
        size=half,
        rgba=colour,
        mass=mass,
        friction=(friction, 0.005, 0.0001),
        priority=priority,
        contype=SCENE,
        conaffinity=SCENE | ARM,
    )


def add_thing_body(spec: Any, name: str, height: float) -> Any:
    """Add a body that can move freely, in front of the arm."""
    body = spec.worldbody.add_body(name=name, pos=(0.2, 0.0, height))
    body.add_freejoint(name=name)
    return body
