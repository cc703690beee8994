"""The runner: killed, stopped, locked out and failing, with real child processes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from prism_motor._extras import missing_extra
from prism_motor._processes import Stopped
from prism_motor.campaigns.config import CampaignError, read_campaign
from prism_motor.campaigns.files import find_campaign, report_campaign, write_record
from prism_motor.campaigns.ledger import Ledger
from prism_motor.campaigns.locks import is_locked
from prism_motor.campaigns.places.local import LocalPlace
from prism_motor.campaigns.runner import Runner
from prism_motor.campaigns.status import describe_status
from prism_motor.runs import Run, to_dict
from prism_motor.runs.layout import CAMPAIGN, LOCK
from prism_motor.sim import warp_engine

from .conftest import (
    WALKING,
    assert_same_weights,
    campaign,
    have_begun,
    mark_diverged,
    plan,
    train,
    tuned,
    wait_for,
)

LONG = 200
"""Updates that take long enough to be interrupted."""


@pytest.fixture
def start():
    """Start a runner as a process of its own; it does not outlive the test."""
    started = []

    def start(folder):
        words = [
            sys.executable,
            "-m",
            "prism_motor.cli",
            "campaign",
            "run",
            str(folder),
            "--jobs",
            "2",
        ]
        runner = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        started.append(runner)
        return runner

    yield start
    for runner in started:
        if runner.poll() is None:
            runner.terminate()
            runner.wait()


def children(runner):
    """Return the process ids of a runner's jobs by the run folder that they work on."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(runner.pid)],
        capture_output=True,
        text=True,
    )
    found = {}
    for line in listed.stdout.splitlines():
        pid, *words = line.split()
        if "--out" in words:
            found[words[words.index("--out") + 1].rpartition("/")[2]] = int(pid)
    return found


@pytest.mark.slow
def test_kill_9_of_runner_and_child_leaves_the_same_results(tmp_path, start):
    overrides = {**campaign().overrides, "checkpoint_every": 10}
    changes = {"updates": LONG, "seeds": [1], "overrides": overrides}
    made = campaign(**changes)
    folder = tmp_path / "cut"
    folder.mkdir()
    write_record(made, folder)
    mlp, prism = plan(folder, **changes)
    runner = start(folder)
    wait_for(lambda: have_begun((mlp, prism), 15))
    pids = children(runner)
    os.kill(pids["mlp-1"], signal.SIGKILL)
    wait_for(lambda: "exit code -9" in mlp.log.read_text())  # the mark of its end
    assert runner.poll() is None  # the rest goes on
    os.kill(runner.pid, signal.SIGKILL)
    runner.communicate()
    assert is_locked(prism.log)  # its job is saving
    outcome = Runner(made, folder, jobs=2, poll=0.1).run()
    assert (outcome.done, outcome.total, outcome.failures) == (2, 2, {})
    assert "Interrupted after" in prism.log.read_text()  # it ended with its runner
    assert f"Done: {LONG} updates" in prism.log.read_text()
    for run, other in zip((mlp, prism), plan(tmp_path / "whole", **changes), strict=True):
        train(other)
        assert_same_weights(run.path, other.path)
        rows = Run.open(run.path).metrics()
        assert [row["update"] for row in rows] == [*range(1, LONG + 1)]
    again = Runner(made, folder, jobs=2, poll=0.1)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}
    assert again.run().done == 2
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")} == before


@pytest.mark.slow
def test_an_arm_is_evaluated_by_all_its_protocols(tmp_path):
    further = [
        {"arms": ["mlp"], "overrides": {"conditions": ["payload"]}},
        {"arms": ["mlp"], "overrides": {"conditions": ["low-friction"]}},
    ]
    made = campaign(seeds=[1], evaluations=further)
    outcome = Runner(made, tmp_path / "small", jobs=1, poll=0.1).run()
    assert (outcome.done, outcome.failures) == (2, {})
    files = {
        arm: sorted(file.stem for file in (tmp_path / "small" / arm).glob("evaluations/*.json"))
        for arm in ("mlp-1", "prism-1")
    }
    assert files == {
        "mlp-1": ["low-friction-101", "nominal-101", "payload-101"],
        "prism-1": ["nominal-101"],
    }


@pytest.mark.slow
def test_the_campaign_capacity_ends_with_its_report(tmp_path):
    """As it is shipped, at the size of these tests: one seed, without tuning."""
    small = {key: WALKING[key] for key in ("updates", "overrides", "evaluation")}
    shipped = to_dict(find_campaign("capacity")[0])
    made = read_campaign({**shipped, **small, "seeds": [1], "tuning": None}, "capacity")
    outcome = Runner(made, tmp_path / "small", jobs=2, poll=0.1).run()
    assert (outcome.done, outcome.total, outcome.failures) == (3, 3, {})
    report_campaign(made, tmp_path / "small", command="prism campaign run capacity")
    (section,) = json.loads((tmp_path / "small" / "report.json").read_text())["sections"]
    assert [row["label"] for row in section["arms"]] == [arm.name for arm in made.arms]
    assert section["reference"] == "mlp-matched"


