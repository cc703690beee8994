"""Errors and options of ``prism campaign``, as people see them."""

import pytest

from prism_motor.campaigns.files import read_overrides
from prism_motor.campaigns.plan import Plan
from prism_motor.campaigns.runner import Runner
from prism_motor.cli import main
from prism_motor.cli.campaign import CampaignOptions, find_campaign_of, parse_duration
from prism_motor.runs.layout import LOCK


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["status", "tabel1"], "Did you mean 'table1'"),
        (["stauts", "table1"], "Did you mean 'status'"),
        (["run", "smoke", "--until", "soon"], "45m"),
        (["run", "smoke", "--jobs", "0"], "--jobs must be from 1"),
        (["run", "smoke", "--preset", "labtop"], "Did you mean 'laptop'"),
        (["run", "smoke", "--reuse", "nowhere"], "No such folder to reuse runs from: nowhere"),
        (["report", "smoke", "--reference", "mpl"], "Did you mean 'mlp'"),
        (["status", "smoke", "--override", "updates"], "--override takes KEY=VALUE"),
        (["status", "smoke", "--override", "update=3"], "Unknown setting 'update'"),
        (["status", "smoke", "--override", "envs=many"], "envs: expected int, got 'many'"),
        (["run", "smoke", "--plugin", "no_such_module"], "no_such_module"),
    ],
)
def test_errors_say_what_to_do(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["campaign", *words])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_settings_of_all_runs_can_be_given(tmp_path):
    given = ("ppo.epochs=3", 'task.robot="g1"', "demos=HuggingFaceVLA/libero", "x=[1, 2]", "y=")
    assert read_overrides(given) == {
        "ppo.epochs": 3,
        "task.robot": "g1",
        "demos": "HuggingFaceVLA/libero",
        "x": [1, 2],
        "y": "",
    }
    options = CampaignOptions("smoke", override=("ppo.epochs=3", "envs=8"), out=tmp_path)
    found, _ = find_campaign_of(options, ())
    runs = Plan(found, tmp_path).reported({arm.name: {} for arm in found.arms})
    assert {(run.config.envs, run.config.ppo.epochs) for run in runs} == {(8, 3)}
    assert {run.config.ppo.steps for run in runs} == {8}  # the file's own stay


def test_a_suite_without_assets_is_said_once_before_any_job(tmp_path, monkeypatch, capsys):
    pytest.importorskip("libero", reason="LIBERO is not installed")
    for variable in ("PRISM_LIBERO_CACHE", "LIBERO_CONFIG_PATH"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    with pytest.raises(SystemExit) as stopped:
        main(["campaign", "run", "perturbed", "--out", str(tmp_path / "campaign")])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("prism libero prepare") == 1
    assert "spatial-1/" in said
    assert not [*(tmp_path / "campaign").glob("demos*"), *(tmp_path / "campaign").glob("logs/*")]


def test_a_missing_device_is_said_before_any_job(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    folder = tmp_path / "campaign"
    with pytest.raises(SystemExit) as stopped:
        main(["campaign", "run", "smoke", "--override", "device=cuda", "--out", str(folder)])
    assert stopped.value.code == 2
    assert "device: cuda cannot be used on this machine, which has cpu" in capsys.readouterr().err
    assert {file.name for file in folder.iterdir()} <= {LOCK}
    main(["campaign", "status", "smoke", "--override", "device=cuda"])  # a plan needs no device


def test_the_help_names_the_commands_and_the_campaigns(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["campaign", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "prism campaign status FILE" in shown
    assert "table1" in shown


def test_status_of_a_campaign_that_has_not_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["campaign", "status", "smoke", "--plugin", "colorsys"])
    assert "in campaigns/smoke-laptop" in capsys.readouterr().out
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("table1", ["mlp ", "mlp-large", "mlp-matched-residual", "prism-residual"]),
        ("table18", ["residual-degree1", "residual-degree2", "residual-degree3"]),
        ("actors", ["prism-after", "prism-residual-gated", "mlp-matched-after"]),
        ("degrees", ["degree1", "degree3"]),
        ("capacity", ["mlp-matched-degree3"]),
    ],
)
def test_the_papers_walking_can_be_planned_at_its_own_size(
    name, rows, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    main(["campaign", "status", name, "--preset", "paper", "--untuned"])
    shown = capsys.readouterr().out
    assert f"in campaigns/{name}-paper-untuned" in shown
    assert "tuning" not in shown
    assert all(row in shown for row in rows)
    main(["campaign", "status", name, "--preset", "paper"])
    assert "tuning" in capsys.readouterr().out
    assert not any(tmp_path.iterdir())


def test_the_command_that_goes_on_is_at_the_same_place(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr(Runner, "run", interrupt)
    place = ["--on", "ray", "--jobs", "4", "--gpus", "0.5"]
    with pytest.raises(SystemExit):
        main(["campaign", "run", "smoke", "--out", str(tmp_path), *place])
    wanted = f"Continue with: prism campaign run {tmp_path} {' '.join(place)}\n"
    assert wanted in capsys.readouterr().err


def interrupt(_):
    raise KeyboardInterrupt


def test_durations():
    assert [parse_duration(text) for text in ("45m", "1h30m", "90s", "2h")] == [
        2700, 5400, 90, 7200,
    ]  # fmt: skip
    for text in ("", "45", "m", "1.5h", "soon"):
        with pytest.raises(ValueError, match="45m"):
            parse_duration(text)
