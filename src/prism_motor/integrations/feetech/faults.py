"""Faults that the emulated bus can have, each of which LeRobot answers with an error of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from prism_motor._checks import InputError, check_choice
from prism_motor._ranges import Checked, between

FAULTS = {
    "lost-status": "answers get lost",
    "bad-checksum": "answers arrive with a wrong checksum",
    "missing-motor": "the servo is not plugged in",
    "wrong-firmware": "the servo has another firmware than the others",
    "wrong-model": "the servo is another model",
    "wrong-calibration": "the servo was calibrated elsewhere: its homing offset differs",
    "overload": "the servo reports an overload with every answer",
}
"""What can be wrong, by name."""

OVERLOAD = 0x20
"""Bit of the error byte."""


@dataclass(frozen=True)
class Fault(Checked, section="fault"):
    """Something that is wrong with the bus."""

    kind: str
    """One of ``FAULTS``."""
    motor: str = ""
    """The servo; empty: every servo."""
    count: Annotated[int, between(0, 10**6)] = 0
    """After how many answers it is gone, for faults of answers; 0: never."""

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        check_choice("fault", self.kind, FAULTS)

    @classmethod
    def parse(cls, text: str, motors: Sequence[str]) -> Fault:
        """Read ``KIND[:MOTOR[:COUNT]]``, e.g. ``lost-status:gripper:3``."""
        kind, _, rest = text.partition(":")
        motor, _, count = rest.partition(":")
        if motor:
            check_choice("motor", motor, motors)
        if count and not count.isdigit():
            raise InputError(f"A fault is KIND:MOTOR:COUNT with a whole number, got {text!r}.")
        return cls(kind, motor, int(count or 0))


class FaultyAnswers:
    """The faults of a bus, applied to the answers on their way."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Let a fault begin."""
        self._faults.append(fault)

    def clear(self) -> None:
        """End all faults."""
        self._faults.clear()

    def has(self, kind: str, motor: str) -> bool:
        """Return whether a servo has a fault now."""
        return any(one.kind == kind and one.motor in ("", motor) for one in self._faults)

    def error(self, motor: str) -> int:
        """Return the error byte of a servo's answers."""
        return OVERLOAD if self.has("overload", motor) else 0

    def send(self, motor: str, answer: bytes) -> bytes:
        """Return what arrives of an answer."""
        if self._happens("lost-status", motor):
            return b""
        if self._happens("bad-checksum", motor):
            return answer[:-1] + bytes([answer[-1] ^ 0x55])
        return answer

    def _happens(self, kind: str, motor: str) -> bool:
        for place, fault in enumerate(self._faults):
            if fault.kind == kind and fault.motor in ("", motor):
                if fault.count == 1:
                    del self._faults[place]
                elif fault.count:
                    self._faults[place] = replace(fault, count=fault.count - 1)
                return True
        return False