@pytest.mark.slow
def test_ctrl_c_saves_everything_and_says_how_to_go_on(tmp_path, start):
    rarely = {**campaign().overrides, "checkpoint_every": 5000}
    made = campaign(updates=5000, seeds=[1], overrides=rarely)
    folder = tmp_path / "stopped"
    folder.mkdir()
    write_record(made, folder)
    runner = start(folder)
    wait_for(lambda: have_begun(Ledger(made, folder), 3))
    with pytest.raises(CampaignError, match=rf"already being run by process {runner.pid} on"):
        Runner(made, folder, jobs=1).run()
    runner.send_signal(signal.SIGINT)
    text, _ = runner.communicate(timeout=120)
    assert runner.returncode == 130
    assert f"Continue with: prism campaign run {folder}" in text
    for run in Ledger(made, folder):
        steps = Run.open(run.path).steps()
        assert 3 <= steps[-1] < 5000  # saved on the way out: the interval alone would give 0
        assert not is_locked(run.log)


@pytest.mark.slow
def test_a_failing_job_is_reported_and_the_rest_goes_on(tmp_path, capsys):
    arms = [
        {"name": "bad", "arm": "mlp", "overrides": {"envs": 7}},
        {"name": "good", "arm": "mlp"},
    ]
    made = campaign(seeds=[1], arms=arms)
    folder = tmp_path / "failing"
    bad, good = plan(folder, seeds=[1], arms=arms)
    train(bad, 2)
    for file in bad.path.glob("checkpoints/*/tensors.safetensors"):
        file.write_bytes(file.read_bytes()[:-10])
    train(good)
    outcome = Runner(made, folder, jobs=2, poll=0.1).run()
    assert (outcome.done, outcome.total) == (1, 2)
    assert outcome.failures == {"bad-1": "failed with exit code 2"}
    shown = capsys.readouterr().out
    assert "truncated or changed" in shown  # the tail of the log
    assert json.loads((good.path / "evaluations" / "nominal-101.json").read_text())


def test_no_job_starts_after_the_time_is_up(trained):
    outcome = Runner(campaign(), trained, jobs=2, until=-1.0, poll=0.01).run()
    assert (outcome.done, outcome.total, outcome.failures) == (0, 4, {})


def test_a_diverged_run_is_a_failure_that_is_not_repeated(tmp_path):
    made = campaign(seeds=[1], arms=[{"name": "mlp"}])
    (run,) = plan(tmp_path, seeds=[1], arms=[{"name": "mlp"}])
    train(run, 2)
    mark_diverged(run, 2)
    outcome = Runner(made, tmp_path, jobs=1, poll=0.01).run()
    assert outcome.failures.keys() == {"mlp-1"}
    assert "diverged after update 2" in outcome.failures["mlp-1"]
    assert not run.log.exists()


