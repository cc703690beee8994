"""The twin behind the emulated bus, in the time of the world and in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from prism_motor._ranges import Checked, Seed, between
from prism_motor.integrations.feetech.frames import frame_file, write_frame
from prism_motor.integrations.feetech.servos import Drive
from prism_motor.sim.so101.leaders import Leader, make_leader
from prism_motor.sim.so101.operator import Operator
from prism_motor.sim.so101.twin import FRAME, HOME, Twin
from prism_motor.sim.so101.units import CENTRE, JOINTS, TURN, to_lerobot, to_radians

GAIN = 16
"""P coefficient that LeRobot writes, for which the twin's stiffness was measured."""
_TICKS_PER_RADIAN = TURN / (2 * np.pi)
_PERIOD = 0.01
"""Seconds of simulation between two looks at the goals."""
_GRIPPER_SHARE = 0.5
"""Share of its torque that the twin's gripper has, because LeRobot writes that limit."""


@dataclass(frozen=True)
class TwinServosConfig(Checked, section="--"):
    """The twin behind a bus."""

    task: str = "mouse-click-v0"
    """What is on the table: mouse-click-v0, press-key-v0 or push-cube-v0."""
    servos: str = "soft"
    """Stiffness of the servos: soft or stiff."""
    placement: str = "narrow"
    """Where the thing is put: narrow or wide."""
    seed: Seed = 0
    """Seed of the first placement; later ones follow from it."""
    image_size: Annotated[int, between(0, 1024)] = 96
    """Side of the square pictures, pixels; 0: none."""


class TwinServos:
    """Joints of the twin; a motor that is off holds its joint, as if somebody held the arm.

    Args:
        config: Which twin.
        pictures: Folder for the cameras' pictures.
        led: Whether a scripted leader moves a leader arm; see :meth:`hand`.
    """

    def __init__(
        self, config: TwinServosConfig, pictures: Path | None = None, *, led: bool = False
    ) -> None:
        self.config = config
        self._pictures = pictures if config.image_size else None
        self._led = led
        self._drives: list[Drive | None] = [None] * len(JOINTS)
        self._positions = self._hand = _ticks(to_radians(HOME))
        self._error: BaseException | None = None
        self._ready, self._stop = threading.Event(), threading.Event()
        # The twin is made and drawn in one thread, to which its picture's context belongs.
        self._thread = threading.Thread(target=self._guard, name="so101-twin", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def positions(self) -> list[float]:
        """Return where the joints are now."""
        return self._positions

    def drive(self, joint: int, drive: Drive) -> None:
        """Take what a servo's motor has to do from now on."""
        self._drives[joint] = drive

    def hand(self, seconds: float) -> list[float]:
        """Return where the scripted leader holds the leader arm now, in ticks."""
        return self._hand

    @property
    def success(self) -> bool:
        """Whether the task is solved, since the thing was put where it is."""
        return self._success

    @property
    def placements(self) -> int:
        """How often the thing was put somewhere."""
        return self._placements

    def close(self) -> None:
        """End the thread and free the twin."""
        self._stop.set()
        self._thread.join()

    def _guard(self) -> None:
        try:
            self._run()
        except BaseException as error:  # raised again where the twin was asked for
            self._error = error
            self._ready.set()

    def _run(self) -> None:
        config = self.config
        with Twin(
            config.task,
            servos=config.servos,
            placement=config.placement,
            camera_size=config.image_size or 1,
        ) as twin:
            operator = Operator(twin, config.seed)
            show = _Show(make_leader(twin)) if self._led else None
            apply = _strengths(twin)
            held = twin.angles
            self._note(twin, operator)
            frames = 0
            self._draw(twin, frames)
            self._ready.set()
            due = time.monotonic()
            drawn = due
            while not self._stop.is_set():
                # Goals of motors that are on; what is off stays where it was.
                on = [drive is not None and drive.torque for drive in self._drives]
                for joint, drive in enumerate(self._drives):
                    if drive is not None and on[joint]:
                        held[joint] = _radians(drive.goal)
                        apply(joint, drive)
                twin.step(to_lerobot(held), seconds=_PERIOD)
                if operator.watch(_PERIOD):
                    held = twin.angles
                if show is not None:
                    self._hand = show.advance(_PERIOD, all(on), operator.placements)
                self._note(twin, operator)
                now = time.monotonic()
                if now - drawn >= FRAME:
                    drawn, frames = now, frames + 1
                    self._draw(twin, frames)
                # A computer that cannot keep up makes the world slower, not the physics coarser.
                due = max(due + _PERIOD, time.monotonic() - FRAME)
                self._stop.wait(max(0.0, due - time.monotonic()))
        if self._pictures is not None:
            for camera in twin.cameras:
                frame_file(self._pictures, camera).unlink(missing_ok=True)

    def _note(self, twin: Twin, operator: Operator) -> None:
        self._positions = _ticks(twin.angles)
        self._success, self._placements = twin.outcome.success, operator.placements

    def _draw(self, twin: Twin, number: int) -> None:
        if self._pictures is not None:
            for camera, image in twin.images().items():
                write_frame(self._pictures, camera, number, image)


_BEFORE = 1.0
"""Seconds that the leader waits once the follower is ready."""


class _Show:
    """A scripted leader at the pace of the world: shows when the arm is ready, once per place."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._shown = 0
        self._wait = _BEFORE
        self._hand = _ticks(to_radians(HOME))

    def advance(self, seconds: float, ready: bool, placements: int) -> list[float]:
        """Return where the leader arm is held, in ticks.

        Args:
            seconds: Time since the last call.
            ready: Whether the follower's motors are on; without them the leader waits at home.
            placements: How often the thing was put somewhere.
        """
        if not ready:
            self._hand, self._shown = _ticks(to_radians(HOME)), 0
            self._wait = _BEFORE
        elif self._wait > 0:
            self._wait -= seconds
        elif self._shown != placements:
            self._leader.reset()
            self._shown, self._wait = placements, 0.0
        elif not self._leader.done:
            self._wait = FRAME - seconds
            self._hand = _ticks(to_radians(self._leader.act()))
        return self._hand


def _strengths(twin: Twin) -> Callable[[int, Drive], None]:
    """Return what sets stiffness and torque of a joint's servo by its registers."""
    model = twin.model
    numbers = [model.actuator(name).id for name in JOINTS]
    gains, limits = model.actuator_gainprm.copy(), model.actuator_forcerange.copy()
    bias = model.actuator_biasprm.copy()
    limits[numbers[-1]] /= _GRIPPER_SHARE

    def apply(joint: int, drive: Drive) -> None:
        number, share = numbers[joint], drive.gain / GAIN
        model.actuator_gainprm[number, 0] = gains[number, 0] * share
        model.actuator_biasprm[number, 1] = bias[number, 1] * share
        model.actuator_forcerange[number] = limits[number] * drive.limit

    return apply


def _ticks(angles: np.ndarray) -> list[float]:
    return (CENTRE + angles * _TICKS_PER_RADIAN).tolist()


def _radians(ticks: float) -> float:
    return (ticks - CENTRE) / _TICKS_PER_RADIAN
