"""LeRobot's own commands with the twin, each in a process of its own."""

import importlib.metadata
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")
pytest.importorskip("scservo_sdk", reason="feetech-servo-sdk is not installed")

import numpy as np
import pandas as pd
from lerobot.datasets.lerobot_dataset import LeRobotDataset

from prism_motor.cli import main
from prism_motor.integrations.feetech.arms import emulated_arms
from prism_motor.integrations.feetech.calibration import calibration
from prism_motor.integrations.feetech.twin_servos import TwinServosConfig
from prism_motor.sim.so101.twin import HOME
from prism_motor.sim.so101.units import FEATURES

pytestmark = pytest.mark.slow

TWIN = ("--robot.type=so101_sim", "--robot.id=twin", "--robot.image_size=32")
NEXT = importlib.metadata.version("lerobot") >= "0.6"
QUIET = ("--play_sounds=false",)
FLAGS = ("type", "port", "id")


def recording(root, *more, seconds=3):
    codec = "rgb_encoder.vcodec" if NEXT else "vcodec"
    return (
        "--dataset.repo_id=local/click",
        f"--dataset.root={root}",
        "--dataset.single_task=Click the mouse",
        "--dataset.num_episodes=2",
        f"--dataset.episode_time_s={seconds}",
        "--dataset.reset_time_s=0.5",
        f"--dataset.{codec}=h264",
        "--dataset.push_to_hub=false",
        *QUIET,
        *more,
    )


@pytest.fixture(scope="module")
def demonstrations(lerobot, tmp_path_factory):
    """Two episodes of the scripted leader, recorded by lerobot-record."""
    root = tmp_path_factory.mktemp("data") / "click"
    lerobot("record", *TWIN, "--teleop.type=so101_sim_leader", *recording(root))
    return root


@pytest.fixture(scope="module")
def policy(lerobot, demonstrations, tmp_path_factory):
    """A policy that lerobot-train trained for two steps."""
    output = tmp_path_factory.mktemp("train") / "run"
    lerobot(
        "train",
        "--dataset.repo_id=local/click",
        f"--dataset.root={demonstrations}",
        f"--output_dir={output}",
        "--steps=2",
        "--batch_size=2",
        "--num_workers=0",
        "--wandb.enable=false",
        "--policy.type=prism_diffusion",
        "--policy.conditioner=prism",
        "--policy.image_encoder=small",
        "--policy.down_dims=[16,32]",
        "--policy.n_groups=4",
        "--policy.num_inference_steps=2",
        "--policy.device=cpu",
        "--policy.push_to_hub=false",
    )
    return output / "checkpoints" / "last" / "pretrained_model"


@pytest.fixture(scope="module")
def prism_policy(demonstrations, tmp_path_factory):
    """A policy that prism train trained for two updates."""
    run = tmp_path_factory.mktemp("prism") / "run"
    main(
        [
            "train", "manipulation", "--preset", "pilot", "--arm", "prism", "--demos",
            str(demonstrations), "--network.image-size", "32", "--network.widths", "8", "16",
            "--network.inference-steps", "2", "--updates", "2", "--batch", "4", "--threads", "1",
            "--out", str(run),
        ]
    )  # fmt: skip
    return run / "pretrained"


def test_recorded_episodes_have_both_cameras_and_begin_at_home(demonstrations):
    info = json.loads((demonstrations / "meta" / "info.json").read_text())
    assert (info["robot_type"], info["fps"], info["total_episodes"]) == ("so101_sim", 30, 2)
    assert info["features"]["action"]["names"] == list(FEATURES)
    assert info["features"]["observation.images.agent"]["dtype"] == "video"
    frame = LeRobotDataset("local/click", root=demonstrations)[0]
    assert frame["observation.images.wrist"].shape == (3, 32, 32)
    frames = pd.concat(pd.read_parquet(path) for path in demonstrations.glob("data/*/*.parquet"))
    for _, episode in frames.groupby("episode_index"):
        actions, states = np.stack(episode["action"]), np.stack(episode["observation.state"])
        np.testing.assert_allclose(actions[0], HOME, atol=1)
        np.testing.assert_allclose(states[0], HOME, atol=4)
        assert np.abs(actions - HOME).max() > 20  # the leader went to work


def test_what_was_trained_knows_both_cameras(policy):
    config = json.loads((policy / "config.json").read_text())
    assert {"observation.images.agent", "observation.images.wrist"} < set(config["input_features"])


def test_replay_moves_the_twin(lerobot, demonstrations):
    lerobot(
        "replay",
        *TWIN,
        "--dataset.repo_id=local/click",
        f"--dataset.root={demonstrations}",
        "--dataset.episode=0",
        *QUIET,
    )


def test_eval_counts_successes(lerobot, policy, tmp_path):
    lerobot(
        "eval",
        f"--policy.path={policy}",
        "--policy.device=cpu",
        "--env.type=so101_click",
        "--env.image_size=32",
        "--env.episode_length=8",
        "--eval.n_episodes=2",
        "--eval.batch_size=1",
        f"--output_dir={tmp_path / 'out'}",
    )
    info = json.loads((tmp_path / "out" / "eval_info.json").read_text())
    assert info["overall"]["n_episodes"] == 2
    assert info["overall"]["pc_success"] == 0.0


