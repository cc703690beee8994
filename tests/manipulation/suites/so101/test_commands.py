"""The twin through prism's commands: recorded, trained on, evaluated."""

import json

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.manipulation.policy import load_policy
from prism_motor.sim.so101 import FEATURES
from tests.commands import error_of, run

TINY = ("--network.widths", 8, 16, "--batch", 4, "--log-every", 1, "--threads", 1)
TINY += ("--network.inference-steps", 2, "--conditioner.latent", 8, "--network.image-size", 16)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demos") / "click"
    run("record", "--suite", "so101", "--task", "mouse-click-v0", "--episodes", 2,
        "--image-size", 32, "--out", folder)  # fmt: skip
    return folder


def test_recorded_demonstrations_look_like_lerobots(demos):
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("local/click", root=demos)
    assert dataset.fps == 30
    assert dataset.meta.robot_type == "so101"
    for key in ("observation.state", "action"):
        assert tuple(dataset.features[key]["names"]) == FEATURES
    assert {*dataset.meta.camera_keys} == {"observation.images.agent", "observation.images.wrist"}
    assert list(dataset.meta.tasks.index) == ["Click the mouse"]
    actions = np.stack(dataset.hf_dataset.with_format("numpy")["action"])
    assert np.abs(actions[:, :5]).max() > 45  # degrees
    assert actions[:, 5].min() >= 0  # percent
    assert 100 < len(dataset) < 300


@pytest.mark.slow
def test_the_preset_of_the_pilot_is_trained_and_evaluated(demos, tmp_path, capsys):
    out = tmp_path / "run"
    words = ("--preset", "pilot", "--arm", "prism", "--demos", demos, "--out", out)
    run("train", "manipulation", *words, "--updates", 2, *TINY)
    config = json.loads((out / "config.json").read_text())
    assert (config["task"]["suite"], config["task"]["name"]) == ("so101", "mouse-click-v0")
    assert (config["task"]["state"], config["task"]["action"]) == (6, 6)
    assert config["task"]["cameras"] == ["agent", "wrist"]
    assert (config["random_shift"], config["network"]["drawn_size"]) == (4, 32)
    # Joints that hardly move are not blown up: two degrees are the smallest range.
    scaled = load_policy(out).normalise.steps[-1]._tensor_stats["action"]
    assert float((scaled["max"] - scaled["min"]).min()) == pytest.approx(2.0, abs=1e-4)
    run("eval", out, "--episodes", 1, "--conditions", "none", "combined", "--videos", 1)
    run("eval", out, "--episodes", 1, "--stiffness", 12)
    text = capsys.readouterr().out
    assert "so101 mouse-click-v0" in text
    names = {file.name for file in (out / "evaluations").glob("*.json")}
    assert names == {"none-101.json", "combined-101.json", "none+kp12-101.json"}
    assert len(list((out / "videos").glob("*.mp4"))) == 2
    assert "targets of joints" in error_of(capsys, "eval", out, "--corrector", "mcc-oracle")
    exported = json.loads((out / "pretrained" / "config.json").read_text())
    assert exported["crop_square"] is True


def test_object_poses_are_enough_for_the_preset_state(demos, tmp_path):
    out = tmp_path / "run"
    words = ("--suite", "so101", "--task", 0, "--demos", demos, "--out", out)
    run("train", "manipulation", *words, "--updates", 1, *TINY)
    assert json.loads((out / "config.json").read_text())["task"]["objects"] == 10


def test_mistakes_are_said_before_training(demos, tmp_path, capsys):
    def message(*words):
        return error_of(capsys, "train", "manipulation", "--out", tmp_path / "run", *words)

    pilot = ("--preset", "pilot", "--demos", demos)
    assert "shows so101 mouse-click-v0" in message(*pilot, "--task", "press-key-v0")
    assert "shows so101 mouse-click-v0" in message(*pilot, "--suite", "so101_stiff")
    assert "Did you mean 'mouse-click-v0'" in message(*pilot, "--task", "mouse-click")
    assert "random_shift must be" in message(*pilot, "--random-shift", 100)
    assert "fewer than the 5 requested" in message(*pilot, "--episodes", 5)
    record = ("record", "--suite", "so101", "--task", "mouse-click-v0", "--episodes", 1)
    out = ("--out", tmp_path / "demos")
    assert "no option renderer" in error_of(capsys, *record, "--renderer", "stock", *out)
    assert not (tmp_path / "run").exists()
