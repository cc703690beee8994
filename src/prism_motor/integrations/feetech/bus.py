"""A pseudo-terminal with six STS3215 servos on it, which LeRobot takes for an arm's motor bus."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from prism_motor._checks import PrismError
from prism_motor.integrations.feetech.faults import Fault, FaultyAnswers
from prism_motor.integrations.feetech.packets import (
    BROADCAST,
    Instruction,
    Packet,
    PacketReader,
    status,
)
from prism_motor.integrations.feetech.registers import MODEL, MULTI_TURN, TURN, ServoMemory
from prism_motor.integrations.feetech.servos import Drive, Servos

_POSITION_MODE = 0
_WRONG_OFFSET = 100
"""Ticks by which a servo calibrated elsewhere is off."""


class FeetechBus:
    """Servos that answer on a pseudo-terminal, in a thread of their own, until closed.

    Used with ``with``; :attr:`port` is what LeRobot connects to.

    Args:
        motors: Their names; they have the numbers 1, 2, 3, ... in this order.
        servos: What turns behind them.
        link: Also offer the port under this path, which stays the same from call to call.
    """

    def __init__(self, motors: Sequence[str], servos: Servos, *, link: Path | None = None) -> None:
        self.motors = tuple(motors)
        self.servos = servos
        self.memory = {name: ServoMemory(i) for i, name in enumerate(self.motors, 1)}
        self.faults = FaultyAnswers()
        self.port = ""
        self._link = link
        self._thread: threading.Thread | None = None
        self._ends: tuple[int, ...] = ()

    def calibrate(self, ranges: Mapping[str, tuple[int, int]]) -> None:
        """Write the limits of each motor's range, as LeRobot's calibration does; no offsets."""
        for name, (low, high) in ranges.items():
            memory = self.memory[name]
            memory["Homing_Offset"] = 0
            memory["Min_Position_Limit"], memory["Max_Position_Limit"] = low, high

    def inject(self, fault: Fault) -> None:
        """Let a fault begin; what it changes in a servo's memory stays, as it does in a servo."""
        if fault.kind == "wrong-calibration":
            for name in self.motors if not fault.motor else (fault.motor,):
                self.memory[name]["Homing_Offset"] += _WRONG_OFFSET
        self.faults.add(fault)

    def torque(self) -> dict[str, bool]:
        """Return which motors are on."""
        return {name: bool(self.memory[name]["Torque_Enable"]) for name in self.motors}

    def __enter__(self) -> FeetechBus:
        """Open the port and start to answer."""
        try:
            import tty
        except ImportError as error:  # Windows
            raise PrismError(
                "The emulated bus needs pseudo-terminals, which this system does not have. "
                "Use --robot.type=so101_sim instead."
            ) from error
        ours, theirs = os.openpty()
        wake, stop = os.pipe()
        # Keeping their end open spares us an error whenever LeRobot closes the port.
        self._ends = (ours, theirs, wake, stop)
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        if self._link is not None:
            self._link.parent.mkdir(parents=True, exist_ok=True)
            self._link.unlink(missing_ok=True)
            self._link.symlink_to(self.port)
            self.port = str(self._link)
        self._thread = threading.Thread(
            target=self._serve, args=(ours, wake), name="feetech-bus", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            os.write(self._ends[-1], b"x")
            self._thread.join()
            self._thread = None
        for end in self._ends:
            os.close(end)
        self._ends = ()
        if self._link is not None:
            self._link.unlink(missing_ok=True)
        self.servos.close()

    def _serve(self, ours: int, wake: int) -> None:
        reader = PacketReader()
        while True:
            ready, _, _ = select.select([ours, wake], [], [])
            if wake in ready:
                return
            for packet in reader.feed(os.read(ours, 4096)):
                answer = self.answer(packet)
                if answer:
                    os.write(ours, answer)

    def answer(self, packet: Packet) -> bytes:
        """Do what an instruction says and return the bytes of all answers."""
        if packet.instruction == Instruction.SYNC_READ and len(packet.parameters) > 2:
            address, size = packet.parameters[:2]
            asked = [self._find(number) for number in packet.parameters[2:]]
            return b"".join(self._send(name, self._read(name, address, size)) for name in asked)
        if packet.instruction == Instruction.SYNC_WRITE and len(packet.parameters) > 2:
            self._sync_write(packet.parameters)
            return b""
        everyone = packet.number == BROADCAST
        names = list(self.motors) if everyone else [self._find(packet.number)]
        if packet.instruction == Instruction.PING:
            return b"".join(self._send(name, b"") for name in names)
        if packet.instruction == Instruction.READ and len(packet.parameters) == 2 and not everyone:
            return self._send(names[0], self._read(names[0], *packet.parameters))
        if packet.instruction == Instruction.WRITE and packet.parameters:
            for name in names:
                self._write(name, packet.parameters[0], packet.parameters[1:])
            if not everyone and names[0] and self.memory[names[0]]["Response_Status_Level"]:
                return self._send(names[0], b"")
        return b""  # the other instructions are not LeRobot's

    def _find(self, number: int) -> str:
        """Return the motor with a number; empty if there is none, or it is not plugged in."""
        for name, memory in self.memory.items():
            if memory["ID"] == number and not self.faults.has("missing-motor", name):
                return name
        return ""

    def _send(self, name: str, data: bytes) -> bytes:
        if not name or self.faults.has("missing-motor", name):
            return b""
        answer = status(self.memory[name]["ID"], data, self.faults.error(name))
        return self.faults.send(name, answer)

    def _read(self, name: str, address: int, size: int) -> bytes:
        if not name:
            return b""
        memory = self.memory[name]
        memory["Present_Position"] = self._present(name)
        wrong_firmware = self.faults.has("wrong-firmware", name)
        data = bytearray(memory.read(0, address + size))
        data[0] += wrong_firmware
        if self.faults.has("wrong-model", name):
            data[3:5] = (MODEL + 1).to_bytes(2, "little")
        return bytes(data[address : address + size])

    def _present(self, name: str) -> int:
        memory = self.memory[name]
        turned = round(self.servos.positions()[self.motors.index(name)]) % TURN
        present = turned - memory["Homing_Offset"]
        return present if memory["Phase"] & MULTI_TURN else present % TURN

    def _sync_write(self, parameters: bytes) -> None:
        address, size = parameters[:2]
        for start in range(2, len(parameters) - size, size + 1):
            name = self._find(parameters[start])
            self._write(name, address, parameters[start + 1 : start + 1 + size])

    def _write(self, name: str, address: int, data: bytes) -> None:
        if not name:
            return
        memory = self.memory[name]
        was_on = memory["Torque_Enable"]
        memory.write(address, data)
        # A motor that is switched on holds the joint where it is.
        if memory["Torque_Enable"] and not was_on:
            memory["Goal_Position"] = self._present(name)
        low, high = memory["Min_Position_Limit"], memory["Max_Position_Limit"]
        goal = min(max(memory["Goal_Position"], low), high)
        self.servos.drive(
            self.motors.index(name),
            Drive(
                goal=goal + memory["Homing_Offset"],
                torque=bool(memory["Torque_Enable"]) and memory["Operating_Mode"] == _POSITION_MODE,
                gain=memory["P_Coefficient"],
                limit=min(memory["Max_Torque_Limit"], memory["Torque_Limit"]) / 1000,
            ),
        )
