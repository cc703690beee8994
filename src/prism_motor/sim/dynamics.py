"""Friction and masses that differ between robots of a batch, for every engine alike."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_motor._checks import InputError
from prism_motor.sim.scene import colliding_geoms, import_mujoco

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot


@dataclass(frozen=True)
class Dynamics:
    """What differs between environments; scalars apply to all of them."""

    friction: np.ndarray | float = 1.0
    """Sliding friction between feet and ground."""
    base_mass: np.ndarray | float = 0.0
    """Mass added to the base, kg; its inertia scales with its mass."""
    mass_scale: np.ndarray | float = 1.0
    """Factor on all masses and inertias; of every link alone if it is (N, links)."""
    shifted: str = ""
    """Body whose centre of mass is shifted, if any."""
    shift: np.ndarray | float = 0.0
    """How far, (N, 3) in the body's axes, m."""

    def of_envs(self, envs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return friction and added mass of every environment, (N,) each."""
        friction, mass = (
            np.broadcast_to(np.asarray(value, dtype=float), (envs,))
            for value in (self.friction, self.base_mass)
        )
        return friction, mass


class Variation:
    """Makes models with other friction and masses.

    Args:
        model: The nominal ``mjModel``.
        robot: Its robot.

    Attributes:
        friction: Nominal sliding friction of the feet.
    """

    def __init__(self, model: Any, robot: Robot) -> None:
        self._model = model
        self._data = import_mujoco().MjData(model)
        self._soles = colliding_geoms(model, robot.feet)
        self._base = model.body(robot.base).id
        self.friction = model.geom_friction[self._soles, 0].mean()

    def models(self, dynamics: Dynamics, envs: int) -> Iterator[Any]:
        """Yield the model of every environment; environments that are alike share one."""
        links = self._model.nbody - 1
        friction, base_mass = dynamics.of_envs(envs)
        scale = np.asarray(dynamics.mass_scale, dtype=float)
        scale = np.broadcast_to(scale if scale.ndim == 2 else scale.reshape(-1, 1), (envs, links))
        shift = np.broadcast_to(np.asarray(dynamics.shift, dtype=float), (envs, 3))
        made: dict[bytes, Any] = {}
        for env in range(envs):
            values = (friction[env], base_mass[env], scale[env], shift[env])
            key = b"".join(np.asarray(value).tobytes() for value in values)
            if key not in made:
                made[key] = self._vary(*values[:3], dynamics.shifted, shift[env])
            yield made[key]

    def _vary(
        self, friction: float, added_mass: float, scale: np.ndarray, shifted: str, shift: np.ndarray
    ) -> Any:
        if friction <= 0 or scale.min() <= 0:
            raise InputError(
                "Dynamics: friction and mass_scale must be positive, got "
                f"{friction:g} and {scale.min():g}."
            )
        model = copy.copy(self._model)
        model.geom_friction[self._soles, 0] = friction
        base = self._base
        factor = 1 + added_mass / self._model.body_mass[base]
        if factor <= 0:
            raise InputError(
                f"Dynamics: base_mass {added_mass} kg would leave the base "
                f"({self._model.body_mass[base]:.2f} kg) without mass."
            )
        model.body_mass[base] *= factor
        model.body_inertia[base] *= factor
        model.body_mass[1:] *= scale
        model.body_inertia[1:] *= scale[:, None]
        if shifted:
            model.body_ipos[model.body(shifted).id] += shift
        import_mujoco().mj_setConst(model, self._data)
        return model


def sensor_columns(model: Any) -> dict[str, slice]:
    """Return where the readings of every sensor of a model are."""
    columns = {}
    for i in range(model.nsensor):
        sensor = model.sensor(i)
        start, width = int(sensor.adr[0]), int(sensor.dim[0])
        columns[sensor.name] = slice(start, start + width)
    return columns
