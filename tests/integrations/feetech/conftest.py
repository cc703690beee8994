"""Emulated arms, and LeRobot's own classes for them."""

import json

import pytest

from prism_motor.integrations.feetech import FeetechBus, FirstOrderServos
from prism_motor.integrations.feetech.calibration import calibrate, calibration
from prism_motor.sim.so101.units import CENTRE, JOINTS


@pytest.fixture
def make_bus():
    """A bus with calibrated servos that carry nothing; closed at the end of the test."""
    opened = []

    def make(start=(CENTRE,) * 6, calibrated=True, **options):
        bus = FeetechBus(JOINTS, FirstOrderServos(start), **options)
        if calibrated:
            calibrate(bus)
        opened.append(bus.__enter__())
        return bus

    yield make
    for bus in opened:
        bus.__exit__(None, None, None)


@pytest.fixture
def patient(monkeypatch):
    """Let LeRobot wait for a second: a busy test machine may sleep through the usual 50 ms."""
    feetech = pytest.importorskip("lerobot.motors.feetech.feetech", reason="needs LeRobot")
    usual = feetech.patch_setPacketTimeout

    def wait_longer(self, packet_length):
        usual(self, packet_length)
        self.packet_timeout += 1000

    monkeypatch.setattr(feetech, "patch_setPacketTimeout", wait_longer)


@pytest.fixture
def make_arm(tmp_path, patient):
    """LeRobot's follower or leader on a bus, with a calibration file; disconnected at the end."""
    pytest.importorskip("scservo_sdk", reason="feetech-servo-sdk is not installed")
    so_follower = pytest.importorskip("lerobot.robots.so_follower", reason="needs LeRobot")
    so_leader = pytest.importorskip("lerobot.teleoperators.so_leader", reason="needs LeRobot")
    made = []

    def make(kind, port, file=True, **options):
        folder = tmp_path / kind
        folder.mkdir(exist_ok=True)
        if file:
            (folder / "arm.json").write_text(json.dumps(calibration()))
        options |= {"port": str(getattr(port, "port", port)), "id": "arm"}
        options |= {"calibration_dir": folder}
        if kind == "follower":
            arm = so_follower.SO101Follower(so_follower.SO101FollowerConfig(**options))
        else:
            arm = so_leader.SO101Leader(so_leader.SO101LeaderConfig(**options))
        made.append(arm)
        return arm

    yield make
    for arm in made:
        if arm.bus.is_connected:
            arm.bus.port_handler.closePort()
