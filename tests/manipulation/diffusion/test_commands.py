import json
from dataclasses import replace

import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.domains import open_run
from prism_motor.manipulation.config import NetworkConfig
from prism_motor.manipulation.data import environment_of
from prism_motor.manipulation.tasks import make_environment
from prism_motor.sim.sensing import scale
from tests.commands import error_of, run

TINY = ("--network.widths", 8, 16, "--batch", 8, "--log-every", 2, "--threads", 1)
TINY += ("--network.inference-steps", 2, "--conditioner.latent", 8)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demos") / "reach"
    run("record", "--task", "reach-v3", "--episodes", 2, "--image-size", 0, "--out", folder)
    return folder


@pytest.mark.slow
def test_from_demonstrations_to_a_report(demos, tmp_path, capsys):
    for arm in ("prism", "linear"):
        out = tmp_path / "runs" / arm
        words = ("--arm", arm, "--demos", demos, "--updates", 4, "--out", out)
        run("train", "manipulation", *words, *TINY)
        assert (out / "pretrained" / "model.safetensors").is_file()
        assert list((out / "tensorboard").iterdir())
        assert [json.loads(line)["update"] for line in (out / "metrics.jsonl").open()] == [2, 4]
        config = json.loads((out / "config.json").read_text())
        assert (config["arm"], config["batch"], config["task"]["state"]) == (arm, 8, 11)
        run("eval", out, "--episodes", 1)
    capsys.readouterr()
    run("eval", out, "--episodes", 1)
    text = capsys.readouterr().out
    assert "1 episode already done" in text
    assert "success, %" in text
    run("export", out, "--out", tmp_path / "exported")
    assert (tmp_path / "exported" / "config.json").is_file()
    run("report", tmp_path / "runs")
    assert "metaworld reach-v3" in capsys.readouterr().out
    again = error_of(capsys, "train", "manipulation", "--demos", demos, "--out", out, *TINY)
    assert f"--resume {out}" in again
    message = error_of(capsys, "train", "--resume", out, "--updates", 9)
    assert "cannot be trained for longer than planned" in message
    run("train", "--resume", out)
    assert "already has 4 updates" in capsys.readouterr().out
    assert "envs" in error_of(capsys, "eval", out, "--envs", 3)
    run("train", "--config", out / "config.json", "--out", tmp_path / "again")
    one, two = ((path / "metrics.jsonl").read_text() for path in (out, tmp_path / "again"))
    assert [json.loads(line)["loss"] for line in one.splitlines()] == [
        json.loads(line)["loss"] for line in two.splitlines()
    ]


def test_mistakes_are_reported_before_training(demos, tmp_path, capsys):
    def message(*words):
        out = ("--out", tmp_path / "run")
        return error_of(capsys, "train", "manipulation", *out, *words)

    assert "No dataset found at" in message("--demos", tmp_path / "nowhere")
    assert "shows metaworld reach-v3" in message("--task", "push-v3", "--demos", demos)
    assert "Did you mean 'reach-v3'" in message("--task", "reach-v2", "--demos", demos)
    assert "Did you mean 'metaworld'" in message("--suite", "metaword", "--demos", demos)
    assert "no column observation.images" in message("--preset", "laptop", "--demos", demos)
    assert "--network.widths" in message("--demos", demos, "--network.width", 8)
    assert "names the run" in message("--demos", demos, "--conditioner.kind", "mlp")
    assert "Did you mean 'mlp-large'" in message("--demos", demos, "--arm", "mlp-larg")
    assert "multiple of the downsampling" in message("--demos", demos, "--network.horizon", 18)
    assert "remove --processes" in message("--demos", demos, "--processes", 2)
    assert "no videos of training" in message("--demos", demos, "--video-every", 2)
    assert not (tmp_path / "run").exists()


def test_policies_are_evaluated_with_the_renderer_of_their_demonstrations(tmp_path, capsys):
    stock, out = tmp_path / "stock", tmp_path / "run"
    task = ("--task", "reach-v3")
    drawn = ("--episodes", 1, "--image-size", 24, "--renderer", "stock")
    run("record", *task, *drawn, "--out", stock)
    words = (*task, "--preset", "laptop", "--demos", stock, "--out", out, *TINY)
    assert "drawn by metaworld's own renderer (stock), but this run would be evaluated with" in (
        error_of(capsys, "train", "manipulation", *words)
    )
    assert not out.exists()
    small = ("--network.image-size", 16, "--network.renderer", "stock")
    run("train", "manipulation", *words, *small, "--updates", 1)
    network = json.loads((out / "config.json").read_text())["network"]
    assert (network["renderer"], network["drawn_size"]) == ("stock", 24)
    _, _, config = open_run(out)
    scene = environment_of(config)
    seen = scene.reset(initial_state=0).images["corner2"]
    scene.close()
    plain = make_environment(scene.task, image_size=24, renderer="stock")
    whole = plain.reset(initial_state=0).images["corner2"]
    plain.close()
    assert_array_equal(seen, scale(whole, 16))
    # Runs from before the setting were drawn fast.
    assert replace(config, network=NetworkConfig()).network.renderer == "fast"


def test_former_names_of_flags_and_arms_still_do(demos, tmp_path, capsys):
    out = tmp_path / "run"
    words = ("--conditioner", "mlp-larger", "--steps", 2, "--demos", demos, "--out", out)
    run("train", "manipulation", *words, *TINY)
    said = capsys.readouterr().err
    assert "--conditioner is now called --arm." in said
    assert "--steps is now called --updates." in said
    config = json.loads((out / "config.json").read_text())
    assert (config["arm"], config["updates"]) == ("mlp-large", 2)
