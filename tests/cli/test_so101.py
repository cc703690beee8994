"""``prism so101 bus``: ports for LeRobot, until Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("mujoco", reason="mujoco is not installed")

from prism_motor._checks import InputError
from prism_motor.cli import main
from prism_motor.cli.so101 import _do
from prism_motor.integrations.feetech.arms import emulated_arms
from prism_motor.integrations.feetech.calibration import calibration
from prism_motor.integrations.feetech.packets import Instruction, Packet
from prism_motor.sim.so101.units import CENTRE


def failed(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["so101", *words])
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def start(tmp_path):
    """Start the command; it is ended after the test."""
    started = []

    def begin(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "prism_motor.cli", "so101", "bus", *words],
            env={**os.environ, "HF_LEROBOT_HOME": str(tmp_path / "home")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        lines = []
        while not lines or not lines[-1].startswith("Ctrl-C"):
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        return process, "".join(lines)

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_it_offers_ports_calibrations_and_cameras_and_ends_with_ctrl_c(start, tmp_path):
    folder = tmp_path / "arms"
    process, said = start("--leader", "--folder", str(folder), "--image-size", "32")
    assert f"--robot.type=so101_follower --robot.port={folder / 'follower'}" in said
    assert f"--teleop.type=so101_leader --teleop.port={folder / 'leader'}" in said
    assert f"folder: {folder}, width: 32, height: 32, fps: 30, name: wrist" in said
    for arm in ("robots/so_follower", "teleoperators/so_leader"):
        file = tmp_path / "home" / "calibration" / arm / "emulated.json"
        assert json.loads(file.read_text()) == calibration()
    assert os.readlink(folder / "follower").startswith("/dev/")
    assert (folder / "agent.frame").is_file()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert not (folder / "follower").is_symlink()
    assert not (folder / "agent.frame").exists()


def test_a_calibration_that_is_there_is_kept(start, tmp_path):
    file = tmp_path / "home" / "calibration" / "robots" / "so_follower" / "mine.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    _, said = start("--plain", "--id", "mine", "--folder", str(tmp_path / "arms"))
    assert f"another calibration is in {file}; LeRobot will ask about it" in said
    assert file.read_text() == "{}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["buss"], "Did you mean 'bus'"),
        (["bus", "--fault", "lost-statu"], "Did you mean 'lost-status'"),
        (["bus", "--id", "a/b"], "id"),
        (["bus", "--image-size", "-1"], "--image-size must be from 0 to 1024"),
    ],
)
def test_mistakes_are_one_message(capsys, words, said, tmp_path):
    assert said in failed(capsys, *words)


def test_an_unknown_task_is_one_message(capsys, tmp_path):
    said = failed(capsys, "bus", "--task", "mouse-click", "--folder", str(tmp_path))
    assert "Did you mean 'mouse-click-v0'" in said


def test_what_can_be_typed(tmp_path):
    ping = Packet(6, Instruction.PING)
    with emulated_arms(Path(tmp_path)) as arms:
        _do(arms, "fault", ["missing-motor:gripper"])
        assert arms.follower.answer(ping) == b""
        _do(arms, "heal", [])
        assert arms.follower.answer(ping)
        assert arms.follower.servos.positions() == [CENTRE] * 6
        _do(arms, "sweep", [])
        assert arms.follower.servos.positions() != [CENTRE] * 6
        for word, rest, said in (
            ("fault", [], "Type fault KIND:MOTOR:COUNT"),
            ("heel", [], "Did you mean 'heal'"),
            ("fault", ["missing-motor:grip"], "Unknown motor"),
        ):
            with pytest.raises(InputError, match=said):
                _do(arms, word, rest)
