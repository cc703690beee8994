"""The memory of one STS3215 servo, by the names and addresses of Feetech's table."""

from __future__ import annotations

from dataclasses import dataclass

MODEL = 777
"""Model number of the STS3215."""
TURN = 4096
"""Ticks of a whole turn."""
FIRMWARE = (3, 10)
"""Version that all servos of an arm should have."""
MULTI_TURN = 0x10
"""Bit of the phase with which positions go on beyond a turn."""
MEMORY = 128


@dataclass(frozen=True)
class Register:
    """Where a value is kept."""

    address: int
    size: int = 1
    """Bytes."""
    sign: int | None = None
    """Bit that means minus; ``None`` if the value is never negative."""

    def encode(self, value: int) -> bytes:
        """Return a value's bytes; what has no room keeps its lowest bits, as in the servo."""
        if self.sign is not None:
            value = abs(value) % (1 << self.sign) | ((value < 0) << self.sign)
        return (value % (1 << 8 * self.size)).to_bytes(self.size, "little")

    def decode(self, data: bytes) -> int:
        """Return the value of some bytes."""
        value = int.from_bytes(data, "little")
        if self.sign is not None and value >> self.sign & 1:
            return -(value & ((1 << self.sign) - 1))
        return value


REGISTERS = {
    "Firmware_Major_Version": Register(0),
    "Firmware_Minor_Version": Register(1),
    "Model_Number": Register(3, 2),
    "ID": Register(5),
    "Baud_Rate": Register(6),
    "Return_Delay_Time": Register(7),
    "Response_Status_Level": Register(8),
    "Min_Position_Limit": Register(9, 2),
    "Max_Position_Limit": Register(11, 2),
    "Max_Torque_Limit": Register(16, 2),
    "Phase": Register(18),
    "P_Coefficient": Register(21),
    "D_Coefficient": Register(22),
    "I_Coefficient": Register(23),
    "Protection_Current": Register(28, 2),
    "Homing_Offset": Register(31, 2, sign=11),
    "Operating_Mode": Register(33),
    "Overload_Torque": Register(36),
    "Torque_Enable": Register(40),
    "Acceleration": Register(41),
    "Goal_Position": Register(42, 2, sign=15),
    "Torque_Limit": Register(48, 2),
    "Lock": Register(55),
    "Present_Position": Register(56, 2, sign=15),
    "Present_Velocity": Register(58, 2, sign=15),
    "Present_Voltage": Register(62),
    "Present_Temperature": Register(63),
    "Moving": Register(66),
    "Maximum_Acceleration": Register(85),
}
"""The registers that mean something here; all others are memory and nothing else."""

_FACTORY = {
    "Firmware_Major_Version": FIRMWARE[0],
    "Firmware_Minor_Version": FIRMWARE[1],
    "Model_Number": MODEL,
    "Return_Delay_Time": 250,
    "Response_Status_Level": 1,
    "Max_Position_Limit": TURN - 1,
    "Max_Torque_Limit": 1000,
    "Phase": 12,
    "P_Coefficient": 32,
    "D_Coefficient": 32,
    "Protection_Current": 500,
    "Overload_Torque": 80,
    "Torque_Limit": 1000,
    "Lock": 1,
    "Present_Voltage": 120,
    "Present_Temperature": 30,
}

_READ_ONLY = (range(0, 5), range(56, 80))
"""Addresses that only the servo itself writes."""


class ServoMemory:
    """Registers of one servo, with the values it leaves the factory with.

    Args:
        number: Its number on the bus.
    """

    def __init__(self, number: int) -> None:
        self._bytes = bytearray(MEMORY)
        for name, value in {**_FACTORY, "ID": number}.items():
            self[name] = value

    def __getitem__(self, name: str) -> int:
        """Return the value of a register."""
        place = REGISTERS[name]
        return place.decode(bytes(self._bytes[place.address : place.address + place.size]))

    def __setitem__(self, name: str, value: int) -> None:
        place = REGISTERS[name]
        self._bytes[place.address : place.address + place.size] = place.encode(value)

    def read(self, address: int, size: int) -> bytes:
        """Return what a read instruction gets; there are zeros beyond the memory."""
        return bytes(self._bytes[address : address + size]).ljust(size, b"\0")

    def write(self, address: int, data: bytes) -> None:
        """Do what a write instruction does: change what may be changed."""
        for place, value in enumerate(data, address):
            if place < MEMORY and not any(place in area for area in _READ_ONLY):
                self._bytes[place] = value
