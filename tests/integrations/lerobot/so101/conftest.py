"""The twin in LeRobot's terms."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]

PATIENCE = """
from lerobot.motors.feetech import feetech

usual = feetech.patch_setPacketTimeout


def wait_longer(self, packet_length):
    usual(self, packet_length)
    self.packet_timeout += 2000


feetech.patch_setPacketTimeout = wait_longer
"""
"""A plugin for tests: a busy test machine may sleep through the 50 ms that LeRobot waits."""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """Keep LeRobot's calibration folders, which robots make, out of the user's home."""
    constants = pytest.importorskip("lerobot.utils.constants", reason="needs LeRobot")
    for place in ("lerobot.robots.robot", "lerobot.teleoperators.teleoperator"):
        module = pytest.importorskip(place)
        monkeypatch.setattr(module, "HF_LEROBOT_CALIBRATION", tmp_path / "calibration")
    assert tmp_path != constants.HF_LEROBOT_CALIBRATION


@pytest.fixture
def make_robot():
    """A connected twin; disconnected at the end of the test."""
    from prism_motor.integrations.lerobot.so101 import SO101Sim, SO101SimConfig

    made = []

    def make(connect=True, **fields):
        robot = SO101Sim(SO101SimConfig(**{"id": "twin", "image_size": 32, **fields}))
        made.append(robot)
        if connect:
            robot.connect()
        return robot

    yield make
    for robot in made:
        if robot.is_connected:
            robot.disconnect()


@pytest.fixture
def make_leader():
    """A connected scripted leader."""
    from prism_motor.integrations.lerobot.so101 import SO101SimLeader, SO101SimLeaderConfig

    def make(**fields):
        leader = SO101SimLeader(SO101SimLeaderConfig(**{"id": "scripted", **fields}))
        leader.connect()
        return leader

    return make


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory):
    """PYTHONPATH on which LeRobot's commands find the plugins, installed or not."""
    there = tmp_path_factory.mktemp("plugins")
    sources = [str(REPOSITORY / "src"), str(there)]
    (there / "lerobot_robot_patience.py").write_text(PATIENCE)
    for name in ("lerobot_robot_prism_so101", "lerobot_policy_prism", "lerobot_robot_patience"):
        metadata = there / f"{name}-0.1.0.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        sources.append(str(REPOSITORY / "plugins" / name / "src"))
    return os.pathsep.join(sources)


@pytest.fixture(scope="session")
def lerobot(plugin_path, tmp_path_factory):
    """Run one of LeRobot's commands in a process of its own; return what it said."""
    home = tmp_path_factory.mktemp("lerobot")
    environment = {
        **os.environ,
        "PYTHONPATH": plugin_path,
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(home),
        "HF_LEROBOT_HOME": str(home / "lerobot"),
    }

    def run(command, *arguments, fails=False):
        program = Path(sys.executable).with_name(f"lerobot-{command}")
        done = subprocess.run(
            [program, *map(str, arguments)],
            env=environment, cwd=home, capture_output=True, text=True, timeout=240,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, said[-4000:]
        return said

    run.home, run.environment = home / "lerobot", environment
    return run
