"""Commands and campaigns with the tiny model, from recorded demonstrations."""

import json

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.campaigns.files import find_campaign
from tests.commands import error_of, run


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demos")
    for task in ("reach-v3", "push-v3"):
        out = folder / f"metaworld-{task}"
        run("record", "--task", task, "--episodes", 1, "--image-size", 32, "--out", out)
    return folder


def test_mistakes_are_reported_before_training(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def message(*words):
        return error_of(capsys, "train", "manipulation", "--out", tmp_path / "run", *words)

    tiny = ("--backbone", "smolvla", "--preset", "tiny", "--suite", "metaworld")
    assert "Did you mean 'smolvla'" in message("--backbone", "smolvlaa")
    assert "Unknown preset of smolvla" in message("--backbone", "smolvla", "--preset", "state")
    assert "Unknown arm 'prisma'" in message(*tiny, "--arm", "prisma")
    assert "has a task of metaworld twice" in message(*tiny, "--task", "reach-v3+reach-v3")
    (tmp_path / "demos").mkdir()
    lacking = message(*tiny, "--task", "reach-v3+push-v3")
    assert "no demonstrations of 2 of 2 tasks: metaworld-reach-v3, metaworld-push-v3" in lacking
    several = message("--task", "reach-v3+push-v3")
    assert "diffusion learns one task" in several
    assert "has no task 'x'" in message(*tiny, "--suite", "libero", "--task", "x")
    assert "no folder nowhere" in message(*tiny, "--task", "reach-v3", "--network.vlm", "nowhere")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_from_demonstrations_to_a_campaigns_report(demos, tmp_path, capsys):
    out = tmp_path / "run"
    words = ("--backbone", "smolvla", "--preset", "tiny", "--suite", "metaworld")
    words += ("--task", "reach-v3+push-v3", "--demos", demos, "--threads", 1)
    run("train", "manipulation", *words, "--updates", 3, "--out", out)
    config = json.loads((out / "config.json").read_text())
    assert config["network"]["backbone"] == "smolvla"
    assert config["network"]["lerobot"]
    assert config["preset"] == "smolvla-tiny"
    assert (out / "pretrained" / "vlm" / "config.json").is_file()
    run("train", "--config", out / "config.json", "--out", tmp_path / "again")
    one, two = ((path / "metrics.jsonl").read_text() for path in (out, tmp_path / "again"))
    assert json.loads(one)["loss"] == json.loads(two)["loss"]
    campaign = tmp_path / "smolvla.toml"
    campaign.write_text(
        f"""
        kind = "manipulation"
        name = "smolvla"
        preset = "smolvla-tiny"
        seeds = [1000]
        updates = 2
        [overrides]
        demos = "{demos}"
        task.suite = "metaworld"
        task.name = "reach-v3+push-v3"
        [evaluation]
        episodes = 1
        [[arms]]
        name = "linear"
        [[arms]]
        name = "prism"
        """
    )
    run("campaign", "run", campaign, "--out", tmp_path / "campaign", "--jobs", 1)
    run("campaign", "report", tmp_path / "campaign")
    said = capsys.readouterr().out
    assert "linear" in said
    stored = json.loads((tmp_path / "campaign/prism-1000/evaluations/none-101.json").read_text())
    assert {(row["suite"], row["task"]) for row in stored["episodes"]} == {
        ("metaworld", "reach-v3"),
        ("metaworld", "push-v3"),
    }


def test_the_campaign_of_the_paper():
    pytest.importorskip("libero", reason="hf-libero is not installed")
    campaign, _ = find_campaign("smolvla")
    assert (campaign.preset, campaign.seeds) == ("smolvla-paper", (1000,))
    assert [arm.name for arm in campaign.arms] == ["linear", "mlp-matched", "prism", "mlp-large"]
    assert campaign.evaluation.episodes == 50
