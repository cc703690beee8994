"""Campaigns of policies that learn from demonstrations."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.campaigns.book import Book
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.files import RECORD, find_campaign, library
from prism_motor.campaigns.manipulation import ManipulationCampaign
from prism_motor.campaigns.manipulation_plan import plan_demonstrations, plan_imitation
from prism_motor.campaigns.runner import Runner
from prism_motor.campaigns.state import read_state
from prism_motor.campaigns.status import describe_status
from prism_motor.manipulation.config import TaskConfig
from prism_motor.report.build import write_report
from prism_motor.runs import Run, from_dict, to_dict

SMALL = {
    "kind": "manipulation",
    "name": "small",
    "seeds": [1],
    "overrides": {"steps": 4, "batch": 4, "network": {"widths": [16, 32]}},
    "demonstrations": {"episodes": 2},
    "evaluation": {"episodes": 1},
    "tasks": [{"name": "reach", "suite": "metaworld", "task": "reach-v3"}],
    "arms": [
        {"name": "linear", "conditioner": "linear"},
        {"name": "prism", "conditioner": "prism", "overrides": {"conditioner": {"latent": 8}}},
    ],
}


def campaign(**changes):
    return from_dict(ManipulationCampaign, {**SMALL, **changes})


def write_run(planned, **changes):
    """Write a run folder that begins like the planned one."""
    task = TaskConfig("metaworld", "reach-v3", 11, 10, 4, ())
    return Run.create(planned.path, to_dict(replace(planned.config, task=task, **changes)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A campaign that has run to its end."""
    folder = tmp_path_factory.mktemp("campaigns") / "small"
    outcome = Runner(campaign(), folder, jobs=2, poll=0.1).run()
    assert outcome.failures == {}
    assert (outcome.done, outcome.total) == (3, 3)
    return folder


def test_it_records_trains_evaluates_and_reports(finished):
    assert json.loads((finished / "demos" / "reach" / "meta" / "prism.json").read_text())[
        "collection"
    ]["image_size"] == 0  # fmt: skip
    for arm in ("linear", "prism"):
        config = json.loads((finished / "reach" / f"{arm}-1" / "config.json").read_text())
        assert (config["arm"], config["steps"], config["threads"]) == (arm, 4, 1)
        assert config["network"]["widths"] == [16, 32]
    made = write_report(finished, reference="linear")
    assert made.problems == ()
    chapter = made.manipulation[0]
    assert chapter.title == "metaworld reach-v3, preset state"
    assert [row[0].text for row in chapter.tables[0].rows] == ["linear", "prism"]
    assert chapter.findings[0][0] == "prism against linear:"


def test_a_second_call_does_nothing(finished):
    again, folder = find_campaign(str(finished))
    assert (again, folder) == (campaign(), finished)
    runner = Runner(again, finished, jobs=1)
    before = {file: file.stat().st_mtime_ns for file in finished.rglob("*.json")}
    assert runner.run().done == 3
    after = {file: file.stat().st_mtime_ns for file in finished.rglob("*.json")}
    assert {file for file in after if after[file] != before[file]} <= {finished / RECORD}
    assert "nothing is left to do" in describe_status(again, finished, 1)


def test_more_episodes_and_seeds_are_added_to_what_is_there(finished):
    book = Book(campaign(evaluation={"episodes": 2}, seeds=[1, 2]), finished)
    assert [book.state(run).step for run in book.reported] == ["evaluate"] * 2 + ["train"] * 2


def test_policies_wait_for_their_demonstrations(tmp_path):
    book = Book(campaign(), tmp_path)
    (record,) = book.first
    assert (record.verb, book.state(record).step) == ("record", "train")
    assert all(run.waiting for run in book.reported)
    partial = tmp_path / "demos" / "reach.partial"
    partial.mkdir(parents=True)
    for number in range(2):
        (partial / f"{number:06d}.npz").touch()
    assert book.refresh(record).updates == 1  # recorded, but not written as a dataset yet
    assert "stopped at 50 %" in describe_status(campaign(), tmp_path, 1)
    dataset = tmp_path / "demos" / "reach" / "meta"
    dataset.mkdir(parents=True)
    origin = {"suite": "metaworld", "task": "reach-v3", "episodes": 2, "image_size": 0, "seed": 1}
    (dataset / "prism.json").write_text(json.dumps({"collection": origin}))
    assert book.refresh(record).trained
    assert not any(run.waiting for run in book.reported)
    (dataset / "prism.json").write_text(json.dumps({"collection": origin | {"episodes": 3}}))
    with pytest.raises(CampaignError, match="episodes is 3 there and 2 in the campaign"):
        read_state(record)


