"""Sprung buttons: a plate on a spring with a preload and a hard stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, above, between
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.so101.shapes import ARM, SCENE

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Button(Checked, section="button"):
    """A button; the defaults are those of a mouse, whose main buttons need 0.54 to 0.64 N."""

    threshold: Annotated[float, above(0, 0.02)] = 0.00075
    """Depth at which it closes, m."""
    release: Annotated[float, above(0, 0.02)] = 0.0004
    """Depth at which it opens again, m."""
    travel: Annotated[float, above(0, 0.02)] = 0.0015
    """Depth of the stop, m."""
    preload: Annotated[float, between(0, 10)] = 0.3
    """Force at which it begins to move, N."""
    force: Annotated[float, above(0, 20)] = 0.6
    """Force at which it closes, N."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.release < self.threshold < self.travel:
            raise InputError(
                f"A button opens before it closes, and closes before its stop: release "
                f"{self.release:g} < threshold {self.threshold:g} < travel {self.travel:g} m must "
                "hold."
            )
        if not self.preload < self.force:
            raise InputError(
                f"button.force must be above button.preload ({self.preload:g} N), got "
                f"{self.force:g}."
            )

    @property
    def stiffness(self) -> float:
        """Of the spring, N/m."""
        return (self.force - self.preload) / self.threshold


def add_button(
    parent: Any, name: str, centre: Vector, half: Vector, button: Button, colour: tuple[float, ...]
) -> None:
    """Add a plate that can be pushed down; its body and joint have the button's name.

    Args:
        parent: Body that it belongs to.
        name: Name of the button.
        centre: Centre of the plate in the parent, m.
        half: Half sizes of the plate, m.
        button: Spring and travel.
        colour: Red, green, blue and opacity.
    """
    mujoco = import_mujoco()
    # The spring carries the plate: forces are those of a finger.
    body = parent.add_body(name=name, pos=centre, gravcomp=1.0)
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=half,
        mass=0.004,
        rgba=colour,
        friction=(0.6, 0.005, 0.0001),
        contype=SCENE,
        conaffinity=SCENE | ARM,
    )
    body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_SLIDE,
        axis=(0, 0, -1),
        range=(0.0, button.travel),
        limited=mujoco.mjtLimited.mjLIMITED_TRUE,
        stiffness=button.stiffness,
        springref=-button.preload / button.stiffness,
        damping=0.5,
        armature=0.02,
        # By default the stop would yield by millimetres.
        solref_limit=(0.004, 1.0),
        solimp_limit=(0.95, 0.999, 0.0002, 0.5, 2.0),
    )
