"""One piece of work: what starts it, and what is refused in its place."""

import json
from dataclasses import replace

import pytest

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.plan import Plan
from prism_motor.domains import domain_of
from prism_motor.manipulation.config import HandlingTask
from prism_motor.runs import Run, to_dict

from .conftest import DOMAINS, HANDLING, campaign, fake_demonstrations, plan


@pytest.mark.parametrize("kind", DOMAINS)
def test_the_child_starts_from_a_file_that_is_exactly_the_plan(kind, tmp_path):
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    run = plan(tmp_path, kind)[1]
    words = run.start_command()[3:]
    assert words == ["train", "--config", str(run.plan_file), "--out", str(run.path)]
    data = json.loads(run.plan_file.read_text())
    assert domain_of(data).read_config(data) == run.config
    assert run.plan_file.relative_to(tmp_path).parts[0].startswith(".")
    Run.create(run.path, to_dict(run.config)).save(0, {}, {})
    assert run.start_command()[3:] == ["train", "--resume", str(run.path)]


def test_evaluations_are_asked_for_by_flags(tmp_path):
    wanted = {"conditions": ["nominal", "payload"], "seeds": [7, 8], "envs": 3}
    run = plan(tmp_path, evaluation=wanted)[0]
    assert run.evaluations == 4
    assert run.evaluate_command()[3:] == [
        "eval", str(run.path), "--conditions", "nominal", "payload", "--seeds", "7", "8",
        "--envs", "3", "--checkpoint", "4",
    ]  # fmt: skip


def test_an_evaluation_is_asked_for_by_what_differs_from_its_presets(tmp_path):
    """A run of the preset paper has 10 episodes by default, so 20 must be said."""
    for episodes, words in ((10, []), (20, ["--episodes", "20"])):
        changes = {"preset": "paper", "evaluation": {"episodes": episodes}}
        run = plan(tmp_path, "manipulation", **changes)[0]
        assert run.evaluate_command()[3:] == ["eval", str(run.path), *words, "--checkpoint", "4"]


def write_run(planned, **changes):
    """Write a run folder that begins like the planned one, with what only the task knows."""
    task = HandlingTask("metaworld", "reach-v3", 11, 10, 4, ())
    return Run.create(planned.path, to_dict(replace(planned.config, task=task, **changes)))


@pytest.fixture
def metaworld():
    pytest.importorskip("metaworld", reason="Meta-World is not installed")


@pytest.mark.usefixtures("metaworld")
def test_runs_of_other_settings_are_refused(tmp_path):
    first, second = plan(tmp_path, "manipulation")
    write_run(first)
    first.check()
    write_run(second, updates=5, batch=8)
    with pytest.raises(CampaignError, match=r"updates is 5 there and 4.*batch is 8 there and 4"):
        second.check()
    second.path.joinpath("config.json").write_text("[]")
    with pytest.raises(CampaignError, match="cannot be read by this version"):
        second.check()


@pytest.mark.usefixtures("metaworld")
def test_the_folder_may_move_but_named_demonstrations_may_not_change(tmp_path):
    first = plan(tmp_path, "manipulation")[0]
    write_run(first, demos="elsewhere/demos/reach")
    first.check()
    other = plan(tmp_path / "b", "manipulation", overrides={"demos": "ours/reach"})[0]
    write_run(other, demos="theirs/reach")
    with pytest.raises(CampaignError, match="demos is 'theirs/reach' there"):
        other.check()


def test_a_run_of_an_earlier_version_is_recognised(tmp_path):
    run = plan(tmp_path, arms=[{"name": "gated", "actor": "gated"}])[0]
    old = to_dict(run.config)
    old["iterations"] = old.pop("updates")
    old["arm"] = "gated"
    for key in ("kind", "plugins"):
        del old[key]
    Run.create(run.path, old).log({"iteration": 3, "seconds": 1.5})
    run.check()
    assert run.live_updates() == (3, 1.5)


@pytest.mark.usefixtures("metaworld")
def test_demonstrations_are_asked_for_and_checked(tmp_path):
    made = campaign("manipulation", preparation={"episodes": 2, "noise": 0.1})
    (record,) = Plan(made, tmp_path).preparations
    assert (record.verb, record.unit, record.total) == ("record", "demonstration", 2)
    words = record.start_command()[3:]
    assert words[0] == "record"
    for flag, value in (("--episodes", "2"), ("--noise", "0.1"), ("--image-size", "0")):
        assert words[words.index(flag) + 1] == value
    fake_demonstrations(record)
    with pytest.raises(CampaignError, match=r"noise is 0.0 there and 0.1 in the campaign"):
        record.check()
    fake_demonstrations(record, noise=0.1)
    record.check()
    fake_demonstrations(record, noise=0.1, episodes=3)
    with pytest.raises(CampaignError, match="episodes is 3 there and 2 in the campaign"):
        record.check()
    assert HANDLING["preparation"] == {"episodes": 2}
