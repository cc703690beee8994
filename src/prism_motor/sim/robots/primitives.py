"""MJCF building blocks of the built-in robots."""

from __future__ import annotations

Vector = tuple[float, ...]

LIGHT, DARK, ACCENT = "0.86 0.87 0.89 1", "0.16 0.17 0.20 1", "0.10 0.42 0.72 1"
"""Colours of the visible geometry."""


def text(values: Vector) -> str:
    """Format numbers for MJCF."""
    return " ".join(f"{value:.9g}" for value in values)


def capsule(start: Vector, end: Vector, radius: float, colour: str) -> str:
    """Return a visual-only capsule."""
    return (
        f'<geom class="visual" type="capsule" fromto="{text(start)} {text(end)}" '
        f'size="{radius}" rgba="{colour}"/>'
    )


def ellipsoid(center: Vector, size: Vector, colour: str) -> str:
    """Return a visual-only ellipsoid."""
    return (
        f'<geom class="visual" type="ellipsoid" size="{text(size)}" pos="{text(center)}" '
        f'rgba="{colour}"/>'
    )


def box(center: Vector, size: Vector, colour: str) -> str:
    """Return a visual-only box, given by its half extents."""
    return (
        f'<geom class="visual" type="box" size="{text(size)}" pos="{text(center)}" '
        f'rgba="{colour}"/>'
    )


def sole(name: str, center: Vector, radius: float) -> str:
    """Return a sphere that touches the ground; its priority makes its friction count."""
    return (
        f'<geom name="{name}" class="collision" type="sphere" size="{radius}" '
        f'pos="{text(center)}" priority="1" friction="1 0.005 0.0001"/>'
    )


def document(name: str, base: str) -> str:
    """Return a complete model with one floating base; servos follow from the robot's joints."""
    return f"""
<mujoco model="{name}">
  <compiler angle="radian" autolimits="true"/>
  <default>
    <joint armature="0.01" damping="0.001"/>
    <default class="visual"><geom contype="0" conaffinity="0" group="1" density="0"/></default>
    <default class="collision"><geom contype="2" conaffinity="1" group="3" density="0"/></default>
  </default>
  <worldbody>
{base}
  </worldbody>
</mujoco>"""
