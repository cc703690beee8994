"""LeRobot's unmodified follower and leader on the emulated bus."""

import builtins
import json
import time

import pytest

from prism_motor.integrations.feetech.calibration import calibration
from prism_motor.integrations.feetech.packets import Instruction, Packet, PacketReader
from prism_motor.sim.so101.units import CENTRE, JOINTS, tick_ranges, to_lerobot


def ticks(bus):
    return [round(place) for place in bus.servos.positions()]


def test_answers_come_from_the_servos_that_were_asked(make_bus):
    bus = make_bus(start=(2047, 100, 200, 300, 400, 500))
    read = Packet(0xFE, Instruction.SYNC_READ, bytes([56, 2, 3, 1, 9]))
    assert bus.answer(read) == bytes.fromhex("FF FF 03 04 00 C8 00 30 FF FF 01 04 00 FF 07 F4")
    assert bus.answer(Packet(9, Instruction.PING)) == b""
    everyone = bus.answer(Packet(0xFE, Instruction.PING))
    assert [packet.number for packet in PacketReader().feed(everyone)] == [1, 2, 3, 4, 5, 6]


def test_writes_are_acknowledged_unless_the_servo_is_told_not_to(make_bus):
    bus = make_bus()
    assert bus.answer(Packet(2, Instruction.WRITE, bytes([21, 16]))) == bytes.fromhex(
        "FF FF 02 02 00 FB"
    )
    assert bus.memory["shoulder_lift"]["P_Coefficient"] == 16
    bus.answer(Packet(2, Instruction.WRITE, bytes([8, 0])))
    assert bus.answer(Packet(2, Instruction.WRITE, bytes([21, 32]))) == b""
    assert bus.memory["shoulder_lift"]["P_Coefficient"] == 32


def test_a_servo_can_get_another_number(make_bus):
    bus = make_bus()
    bus.answer(Packet(6, Instruction.WRITE, bytes([5, 17])))
    assert bus.answer(Packet(6, Instruction.PING)) == b""
    assert bus.answer(Packet(17, Instruction.PING))[2] == 17


def test_the_calibration_is_the_middle_of_every_range():
    ranges = {name: (one["range_min"], one["range_max"]) for name, one in calibration().items()}
    assert ranges["shoulder_pan"] == (796, 3298)
    assert ranges["gripper"] == (1933, 3185)
    assert ranges["wrist_roll"] == (0, 4095)
    assert [one["id"] for one in calibration().values()] == [1, 2, 3, 4, 5, 6]


def test_the_follower_connects_is_configured_and_is_released(make_bus, make_arm):
    bus = make_bus()
    arm = make_arm("follower", bus)
    arm.connect()  # asks nothing: servos and file agree
    assert arm.is_calibrated
    assert all(bus.torque().values())
    for name in JOINTS:
        memory = bus.memory[name]
        assert (memory["P_Coefficient"], memory["I_Coefficient"]) == (16, 0)
        assert (memory["D_Coefficient"], memory["Return_Delay_Time"]) == (32, 0)
    assert bus.memory["gripper"]["Max_Torque_Limit"] == 500
    arm.disconnect()
    assert not any(bus.torque().values())
    arm.connect()  # the port is still there
    arm.disconnect()


def test_positions_are_those_of_the_twin_in_lerobots_units(make_bus, make_arm):
    radians = [0.5, -0.4, 0.3, -0.2, 1.0, 0.7]
    start = [CENTRE + q * 4095 / 6.283185307179586 for q in radians]
    arm = make_arm("follower", make_bus(start=start))
    arm.connect()
    seen = [arm.get_observation()[f"{name}.pos"] for name in JOINTS]
    # One tick is .088 deg, and .08 % of the gripper's range.
    assert seen == pytest.approx(list(to_lerobot(radians)), abs=0.1)


def test_goals_beyond_the_limits_stop_there(make_bus, make_arm):
    bus = make_bus()
    arm = make_arm("follower", bus)
    arm.connect()
    arm.send_action({"shoulder_pan.pos": 170.0, "gripper.pos": 250.0})
    time.sleep(1)
    seen = arm.get_observation()
    assert seen["shoulder_pan.pos"] == pytest.approx(110.0, abs=0.1)
    assert seen["gripper.pos"] == 100.0


def test_a_leader_moved_by_hand_is_followed_within_two_ticks(make_bus, make_arm):
    leader_bus, follower_bus = make_bus(), make_bus()
    leader, follower = make_arm("leader", leader_bus), make_arm("follower", follower_bus)
    leader.connect()
    follower.connect()
    assert not any(leader_bus.torque().values())
    began = time.monotonic()
    while (passed := time.monotonic() - began) < 1.0:
        for joint, name in enumerate(JOINTS):
            end = tick_ranges()[name].high - 60
            leader_bus.servos.turn(joint, CENTRE + min(passed, 0.7) / 0.7 * (end - CENTRE))
        follower.send_action(leader.get_action())
        time.sleep(1 / 60)
    assert ticks(leader_bus)[0] == tick_ranges()["shoulder_pan"].high - 60
    for ours, theirs in zip(ticks(leader_bus), ticks(follower_bus), strict=True):
        assert abs(ours - theirs) <= 2


@pytest.mark.parametrize("kind", ["follower", "leader"])
def test_an_arm_without_a_file_is_calibrated_by_hand(make_bus, make_arm, monkeypatch, kind):
    bus = make_bus(start=(1500,) * 6, calibrated=False)
    arm = make_arm(kind, bus, file=False)
    monkeypatch.setattr(builtins, "input", lambda prompt="": "")  # "in the middle, ENTER"
    # A hand that moves to both ends, then back; LeRobot looks after every step.
    looks = iter([1000, 2000, 1500])

    def enter_after_both_ends():
        place = next(looks)
        for joint in range(6):
            bus.servos.turn(joint, place)
        return place == 1500

    monkeypatch.setattr("lerobot.motors.motors_bus.enter_pressed", enter_after_both_ends)
    arm.connect()
    written = json.loads((arm.calibration_fpath).read_text())
    # The middle, 1500, becomes 2047; so 1000 and 2000 become 1547 and 2547.
    assert written["elbow_flex"] == {
        "id": 3,
        "drive_mode": 0,
        "homing_offset": 1500 - 2047,
        "range_min": 1547,
        "range_max": 2547,
    }
    assert bus.memory["elbow_flex"]["Homing_Offset"] == 1500 - 2047
    assert (written["wrist_roll"]["range_min"], written["wrist_roll"]["range_max"]) == (0, 4095)
    assert arm.is_calibrated
    arm.disconnect()


def test_a_link_is_a_port_that_keeps_its_name(make_bus, make_arm, tmp_path):
    link = tmp_path / "arms" / "follower"
    bus = make_bus(link=link)
    assert bus.port == str(link)
    arm = make_arm("follower", link)
    arm.connect()
    arm.disconnect()
    bus.__exit__(None, None, None)
    assert not link.is_symlink()
    bus.__enter__()


def test_a_port_that_is_not_there_is_lerobots_error(make_arm, tmp_path):
    with pytest.raises(ConnectionError, match="Could not connect on port"):
        make_arm("follower", tmp_path / "nowhere").connect()
