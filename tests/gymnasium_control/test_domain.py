"""The domain through the commands: train, resume, evaluate, report, estimate, campaigns."""

import json

import pytest

from prism_motor.campaigns.files import find_campaign
from prism_motor.campaigns.plan import Plan
from prism_motor.campaigns.tuning import plan_tuning
from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.runs import Run

DOMAIN = DOMAINS["gymnasium"]
TINY = ("--preset", "tiny", "--threads", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two arms on a hopper, trained by PPO."""
    where = tmp_path_factory.mktemp("gymnasium")
    for arm in ("mlp-matched", "prism"):
        main(["train", "gymnasium", *TINY, "--arm", arm, "--out", str(where / arm)])
    return where


def test_train_evaluate_report(folder, capsys):
    for arm in ("mlp-matched", "prism"):
        main(["eval", str(folder / arm), "--seeds", "101", "--episodes", "2"])
    said = capsys.readouterr().out
    assert "prism on Hopper-v5, PPO, preset tiny, training seed 1, checkpoint 6" in said
    assert "forward speed, m/s" in said
    stored = json.loads((folder / "prism" / "evaluations" / "nominal-101.json").read_text())
    assert [one["reset_seed"] for one in stored["episodes"]] == [101_000, 101_001]
    main(["report", str(folder)])
    text = (folder / "report.md").read_text()
    assert "Hopper-v5, PPO" in text
    assert "return" in text
    rows = Run.open(folder / "prism").metrics()
    assert [row["samples"] for row in rows] == [48 * n for n in range(1, 7)]
    assert {"train/value_loss", "train/approx_kl", "learning_rate"} <= rows[-1].keys()


def test_export_gives_the_same_actions(folder, tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra 'deploy')")
    lines = DOMAIN.export(folder / "prism", tmp_path, None)
    assert lines == [str(tmp_path / "policy.onnx")]


def test_the_environment_decides_the_defaults_of_other_flags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["train", "gymnasium", "--env", "HalfCheetah-v5", *TINY, "--updates", "1",
          "--learner.gamma", "0.999"])  # fmt: skip
    config = json.loads(next((tmp_path / "runs").glob("*/config.json")).read_text())
    assert (tmp_path / "runs" / "HalfCheetah-v5-ppo-tiny-prism-1").is_dir()
    # 0.999 is the default of another environment, and still counts here.
    assert config["learner"]["gamma"] == 0.999
    assert config["learner"]["clip"] == 0.1
    assert config["task"] == {"env": "HalfCheetah-v5", "observations": 17, "actions": 6}


def test_help_shows_the_settings_of_the_algorithm(capsys):
    with pytest.raises(SystemExit):
        main(["train", "gymnasium", "--algorithm", "sac", "--help"])
    said = capsys.readouterr().out
    assert "--learner.tau" in said
    assert "--learner.epochs" not in said


def test_what_others_depend_on_cannot_be_changed_with_a_file(folder, capsys):
    for flag, value in (("--env", "Ant-v5"), ("--algorithm", "sac")):
        with pytest.raises(SystemExit) as stopped:
            main(["train", "--config", str(folder / "prism" / "config.json"), flag, value])
        assert stopped.value.code == 2
        assert "other settings depend on it" in capsys.readouterr().err


def test_mistakes_are_one_message(tmp_path, capsys):
    for words, said in (
        (["--env", "Hoper-v5"], "Hopper-v5"),
        (["--env", "Pendulum-v1"], "not simulated by MuJoCo"),
        (["--algorithm", "td3"], "Unknown algorithm 'td3'"),
        (["--processes", "2"], "single process"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["train", "gymnasium", *TINY, *words, "--out", str(tmp_path / "run")])
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_estimates(algorithm, capsys):
    words = ["--algorithm", algorithm, "--seconds", "0.01"]
    main(["estimate", "gymnasium", *TINY, *words])
    said = capsys.readouterr().out
    assert f"prism on Hopper-v5, {algorithm.upper()}, preset tiny" in said
    assert DOMAIN.size(DOMAIN.make_config("zoo", "prism"))[1] == 4 * 1954 * 512


@pytest.mark.parametrize("name", ["gymnasium", "gymnasium-sac"])
def test_the_campaigns_tune_all_arms_alike(name, tmp_path):
    made = find_campaign(name)[0]
    plan = Plan(made, tmp_path)
    tuning = plan_tuning(plan)
    runs = plan.reported({arm.name: {"learner.rate_factor": 2.0} for arm in made.arms})
    assert len(runs) == 5 * 5 * 4
    assert len(tuning) == 6 * 4
    assert {run.config.algorithm for run in runs} == {"sac" if "sac" in name else "ppo"}
    assert {run.config.task.env for run in tuning} == {"Hopper-v5"}
    assert len({run.config.task.env for run in runs}) == 5
    # A winner is a factor, so every environment keeps the zoo's own rate times that.
    rates = {run.config.task.env: run.config.learner.rate for run in runs}
    assert (
        rates["Hopper-v5"]
        == 2
        * DOMAIN.make_config(
            "zoo", "mlp", overrides={"algorithm": runs[0].config.algorithm}
        ).learner.rate
    )
