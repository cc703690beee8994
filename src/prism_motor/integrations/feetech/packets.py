"""Packets of Feetech's serial protocol 0, as the STS series speaks it.

An instruction is ``FF FF id length instruction parameters checksum``, its answer (a status packet)
``FF FF id length error data checksum``. The length counts what follows it; the checksum is the
inverted low byte of the sum of everything between header and checksum; numbers are little endian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

HEADER = b"\xff\xff"
BROADCAST = 0xFE
"""Number that addresses all servos."""
_SHORTEST = 6
"""Bytes of a packet without parameters."""


class Instruction(IntEnum):
    """What a packet asks for."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


@dataclass(frozen=True)
class Packet:
    """An instruction to one servo, or to all."""

    number: int
    """Number of the servo, or ``BROADCAST``."""
    instruction: int
    """One of :class:`Instruction`, if the sender made no mistake."""
    parameters: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes on the wire."""
        return _frame(self.number, self.instruction, self.parameters)


def status(number: int, data: bytes = b"", error: int = 0) -> bytes:
    """Return the bytes of a servo's answer."""
    return _frame(number, error, data)


def checksum(body: bytes) -> int:
    """Return the checksum of what stands between header and checksum."""
    return ~sum(body) & 0xFF


def _frame(number: int, kind: int, rest: bytes) -> bytes:
    body = bytes([number, len(rest) + 2, kind]) + rest
    return HEADER + body + bytes([checksum(body)])


class PacketReader:
    """Finds instructions in a stream of bytes; a packet with a wrong checksum is passed over."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, received: bytes) -> Iterator[Packet]:
        """Yield the instructions that are complete with what was received."""
        self._waiting += received
        while True:
            start = self._waiting.find(HEADER)
            if start < 0:
                del self._waiting[: max(0, len(self._waiting) - 1)]
                return
            del self._waiting[:start]
            if len(self._waiting) < _SHORTEST:
                return
            end = self._waiting[3] + 4
            # A third FF, or a length that cannot be, belongs to noise in front of a packet.
            if self._waiting[2] == 0xFF or end < _SHORTEST:
                del self._waiting[0]
                continue
            if len(self._waiting) < end:
                return
            whole = bytes(self._waiting[:end])
            if checksum(whole[2:-1]) != whole[-1]:
                del self._waiting[0]
                continue
            del self._waiting[:end]
            yield Packet(whole[2], whole[4], whole[5:-1])
