"""Packets byte by byte, against sums made by hand."""

import random

import pytest

from prism_motor.integrations.feetech.packets import Instruction, Packet, PacketReader, status


@pytest.mark.parametrize(
    ("packet", "wire"),
    [
        # id 1, length 2, PING 1: 1 + 2 + 1 = 4, inverted FB.
        (Packet(1, Instruction.PING), "FF FF 01 02 01 FB"),
        # READ two bytes from 56 (38h): 1 + 4 + 2 + 38h + 2 = 41h, inverted BE.
        (Packet(1, Instruction.READ, bytes([56, 2])), "FF FF 01 04 02 38 02 BE"),
        # WRITE goal (42 = 2Ah) 2048 = 0800h, low byte first: 6 + 5 + 3 + 2Ah + 8 = 40h, BF.
        (Packet(6, Instruction.WRITE, bytes([42, 0, 8])), "FF FF 06 05 03 2A 00 08 BF"),
        # SYNC_READ of servos 1 and 2: FEh + 6 + 82h + 38h + 2 + 1 + 2 = 1C3h, inverted 3C.
        (
            Packet(0xFE, Instruction.SYNC_READ, bytes([56, 2, 1, 2])),
            "FF FF FE 06 82 38 02 01 02 3C",
        ),
        # SYNC_WRITE goal 2047 = 07FFh to servo 1: FEh + 7 + 83h + 2Ah + 2 + 1 + FFh + 7 = 2BBh, 44.
        (
            Packet(0xFE, Instruction.SYNC_WRITE, bytes([42, 2, 1, 0xFF, 7])),
            "FF FF FE 07 83 2A 02 01 FF 07 44",
        ),
    ],
)
def test_instructions_are_what_was_added_up_by_hand(packet, wire):
    wire = bytes.fromhex(wire)
    assert packet.encode() == wire
    assert list(PacketReader().feed(wire)) == [packet]


def test_answers_are_what_was_added_up_by_hand():
    # Servo 1, no error, position 2047: 1 + 4 + 0 + FFh + 7 = 10Bh, inverted F4.
    assert status(1, bytes([0xFF, 7])) == bytes.fromhex("FF FF 01 04 00 FF 07 F4")
    # Servo 6 with an overload (bit 5): 6 + 2 + 20h = 28h, inverted D7.
    assert status(6, error=0x20) == bytes.fromhex("FF FF 06 02 20 D7")


@pytest.mark.parametrize("piece", range(1, 8))
def test_a_stream_in_pieces_gives_the_same_packets(piece):
    draw = random.Random(piece)
    for _ in range(50):
        sent = [
            Packet(draw.randrange(0xFF), draw.choice(list(Instruction)), draw.randbytes(size))
            for size in draw.choices(range(60), k=5)
        ]
        stream = b"".join(packet.encode() for packet in sent)
        reader = PacketReader()
        found = []
        for start in range(0, len(stream), piece):
            found += reader.feed(stream[start : start + piece])
        assert found == sent


@pytest.mark.parametrize("noise", ["00", "FF", "FF FF FF", "FF FF 01 02 01 00", "FF FF 01 00"])
def test_noise_and_wrong_checksums_are_passed_over(noise):
    ping = Packet(3, Instruction.PING)
    found = list(PacketReader().feed(bytes.fromhex(noise) + ping.encode() + ping.encode()))
    assert ping in found
    assert set(found) == {ping}
