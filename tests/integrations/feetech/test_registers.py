"""The memory of a servo, against LeRobot's table of the same servo."""

import pytest

from prism_motor.integrations.feetech.registers import REGISTERS, Register, ServoMemory


def test_signs_are_a_bit_of_their_own():
    offset = Register(31, 2, sign=11)
    assert offset.encode(-5) == bytes([5, 0x08])
    assert offset.decode(bytes([5, 0x08])) == -5
    assert offset.encode(5) == bytes([5, 0])
    assert all(offset.decode(offset.encode(value)) == value for value in range(-2047, 2048))


def test_only_the_servo_writes_its_model_and_position():
    memory = ServoMemory(4)
    memory.write(0, bytes(128))
    assert (memory["Model_Number"], memory["Firmware_Major_Version"]) == (777, 3)
    assert memory["ID"] == 0
    memory["Present_Position"] = -3
    memory.write(56, bytes([1, 1]))
    assert memory["Present_Position"] == -3
    memory.write(127, bytes([1, 2, 3]))  # beyond the end
    assert memory.read(126, 4) == bytes([0, 1, 0, 0])


def test_addresses_and_signs_are_those_lerobot_uses():
    tables = pytest.importorskip("lerobot.motors.feetech.tables", reason="needs LeRobot")
    theirs = tables.MODEL_CONTROL_TABLE["sts3215"]
    signs = tables.MODEL_ENCODING_TABLE["sts3215"]
    assert len(REGISTERS) > 25
    for name, register in REGISTERS.items():
        assert theirs[name] == (register.address, register.size), name
        assert signs.get(name) == register.sign, name
    assert ServoMemory(1)["Model_Number"] == tables.MODEL_NUMBER_TABLE["sts3215"]
