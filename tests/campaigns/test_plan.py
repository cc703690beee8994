"""The plan: order, folders, commands, and what is left of it in a folder."""

import json
import shutil

import pytest

from prism_motor.campaigns.book import Book
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.reuse import copy_run, find_equal
from prism_motor.campaigns.state import RunState, clear_unstarted, read_state
from prism_motor.campaigns.status import describe_status
from prism_motor.locomotion.presets import make_config
from prism_motor.runs import Run
from prism_motor.runs.configs import parse_assignments
from prism_motor.train.walking_evaluations import Evaluations

from .conftest import TUNING, campaign, plan, train


def test_a_cut_campaign_is_balanced(tmp_path):
    runs = plan(tmp_path, variants=[{"name": "a"}, {"name": "b"}])
    assert [run.path.relative_to(tmp_path).as_posix() for run in runs] == [
        "a/mlp-1", "a/gated-1", "b/mlp-1", "b/gated-1",
        "a/mlp-2", "a/gated-2", "b/mlp-2", "b/gated-2",
    ]  # fmt: skip
    assert [run.title for run in runs[:2]] == ["a/mlp-1", "a/gated-1"]
    assert plan(tmp_path)[0].path == tmp_path / "mlp-1"


def test_the_more_special_settings_win(tmp_path):
    changed = plan(
        tmp_path,
        overrides={"envs": 4, "ppo.epochs": 2, "ppo.gamma": 0.9},
        variants=[
            {"name": "a", "overrides": {"ppo.epochs": 3, "ppo.gamma": 0.8}},
            {"name": "b", "like": "a", "overrides": {"ppo.epochs": 4}},
        ],
        arms=[{"name": "x", "actor": "mlp", "overrides": {"ppo.gamma": 0.7}}],
    )
    settings = [(run.config.envs, run.config.ppo.epochs, run.config.ppo.gamma) for run in changed]
    assert settings == [(4, 3, 0.7), (4, 4, 0.7)] * 2
    assert {run.config.arm for run in changed} == {"x"}


def test_the_command_makes_exactly_the_planned_config(tmp_path):
    run = plan(tmp_path)[1]
    words = run.train_command(resume=False)
    settings = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    options = dict(zip(words[5::2], words[6::2], strict=True))
    config = make_config(
        options["--preset"], options["--actor"], seed=int(options["--seed"]), name=options["--arm"],
        overrides=parse_assignments(settings),
    )  # fmt: skip
    assert config == run.config
    assert config.threads == 1
    assert run.train_command(resume=True)[-2:] == ["--resume", str(run.path)]


def test_states_are_read_from_the_folder_alone(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "small")
    first, second, third, _ = plan(folder)
    assert read_state(first) == RunState(4, 4, 0, 1)
    assert read_state(first).step == "evaluate"
    assert read_state(second) == RunState(2, 4, 0, 1)
    assert read_state(second).step == "train"
    assert read_state(third) == RunState(0, 4, 0, 1)
    evaluations = Evaluations(first.path, first.evaluation.protocol())
    evaluations.measure("nominal", 101)
    assert read_state(first).done
    file = first.path / "evaluations" / "nominal-101.json"
    text = file.read_text()
    for damaged in (text[:100], text.replace('"envs": 2', '"envs": 3')):
        file.write_text(damaged)
        assert read_state(first).step == "evaluate"


def test_another_config_is_refused_by_key_and_left_alone(trained):
    before = (trained / "mlp-1" / "config.json").read_text()
    changed = campaign(iterations=5)
    with pytest.raises(CampaignError, match=r"mlp-1 .*iterations is 4 there and 5 in the campaign"):
        Book(changed, trained)
    changed = campaign(overrides={**campaign().overrides, "ppo.learning_rate": 0.1})
    with pytest.raises(CampaignError, match=r"ppo.learning_rate is 0.001 there and 0.1"):
        Book(changed, trained)
    assert (trained / "mlp-1" / "config.json").read_text() == before


def test_more_seeds_arms_and_evaluations_are_welcome(trained):
    arms = [*({"name": a, "actor": a} for a in ("residual",))]
    more = campaign(
        seeds=[1, 2, 3],
        arms=[{"name": "mlp", "actor": "mlp"}, *arms],
        evaluation={"conditions": ["nominal", "payload"], "seeds": [101, 102]},
    )
    book = Book(more, trained)
    assert book.state(next(iter(book))) == RunState(4, 4, 0, 4)
    assert book.finished == 0


def test_a_run_cut_before_its_first_checkpoint_is_begun_again(tmp_path):
    run = plan(tmp_path)[0]
    Run.create(run.path, json.loads("{}"))
    (run.path / "checkpoints" / ".00000000.123.tmp").mkdir()
    clear_unstarted(run.path)
    assert not run.path.exists()
    run.path.mkdir()
    (run.path / "thesis.tex").write_text("")
    with pytest.raises(CampaignError, match=r"in the way.*thesis.tex"):
        clear_unstarted(run.path)
    train(plan(tmp_path)[1], 1)
    clear_unstarted(plan(tmp_path)[1].path)
    assert plan(tmp_path)[1].path.exists()


def test_equal_runs_of_other_campaigns_are_found_and_copied(trained, tmp_path):
    first, second, third, _ = plan(tmp_path / "other")
    assert find_equal(first, [trained]) == trained / "mlp-1"
    assert find_equal(second, [trained]) is None  # half trained
    assert find_equal(third, [trained]) is None  # another seed
    assert find_equal(plan(tmp_path, iterations=2)[1], [trained]) is None
    copy_run(trained / "mlp-1", first.path)
    assert read_state(first) == RunState(4, 4, 0, 1)
    assert (first.path / "provenance.json").read_text() == (
        trained / "mlp-1" / "provenance.json"
    ).read_text()


def test_status_shows_every_run_and_an_estimate(trained):
    text = describe_status(campaign(), trained, jobs=2)
    rows = [line.split("  ") for line in text.splitlines()]
    cells = [[word.strip() for word in row if word.strip()] for row in rows]
    assert ["mlp", "trained, 0 of 1 evaluations", "missing"] in cells
    assert ["gated", "stopped at 50 %", "missing"] in cells
    assert "0 of 4 runs done; about" in text
    assert "No runner is at work." in text


def test_status_of_a_campaign_that_has_not_begun(tmp_path):
    text = describe_status(campaign(tuning=TUNING), tmp_path / "none", jobs=2)
    assert "0 of 2" in text
    assert "no training has begun" in text
    assert not (tmp_path / "none").exists()