def drive(lerobot, robot, policy, root, fails=False):
    """Let a policy drive a robot for two episodes, as this version of LeRobot does it."""
    flags = [f"--policy.path={policy}", "--policy.device=cpu"]
    flags += recording(root, seconds=2)
    if NEXT:
        flags[2] = "--dataset.repo_id=local/rollout_click"
        return lerobot("rollout", "--strategy.type=episodic", *robot, *flags, fails=fails)
    flags[2] = "--dataset.repo_id=local/eval_click"
    # With a policy and no leader, the reset of lerobot-record never ends.
    flags[flags.index("--dataset.reset_time_s=0.5")] = "--dataset.reset_time_s=0"
    return lerobot("record", *robot, *flags, fails=fails)


def test_a_policy_drives_the_twin_from_home_in_every_episode(lerobot, policy, tmp_path):
    root = tmp_path / "rollout"
    drive(lerobot, TWIN, policy, root)
    frames = pd.concat(pd.read_parquet(path) for path in root.glob("data/*/*.parquet"))
    starts = [
        np.stack(episode["observation.state"])[0] for _, episode in frames.groupby("episode_index")
    ]
    assert len(starts) == 2
    np.testing.assert_allclose(starts, np.stack([HOME, HOME]), atol=8)


def test_a_policy_does_not_drive_a_twin_without_its_camera(lerobot, policy, tmp_path):
    said = drive(
        lerobot, [*TWIN, "--robot.camera_names=[agent]"], policy, tmp_path / "never", fails=True
    )
    assert "wrist" in said


def test_teleoperation_at_its_usual_rate(lerobot):
    said = lerobot("teleoperate", *TWIN, "--teleop.type=so101_sim_leader", "--teleop_time_s=2")
    assert "Teleop loop time" in said


@contextmanager
def calibrating(lerobot, kind, port):
    """Run lerobot-calibrate with somebody at its keyboard."""
    device = "robot" if kind == "follower" else "teleop"
    program = Path(sys.executable).with_name("lerobot-calibrate")
    process = subprocess.Popen(
        [program, f"--{device}.type=so101_{kind}", f"--{device}.port={port}", f"--{device}.id=x"],
        env=lerobot.environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", ["follower", "leader"])
def test_calibration_with_a_hand_on_the_arm(lerobot, tmp_path, kind):
    with emulated_arms(tmp_path, leader=True) as arms:
        bus = getattr(arms, kind)
        with calibrating(lerobot, kind, bus.port) as process:
            process.stdin.write("\n")  # the arm is in the middle of its range
            process.stdin.flush()
            while "Recording positions" not in process.stdout.readline():
                assert process.poll() is None
            arms.hand.move("sweep")
            end = time.monotonic() + 5
            while time.monotonic() < end:  # a full pipe would stop LeRobot
                process.stdout.readline()
            process.stdin.write("\n")
            process.stdin.flush()
            process.communicate(timeout=60)
            assert process.returncode == 0
        assert not any(bus.torque().values())
    folder = "robots/so_follower" if kind == "follower" else "teleoperators/so_leader"
    written = json.loads((lerobot.home / "calibration" / folder / "x.json").read_text())
    assert written["shoulder_pan"]["range_min"] == pytest.approx(796, abs=3)
    assert written["shoulder_pan"]["range_max"] == pytest.approx(3298, abs=3)
    assert written["elbow_flex"]["homing_offset"] == 0


@pytest.fixture
def hardware(lerobot, tmp_path):
    """Both arms behind emulated buses, the flags for them, and calibration files."""
    for arm in ("robots/so_follower", "teleoperators/so_leader"):
        folder = lerobot.home / "calibration" / arm
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "emulated.json").write_text(json.dumps(calibration()))
    place = tmp_path / "arms"
    shape = f"type: so101_sim, folder: {place}, width: 32, height: 32, fps: 30"
    cameras = ", ".join(f"{name}: {{{shape}, name: {name}}}" for name in ("agent", "wrist"))
    with emulated_arms(place, TwinServosConfig(image_size=32), leader=True) as arms:
        robot = ("so101_follower", arms.follower.port, "emulated")
        robot = [f"--robot.{flag}={value}" for flag, value in zip(FLAGS, robot, strict=True)]
        teleop = ("so101_leader", arms.leader.port, "emulated")
        teleop = [f"--teleop.{flag}={value}" for flag, value in zip(FLAGS, teleop, strict=True)]
        yield arms, [*robot, f"--robot.cameras={{{cameras}}}"], teleop


def test_the_real_follower_records_the_twin_behind_the_bus(lerobot, hardware, tmp_path):
    arms, robot, teleop = hardware
    root = tmp_path / "recorded"
    lerobot("record", *robot, *teleop, *recording(root))
    assert not any(arms.follower.torque().values())
    info = json.loads((root / "meta" / "info.json").read_text())
    assert info["robot_type"] == "so_follower"
    assert info["features"]["observation.images.wrist"]["shape"] == [32, 32, 3]
    assert info["total_episodes"] == 2


def test_a_policy_of_prism_drives_the_real_follower(lerobot, hardware, prism_policy, tmp_path):
    arms, robot, _ = hardware
    before = arms.twin.positions()
    root = tmp_path / "driven"
    drive(lerobot, robot, prism_policy, root)
    assert json.loads((root / "meta" / "info.json").read_text())["total_episodes"] == 2
    assert arms.twin.positions() != before
    assert not any(arms.follower.torque().values())
