"""Every fault leads to an error of LeRobot's own."""

import builtins
import importlib.metadata

import pytest

from prism_motor._checks import InputError
from prism_motor.integrations.feetech import FAULTS, Fault
from prism_motor.sim.so101.units import JOINTS

lerobot = pytest.importorskip("lerobot", reason="needs LeRobot")
RETRIES = 2 if importlib.metadata.version("lerobot") >= "0.6" else 0
"""How often LeRobot asks again when it reads positions."""


@pytest.fixture
def connected(make_bus, make_arm):
    bus = make_bus()
    arm = make_arm("follower", bus)
    arm.connect()
    return bus, arm


@pytest.mark.parametrize(
    ("kind", "said"),
    [("lost-status", "There is no status packet"), ("bad-checksum", "Incorrect status packet")],
)
def test_answers_that_do_not_arrive(connected, kind, said):
    bus, arm = connected
    bus.inject(Fault(kind, "elbow_flex", count=1 + RETRIES))
    with pytest.raises(ConnectionError, match=f"Failed to sync read 'Present_Position'.*{said}"):
        arm.get_observation()
    assert arm.get_observation()["elbow_flex.pos"] == pytest.approx(0, abs=0.1)


@pytest.mark.skipif(not RETRIES, reason="this LeRobot does not ask again")
def test_one_lost_answer_is_asked_for_again(connected):
    bus, arm = connected
    bus.inject(Fault("lost-status", count=1))
    assert arm.get_observation()["elbow_flex.pos"] == pytest.approx(0, abs=0.1)


def test_a_lost_acknowledgement(connected):
    bus, arm = connected
    bus.inject(Fault("lost-status", "gripper", count=1))
    with pytest.raises(ConnectionError, match="Failed to write 'P_Coefficient' on id_=6"):
        arm.bus.write("P_Coefficient", "gripper", 16)


def test_a_motor_that_is_not_there(make_bus, make_arm):
    bus = make_bus()
    bus.inject(Fault("missing-motor", "wrist_flex"))
    with pytest.raises(RuntimeError, match=r"Missing motor IDs:\s+- 4 \(expected model: 777\)"):
        make_arm("follower", bus).connect()


def test_another_model(make_bus, make_arm):
    bus = make_bus()
    bus.inject(Fault("wrong-model", "shoulder_pan"))
    with pytest.raises(RuntimeError, match=r"1 \(shoulder_pan\): expected 777, found 778"):
        make_arm("follower", bus).connect()


def test_another_firmware(make_bus, make_arm):
    bus = make_bus()
    bus.inject(Fault("wrong-firmware", "gripper"))
    with pytest.raises(RuntimeError, match=r"(?s)different firmware versions:.*6: '4.10'"):
        make_arm("leader", bus).connect()


def test_an_overload(connected):
    bus, arm = connected
    bus.inject(Fault("overload", "gripper"))
    with pytest.raises(RuntimeError, match=r"Present_Position.*Overload"):
        arm.bus.read("Present_Position", "gripper")


def test_a_servo_calibrated_elsewhere_is_asked_about_and_put_right(make_bus, make_arm, monkeypatch):
    bus = make_bus()
    bus.inject(Fault("wrong-calibration", "shoulder_lift"))
    arm = make_arm("follower", bus)
    asked = []
    monkeypatch.setattr(builtins, "input", lambda prompt="": asked.append(prompt) or "")
    arm.connect()
    assert len(asked) == 1
    assert "Press ENTER to use provided calibration file" in asked[0]
    assert arm.is_calibrated
    assert bus.memory["shoulder_lift"]["Homing_Offset"] == 0
    bus.inject(Fault("wrong-calibration"))
    assert not arm.is_calibrated


def test_faults_end(connected):
    bus, arm = connected
    bus.inject(Fault("lost-status"))
    bus.inject(Fault("overload"))
    bus.faults.clear()
    arm.get_observation()
    arm.bus.read("Present_Position", "gripper")


def test_faults_are_read_from_texts():
    assert Fault.parse("lost-status:gripper:3", JOINTS) == Fault("lost-status", "gripper", 3)
    assert Fault.parse("overload", JOINTS) == Fault("overload")
    assert all(Fault.parse(kind, JOINTS).kind == kind for kind in FAULTS)
    with pytest.raises(InputError, match="Did you mean 'lost-status'"):
        Fault.parse("lost-statu", JOINTS)
    with pytest.raises(InputError, match=r"Unknown motor 'griper'.*Did you mean 'gripper'"):
        Fault.parse("overload:griper", JOINTS)
    with pytest.raises(InputError, match="whole number"):
        Fault.parse("overload:gripper:x", JOINTS)
