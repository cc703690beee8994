import json

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.cli import main

TINY = ("--set", "network.widths=[8,16]", "--set", "batch=8", "--set", "log_every=2")
TINY += ("--set", "network.inference_steps=2", "--set", "conditioner.mlp_size=larger")


def run(*words):
    main([str(word) for word in words])


def error_of(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demos") / "reach"
    run("demos", "--task", "reach-v3", "--episodes", 2, "--image-size", 0, "--out", folder)
    return folder


@pytest.mark.slow
def test_from_demonstrations_to_a_report(demos, tmp_path, capsys):
    for arm in ("prism", "linear"):
        out = tmp_path / "runs" / arm
        words = ("--conditioner", arm, "--demos", demos, "--steps", 4, "--out", out)
        run("train", "manipulation", *words, *TINY)
        assert (out / "pretrained" / "model.safetensors").is_file()
        assert list((out / "tensorboard").iterdir())
        assert [json.loads(line)["iteration"] for line in (out / "metrics.jsonl").open()] == [2, 4]
        run("eval", out, "--episodes", 1)
    capsys.readouterr()
    run("eval", out, "--episodes", 1)
    text = capsys.readouterr().out
    assert "1 episodes are done already" in text
    assert "success, %" in text
    run("export", out, "--out", tmp_path / "exported")
    assert (tmp_path / "exported" / "config.json").is_file()
    run("report", tmp_path / "runs")
    assert "metaworld reach-v3, preset state" in capsys.readouterr().out
    assert "already holds a run" in error_of(
        capsys, "train", "manipulation", "--demos", demos, "--out", out, *TINY
    )
    message = error_of(capsys, "train", "manipulation", "--resume", out, "--steps", 9)
    assert "--steps cannot be changed on --resume" in message
    run("train", "manipulation", "--resume", out)
    assert "Done: 4 updates" in capsys.readouterr().out
    assert "--envs is for walking" in error_of(capsys, "eval", out, "--envs", 3)


def test_mistakes_are_reported_before_training(demos, tmp_path, capsys):
    def message(*words):
        out = ("--out", tmp_path / "run")
        return error_of(capsys, "train", "manipulation", *out, *words)

    assert "no dataset at" in message("--demos", tmp_path / "nowhere")
    assert "shows metaworld reach-v3" in message("--task", "push-v3", "--demos", demos)
    assert "Did you mean 'reach-v3'" in message("--task", "reach-v2", "--demos", demos)
    assert "no column observation.images" in message("--preset", "laptop", "--demos", demos)
    unknown = message("--demos", demos, "--set", "network.width=[8]")
    assert "Did you mean 'network.widths'" in unknown
    assert "names the run" in message("--demos", demos, "--set", "conditioner.kind=mlp")
    assert "not both" in message("--demos", demos, "--steps", 3, "--set", "steps=4")
    assert "multiple of the downsampling" in message(
        "--demos", demos, "--set", "network.horizon=18"
    )
    assert not (tmp_path / "run").exists()
