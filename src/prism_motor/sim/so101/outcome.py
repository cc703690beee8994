"""What happened to a thing on the table, watched at every physics step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.so101.arm import PARTS
from prism_motor.sim.so101.button import Button


@dataclass(frozen=True)
class TwinOutcome:
    """What happened since the reset."""

    pressed: bool = False
    """Whether the button closed under the arm; of a cube: whether the arm touched it."""
    released: bool = False
    """Whether it opened again; of a cube: whether the arm let go of it."""
    success: bool = False
    """The strict criterion of the task."""
    lenient: bool = False
    """The lenient one: the button closed; of a cube: it is in the zone, touched or not."""
    displacement: float = 0.0
    """Largest distance of the thing to where it was put, m."""
    time_to_press: float | None = None
    """Time of the first press, s."""
    peak_force: float = 0.0
    """Largest force of the arm on the thing, N."""
    double_clicks: int = 0
    """How often the button closed again after the first press."""
    wrong_presses: int = 0
    """How often the arm closed another button."""
    failure: str | None = None
    """What went wrong so far: no contact, beside the target, too light, pushed it away, stuck, or
    other; None after a success."""


class Watcher(ABC):
    """Watches one thing of a compiled scene.

    Args:
        model: The compiled ``mjModel``.
        body: Name of the thing; bodies on it count as it.
    """

    def __init__(self, model: Any, body: str) -> None:
        self.model = model
        self._body = model.body(body).id
        roots = model.body_rootid
        self._of_arm = roots[model.geom_bodyid] == model.body(PARTS[0].name).id
        self._of_thing = roots[model.geom_bodyid] == self._body

    def reset(self, data: Any) -> None:
        """Forget everything; the thing is where it was put."""
        self._start = data.xpos[self._body, :2].copy()
        self._began = data.time
        self._displacement = self._peak = 0.0
        self._pressed_at: float | None = None

    def watch(self, data: Any) -> None:
        """Note what a physics step did."""
        away = np.linalg.norm(data.xpos[self._body, :2] - self._start)
        self._displacement = max(self._displacement, float(away))
        touching = self._touching(data)
        if len(touching):
            self._peak = max(self._peak, self._force(data, touching))
        self.note(data, touching)

    @abstractmethod
    def note(self, data: Any, touching: NDArray[np.intp]) -> None:
        """Note what the task is about.

        Args:
            data: The state after a physics step.
            touching: Numbers of the contacts between arm and thing.
        """

    @property
    @abstractmethod
    def outcome(self) -> TwinOutcome:
        """What happened since the reset."""

    def _press(self, data: Any) -> None:
        if self._pressed_at is None:
            self._pressed_at = data.time - self._began

    def _touching(self, data: Any) -> NDArray[np.intp]:
        if not data.ncon:
            return np.zeros(0, dtype=np.intp)
        pairs = data.contact.geom
        meets = self._of_arm[pairs].any(1) & self._of_thing[pairs].any(1)
        return np.flatnonzero(meets & (data.contact.efc_address >= 0))

    def _force(self, data: Any, contacts: NDArray[np.intp]) -> float:
        mujoco = import_mujoco()
        total, local = np.zeros(3), np.zeros(6)
        for number in contacts.tolist():
            mujoco.mj_contactForce(self.model, data, number, local)
            contact = data.contact[number]
            # The frame points from the first geom to the second.
            sign = 1.0 if self._of_arm[contact.geom[0]] else -1.0
            total += sign * (local[:3] @ contact.frame.reshape(3, 3))
        return float(np.linalg.norm(total))


class ButtonWatcher(Watcher):
    """Watches buttons, of which one shall be pressed and the others not.

    Args:
        model: The compiled ``mjModel``.
        body: Name of the thing they are on.
        buttons: Names of all buttons.
        wanted: Name of the one to press.
        button: Their spring and travel.
        most: Displacement of the thing from which on a press does not count, m.
    """

    def __init__(
        self,
        model: Any,
        body: str,
        buttons: Sequence[str],
        wanted: str,
        button: Button,
        most: float,
    ) -> None:
        super().__init__(model, body)
        self._button, self._most = button, most
        self._wanted = list(buttons).index(wanted)
        self._depths = np.array([model.joint(name).qposadr[0] for name in buttons])
        self._bodies = np.array([model.body(name).id for name in buttons])

    def reset(self, data: Any) -> None:
        """Forget everything; no button is pressed."""
        super().reset(data)
        self._reached = False
        self._closed = np.zeros(len(self._depths), dtype=bool)
        self._presses = np.zeros(len(self._depths), dtype=int)

    def note(self, data: Any, touching: NDArray[np.intp]) -> None:
        """Count buttons that the arm closes, and those that open again."""
        depths = data.qpos[self._depths]
        self._closed &= depths >= self._button.release
        if not len(touching):
            return
        touched = np.isin(self._bodies, self.model.geom_bodyid[data.contact.geom[touching]])
        self._reached |= bool(touched[self._wanted])
        closing = touched & ~self._closed & (depths >= self._button.threshold)
        self._closed |= closing
        self._presses += closing
        if closing[self._wanted]:
            self._press(data)

    @property
    def outcome(self) -> TwinOutcome:
        """What happened since the reset."""
        presses = int(self._presses[self._wanted])
        wrong = int(self._presses.sum()) - presses
        released = presses > 0 and not self._closed[self._wanted]
        success = released and wrong == 0 and self._displacement < self._most
        return TwinOutcome(
            pressed=presses > 0,
            released=released,
            success=success,
            lenient=presses > 0,
            displacement=self._displacement,
            time_to_press=self._pressed_at,
            peak_force=self._peak,
            double_clicks=max(0, presses - 1),
            wrong_presses=wrong,
            failure=None if success else self._failure(released),
        )

    def _failure(self, released: bool) -> str:
        if not self._peak:
            return "no contact"
        if self._displacement >= self._most:
            return "pushed it away"
        if released or not self._reached:
            return "beside the target"  # another button closed, or none was touched
        return "stuck" if self._presses[self._wanted] else "too light"


class ZoneWatcher(Watcher):
    """Watches a cube that shall be in a zone, at rest and not touched.

    Args:
        model: The compiled ``mjModel``.
        body: Name of the cube.
        centre: Centre of the zone, m.
        radius: Largest distance of the cube's centre, m.
        still: Speed below which it is at rest, m/s.
    """

    def __init__(
        self, model: Any, body: str, centre: tuple[float, float], radius: float, still: float = 0.01
    ) -> None:
        super().__init__(model, body)
        self._centre, self._radius, self._still = np.array(centre), radius, still
        self._dofs = model.jnt_dofadr[model.body_jntadr[self._body]]

    def reset(self, data: Any) -> None:
        """Forget everything; the cube is at rest."""
        super().reset(data)
        self._touched = self._inside = False
        self._resting = True

    def note(self, data: Any, touching: NDArray[np.intp]) -> None:
        """Note touch, place and speed."""
        self._touched = len(touching) > 0
        if self._touched:
            self._press(data)
        away = np.linalg.norm(data.xpos[self._body, :2] - self._centre)
        self._inside = bool(away < self._radius)
        speed = np.linalg.norm(data.qvel[self._dofs : self._dofs + 2])
        self._resting = bool(speed < self._still)

    @property
    def outcome(self) -> TwinOutcome:
        """What happened since the reset."""
        pressed = self._pressed_at is not None
        released = pressed and not self._touched
        success = released and self._inside and self._resting
        failure = "other" if pressed else "no contact"
        return TwinOutcome(
            pressed=pressed,
            released=released,
            success=success,
            lenient=self._inside,
            displacement=self._displacement,
            time_to_press=self._pressed_at,
            peak_force=self._peak,
            failure=None if success else failure,
        )