def test_runs_of_another_campaign_are_reused(trained, tmp_path, capsys):
    one = campaign(seeds=[1], arms=[{"name": "mlp"}])
    runner = Runner(one, tmp_path / "new", jobs=1, reuse=[trained], until=None, poll=0.01)
    runner._start = lambda work, step, start=runner._start: step == "train" and start(work, step)
    assert runner.run().total == 1  # the evaluation is left out here: it needs a child
    assert f"mlp-1: copied from {trained / 'mlp-1'}" in capsys.readouterr().out
    with pytest.raises(CampaignError, match=r"No such folder to reuse runs from"):
        Runner(one, tmp_path, jobs=1, reuse=[tmp_path / "none"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tuned campaign of handling that has run to its end."""
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    folder = tmp_path_factory.mktemp("campaigns") / "small"
    outcome = Runner(tuned("manipulation"), folder, jobs=2, poll=0.1).run()
    assert outcome.failures == {}
    assert (outcome.done, outcome.total) == (7, 7)
    return folder


def test_it_records_tunes_trains_and_evaluates(finished):
    origin = json.loads((finished / "demos" / "reach" / "meta" / "prism.json").read_text())
    assert origin["collection"]["image_size"] == 0
    sweep = json.loads((finished / "tuning.json").read_text())
    for arm in ("linear", "prism"):
        config = json.loads((finished / "reach" / f"{arm}-1" / "config.json").read_text())
        assert (config["arm"], config["updates"], config["threads"]) == (arm, 4, 1)
        assert config["network"]["widths"] == [16, 32]
        chosen = sweep["arms"][arm]["chosen"]
        assert config["optimiser"]["learning_rate"] == chosen["optimiser.learning_rate"]
        rows = sweep["arms"][arm]["settings"]
        best = min(rows, key=lambda row: row["score"])
        assert best["setting"] == chosen


class Nowhere(LocalPlace):
    """A cluster that takes a while to reach, until somebody presses Ctrl-C."""

    def __enter__(self):
        os.kill(os.getpid(), signal.SIGINT)
        return self

    def start(self, order, log):
        raise AssertionError("no job should be started")


def test_ctrl_c_while_connecting_starts_no_job(tmp_path):
    with pytest.raises(Stopped):
        Runner(campaign(), tmp_path / "campaign", place=Nowhere()).run()
    assert {file.name for file in (tmp_path / "campaign").iterdir()} <= {LOCK}


def test_a_second_call_does_nothing(finished):
    again, folder = find_campaign(str(finished))
    assert (again, folder) == (tuned("manipulation"), finished)
    runner = Runner(again, finished, jobs=1, place=Nowhere())
    before = {file: file.stat().st_mtime_ns for file in finished.rglob("*.json")}
    assert runner.run().done == 7
    after = {file: file.stat().st_mtime_ns for file in finished.rglob("*.json")}
    assert {file for file in after if after[file] != before[file]} <= {finished / CAMPAIGN}
    assert "nothing is left to do" in describe_status(again, finished, 1)


def test_more_episodes_and_seeds_are_added_to_what_is_there(finished):
    ledger = Ledger(tuned("manipulation", evaluation={"episodes": 2}, seeds=[1, 2]), finished)
    assert [ledger.state(run).step for run in ledger.reported] == ["evaluate"] * 2 + ["train"] * 2


def test_evaluations_of_other_weights_do_not_count_as_done(finished):
    file = finished / "reach" / "prism-1" / "evaluations" / "none-101.json"
    text = file.read_text()
    file.write_text(text.replace('"policy_sha256": "', '"policy_sha256": "0'))
    try:
        ledger = Ledger(tuned("manipulation"), finished)
        assert [ledger.state(run).step for run in ledger.reported] == [None, "evaluate"]
    finally:
        file.write_text(text)


@pytest.mark.slow
def test_a_tuning_run_that_diverges_loses_and_the_campaign_goes_on(tmp_path, capsys):
    sweep = {"ppo.learning_rate": [1e-3, 100.0]}
    tuning = {"seeds": [901], "fraction": 1.0, "sweep": sweep}
    made = campaign(seeds=[1], arms=[{"name": "prism"}], tuning=tuning)
    outcome = Runner(made, tmp_path, jobs=2, poll=0.1).run()
    assert (outcome.done, outcome.total, outcome.failures) == (3, 3, {})
    assert "diverged after" in capsys.readouterr().out
    found = json.loads((tmp_path / "tuning.json").read_text())["arms"]["prism"]
    assert found["chosen"] == {"ppo.learning_rate": 1e-3}


@pytest.mark.slow
def test_arms_and_runs_that_diverge_are_reported_and_do_not_stop_the_others(tmp_path, capsys):
    wild = {"ppo.learning_rate": [50.0, 100.0]}
    arms = [{"name": "wild", "arm": "prism", "sweep": wild}, {"name": "mlp"}]
    tuning = {"seeds": [901], "fraction": 1.0, "sweep": {"ppo.learning_rate": [1e-3, 2e-3]}}
    made = campaign(seeds=[1], arms=arms, tuning=tuning)
    outcome = Runner(made, tmp_path, jobs=2, poll=0.1).run()
    assert outcome.failures == {"wild": "all of its tuning runs diverged"}
    assert (outcome.done, outcome.total, outcome.bug) == (5, 6, False)
    assert capsys.readouterr().out.count("so this setting cannot win") == 2
    # A reported run that diverges is a result, too: the campaign ends, and says which.
    arms = [
        {"name": "wild", "arm": "prism", "overrides": {"ppo": {"learning_rate": 100.0}}},
        *arms[1:],
    ]
    made = campaign(seeds=[1], arms=arms)
    outcome = Runner(made, tmp_path / "reported", jobs=2, poll=0.1).run()
    assert (outcome.done, outcome.total, outcome.bug) == (1, 2, False)
    assert "diverged after update 0; see" in outcome.failures["wild-1"]


def test_an_engine_that_is_missing_here_is_said_once_before_any_job(tmp_path, monkeypatch):
    def missing():
        raise missing_extra("The gpu engine", "gpu", ImportError("no warp", name="warp"))

    monkeypatch.setattr(warp_engine, "import_warp", missing)
    made = campaign(overrides={**WALKING["overrides"], "engine": "gpu"})
    with pytest.raises(CampaignError, match=r"mlp-1: The gpu engine.*prism-motor\[gpu\]"):
        Runner(made, tmp_path / "no", jobs=1, place=LocalPlace()).run()
    assert not (tmp_path / "no" / "logs").exists()