def test_noise_of_the_demonstrations_is_asked_for_and_checked(tmp_path):
    wanted = campaign(demonstrations={"episodes": 2, "noise": 0.1})
    (record,) = plan_demonstrations(wanted, tmp_path)
    command = record.train_command(resume=False)
    assert command[command.index("--noise") + 1] == "0.1"
    meta = record.path / "meta"
    meta.mkdir(parents=True)
    without = {"suite": "metaworld", "task": "reach-v3", "episodes": 2, "image_size": 0, "seed": 1}
    (meta / "prism.json").write_text(json.dumps({"collection": without}))
    with pytest.raises(CampaignError, match=r"noise is 0.0 there and 0.1 in the campaign"):
        read_state(record)
    (meta / "prism.json").write_text(json.dumps({"collection": without | {"noise": 0.1}}))
    assert read_state(record).trained


def test_demonstrations_that_are_there_are_used(tmp_path):
    tasks = [{**SMALL["tasks"][0], "demos": "somebody/reach"}]
    book = Book(campaign(tasks=tasks), tmp_path)
    assert list(book.first) == []
    first = book.reported[0]
    assert not first.waiting
    command = first.train_command(resume=False)
    assert command[command.index("--demos") + 1] == "somebody/reach"


def test_runs_of_other_settings_are_refused(tmp_path):
    first, second = plan_imitation(campaign(), tmp_path)
    write_run(first)
    assert read_state(first).updates == 0
    write_run(second, steps=5, batch=8)
    with pytest.raises(CampaignError, match=r"batch is 8 there and 4.*steps is 5 there and 4"):
        read_state(second)


def test_the_folder_may_move_but_given_demonstrations_may_not_change(tmp_path):
    first = plan_imitation(campaign(), tmp_path)[0]
    write_run(first, demos="elsewhere/demos/reach")
    assert read_state(first).updates == 0
    given = [{**SMALL["tasks"][0], "demos": "ours/reach"}]
    other = plan_imitation(campaign(tasks=given), tmp_path / "b")[0]
    write_run(other, demos="theirs/reach")
    with pytest.raises(CampaignError, match="demos is 'theirs/reach' there"):
        read_state(other)


def test_seeds_come_before_tasks_and_arms(tmp_path):
    tasks = [*SMALL["tasks"], {"name": "push", "suite": "metaworld", "task": "push-v3"}]
    runs = plan_imitation(campaign(tasks=tasks, seeds=[1, 2]), tmp_path)
    assert [run.title for run in runs[:5]] == [
        "reach/linear-1", "reach/prism-1", "push/linear-1", "push/prism-1", "reach/linear-2"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "g1"}, "Unknown preset 'g1'"),
        ({"arms": []}, "at least one arm"),
        ({"arms": [{"name": "a", "conditioner": "prsm"}]}, "Did you mean 'prism'"),
        ({"tasks": [{"name": "demos", "suite": "metaworld", "task": "0"}]}, "cannot be the name"),
        ({"evaluation": {"conditions": ["nominal"]}}, "Unknown condition 'nominal'"),
        ({"seeds": [1, 1]}, "seeds must differ; twice: 1"),
        ({"demonstrations": {"noise": -0.1}}, "noise must be 0 or more, got -0.1"),
        ({"tuning": {"seeds": [901]}}, "tuning"),
    ],
)
def test_files_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        campaign(**changes)


def test_settings_are_checked_before_anything_runs(tmp_path):
    with pytest.raises(CampaignError, match=r"reach/linear-1: .*bathc"):
        plan_imitation(campaign(overrides={"bathc": 3}), tmp_path)
    tasks = [{"name": "reach", "suite": "metaworld", "task": "reach-v4"}]
    with pytest.raises(ValueError, match="Did you mean 'reach-v3'"):
        plan_demonstrations(campaign(tasks=tasks), tmp_path)
    arms = [
        {"name": "small", "conditioner": "linear", "overrides": {"network": {"image_size": 32}}},
        {"name": "large", "conditioner": "linear", "overrides": {"network": {"image_size": 64}}},
    ]
    with pytest.raises(CampaignError, match=r"different sizes \(\[32, 64\]"):
        plan_demonstrations(campaign(preset="laptop", arms=arms), tmp_path)


@pytest.mark.parametrize("name", ["contact", "press"])
def test_shipped_campaigns_name_tasks_that_exist(name, tmp_path):
    assert name in library()
    if name == "contact":
        pytest.importorskip("libero", reason="LIBERO is not installed")
    for preset in ("state", "laptop", "paper"):
        found, _ = find_campaign(name, preset)
        assert isinstance(found, ManipulationCampaign)
        assert len(plan_demonstrations(found, tmp_path)) == len(found.tasks)
        assert len(plan_imitation(found, tmp_path)) == len(found.tasks) * len(found.arms) * 5
