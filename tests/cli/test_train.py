"""``prism train``: flags from the settings, repeats, resumes, refusals."""

import json

import pytest
import torch

from prism_motor.cli import main
from prism_motor.runs import Run
from tests.train.cases import assert_same_run

TINY = (
    "--envs", "4", "--ppo.steps", "4", "--ppo.epochs", "1", "--ppo.minibatches", "1",
    "--threads", "1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words):
    main(["train", *map(str, words)])


def error_of(capsys, *words, code=2):
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    assert stopped.value.code == code
    return capsys.readouterr().err


def config_of(path):
    return json.loads((path / "config.json").read_text())


def test_every_setting_is_a_flag(tmp_path, capsys):
    run(
        "locomotion", *TINY, "--arm", "prism", "--seed", 5, "--updates", 2, "--degree", 3,
        "--actor.latent", 8, "--critic-hidden", 16, 8, "--ppo.learning-rate", "2e-4",
        "--task.terminations.duration", 0.5, "--ppo.no-mirror", "--label", "cubic",
    )  # fmt: skip
    path = tmp_path / "runs" / "laptop-cubic-5"
    config = config_of(path)
    assert (config["arm"], config["seed"], config["updates"], config["envs"]) == ("cubic", 5, 2, 4)
    assert (config["actor"]["degree"], config["actor"]["latent"]) == (3, 8)
    assert config["critic_hidden"] == [16, 8]
    assert config["ppo"]["learning_rate"] == 2e-4
    assert config["ppo"]["mirror"] is False
    assert config["task"]["terminations"]["duration"] == 0.5
    assert config["ppo"]["gamma"] == 0.99  # the preset's
    said = capsys.readouterr().out
    assert "runs/laptop-cubic-5: cubic on laptop, 4 environments" in said
    assert "Done: 2 updates" in said
    assert "Next: prism eval runs/laptop-cubic-5" in said
    assert list((path / "tensorboard").iterdir())


def test_a_config_file_repeats_a_run_bit_for_bit(tmp_path):
    run("locomotion", *TINY, "--updates", 2, "--out", "first")
    run("--config", "first/config.json", "--out", "second")
    assert config_of(tmp_path / "first") == config_of(tmp_path / "second")
    assert_same_run(tmp_path / "first", tmp_path / "second")
    run("locomotion", "--config", "first/config.json", "--seed", 2, "--out", "third")
    assert config_of(tmp_path / "third") == {**config_of(tmp_path / "first"), "seed": 2}
    one, two = (Run.open(tmp_path / name).weights("actor.") for name in ("first", "third"))
    assert any(not torch.equal(one[name], two[name]) for name in one)


def test_config_files_that_do_not_fit_are_explained(tmp_path, capsys):
    assert "cannot be read" in error_of(capsys, "--config", "nowhere.json")
    (tmp_path / "config.json").write_text("{")
    assert "is not JSON" in error_of(capsys, "--config", "config.json")
    (tmp_path / "config.json").write_text("[]")
    assert "should hold a table of settings" in error_of(capsys, "--config", "config.json")
    run("locomotion", *TINY, "--updates", 1, "--out", "run")
    data = config_of(tmp_path / "run")
    (tmp_path / "config.json").write_text(json.dumps({**data, "epochs": 3}))
    assert "unknown key 'epochs'" in error_of(capsys, "--config", "config.json")
    (tmp_path / "config.json").write_text(json.dumps(data))
    message = error_of(capsys, "manipulation", "--config", "config.json")
    assert "is for locomotion, not for manipulation" in message
    for flag in ("--arm", "--preset"):
        message = error_of(capsys, "--config", "config.json", flag, "mlp")
        assert f"{flag} cannot be changed with --config" in message


def test_resuming_goes_on_and_takes_no_other_settings(tmp_path, capsys):
    run("locomotion", *TINY, "--updates", 2, "--out", "run")
    capsys.readouterr()
    run("--resume", "run")
    assert "already has 2 updates; use a larger --updates" in capsys.readouterr().out
    run("locomotion", "--resume", "run", "--updates", 3)
    assert "Done: 3 updates" in capsys.readouterr().out
    assert "--envs" in error_of(capsys, "--resume", "run", "--envs", 8)
    assert "must not be lower" in error_of(capsys, "--resume", "run", "--updates", 1)
    message = error_of(capsys, "manipulation", "--resume", "run")
    assert "is a run of locomotion, not of manipulation" in message
    assert "No run found at nowhere" in error_of(capsys, "--resume", "nowhere")
    run("locomotion", *TINY, "--updates", 3, "--out", "whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_former_names_of_flags_and_arms_are_noted_and_work(tmp_path, capsys):
    for number, words in enumerate((["--actor", "gated"], ["--arm=gated"])):
        run("locomotion", *TINY, *words, "--iterations", 1, "--out", f"run{number}")
        config = config_of(tmp_path / f"run{number}")
        assert (config["arm"], config["updates"]) == ("prism", 1)
        assert config["actor"]["name"] == "prism"
        said = capsys.readouterr().err
        assert "--iterations is now called --updates." in said
        assert ("--actor is now called --arm." in said) == (number == 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["locomotoin"], "Did you mean 'locomotion'"),
        (["locomotion", "--arm", "prsm"], "Did you mean 'prism'"),
        (["locomotion", "--preset", "labtop"], "Did you mean 'laptop'"),
        (["locomotion", "--ppo.learning-rat", "1"], "--ppo.learning-rate"),
        (["locomotion", "--envs", "many"], "--envs"),
        (["locomotion", "--envs", "0"], "envs must be from 1"),
        (["locomotion", "--seed", "-1"], "seed must be from 0"),
        (["locomotion", "--processes", "0"], "--processes must be from 1"),
        (["locomotion", "--ppo.schedule", "liner"], "Did you mean 'linear'"),
        (["locomotion", "--arm", "mlp", "--actor.gate-init", "1"], "--actor.gate-init"),
        (["locomotion", "--preset"], "--preset needs a value"),
        (["locomotion", "--set", "ppo.learning_rate=1"], "Write --ppo.learning-rate 1 instead"),
    ],
)
def test_mistakes_are_one_message_and_leave_nothing_behind(words, message, capsys, tmp_path):
    assert message in error_of(capsys, *words)
    assert not any(tmp_path.iterdir())


def test_without_a_domain_there_is_a_usage(capsys):
    for words, code in (([], 2), (["--help"], 0), (["--envs", "4"], 2)):
        with pytest.raises(SystemExit) as stopped:
            run(*words)
        assert stopped.value.code == code
        assert "Domains: locomotion, manipulation" in capsys.readouterr().out


def test_help_of_a_domain_shows_the_values_of_the_preset(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("locomotion", "--preset", "paper", "--help")
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "default: 4096)" in shown
    assert "Arms: mlp, mlp-large" in shown.replace("\n", " ")
    assert "--plugins" not in shown


def test_a_replay_that_does_not_diverge_says_so(tmp_path, capsys):
    run("locomotion", *TINY, "--updates", 1, "--out", "run")
    main(["replay", "run/checkpoints/00000001"])
    assert "did not diverge here" in capsys.readouterr().out


def test_more_processes_than_cores_can_serve_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("prism_motor.cli.train.available_cores", lambda: 2)
    said = error_of(capsys, "locomotion", "--processes", 64, "--envs", 64, "--out", "many")
    assert "--processes 64 is too much for 2 cores" in said
    assert "at most 8, best 2" in said
    assert not (tmp_path / "many").exists()
