"""The runner: killed, stopped, locked out and failing, with real child processes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from prism_motor.campaigns.book import Book
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.display import Display, say_duration
from prism_motor.campaigns.files import write_record
from prism_motor.campaigns.locks import hold, is_locked, try_lock
from prism_motor.campaigns.runner import Runner
from prism_motor.cli.campaign import _parse_duration
from prism_motor.runs import Run

from .conftest import campaign, plan, train

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


def wait_for(what, seconds=300):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


def have_begun(runs, updates):
    files = [run.path / "metrics.jsonl" for run in runs]
    return all(file.exists() and file.read_text().count("\n") >= updates for file in files)


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


def assert_same_weights(one, two):
    tensors = [Run.open(path).load().tensors for path in (one, two)]
    assert tensors[0].keys() == tensors[1].keys()
    for name, tensor in tensors[0].items():
        assert torch.equal(tensor, tensors[1][name]), name


@pytest.mark.slow
def test_kill_9_of_runner_and_child_leaves_the_same_results(tmp_path, start):
    overrides = {**campaign().overrides, "checkpoint_every": 10}
    changes = {"iterations": LONG, "seeds": [1], "overrides": overrides}
    made = campaign(**changes)
    folder = tmp_path / "cut"
    folder.mkdir()
    write_record(made, folder)
    mlp, gated = plan(folder, **changes)
    runner = start(folder)
    wait_for(lambda: have_begun((mlp, gated), 15))
    pids = children(runner)
    os.kill(pids["mlp-1"], signal.SIGKILL)
    wait_for(lambda: "exit code -9" in mlp.log.read_text())
    assert runner.poll() is None  # the rest goes on
    os.kill(runner.pid, signal.SIGKILL)
    runner.communicate()
    assert is_locked(gated.log)  # its job lives on
    outcome = Runner(made, folder, jobs=2, poll=0.1).run()
    assert (outcome.done, outcome.total, outcome.failures) == (2, 2, {})
    assert f"Done: {LONG} updates" in gated.log.read_text()
    assert gated.log.read_text().count("environments") == 1  # it was not started twice
    for run, other in zip((mlp, gated), plan(tmp_path / "whole", **changes), strict=True):
        train(other)
        assert_same_weights(run.path, other.path)
        rows = Run.open(run.path).metrics()
        assert [row["iteration"] for row in rows] == [*range(1, LONG + 1)]
    again = Runner(made, folder, jobs=2, poll=0.1)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}
    assert again.run().done == 2
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")} == before


@pytest.mark.slow
def test_ctrl_c_saves_everything_and_says_how_to_go_on(tmp_path, start):
    rarely = {**campaign().overrides, "checkpoint_every": 5000}
    made = campaign(iterations=5000, seeds=[1], overrides=rarely)
    folder = tmp_path / "stopped"
    folder.mkdir()
    write_record(made, folder)
    runner = start(folder)
    wait_for(lambda: have_begun(Book(made, folder), 3))
    with pytest.raises(CampaignError, match=rf"run already, by process {runner.pid} on"):
        Runner(made, folder, jobs=1).run()
    runner.send_signal(signal.SIGINT)
    text, _ = runner.communicate(timeout=120)
    assert runner.returncode == 130
    assert f"Go on with: prism campaign run {folder}" in text
    for run in Book(made, folder):
        steps = Run.open(run.path).steps()
        assert 3 <= steps[-1] < 5000  # saved on the way out: the interval alone would give 0
        assert not is_locked(run.log)


@pytest.mark.slow
def test_a_failing_job_is_reported_and_the_rest_goes_on(tmp_path, capsys):
    arms = [
        {"name": "bad", "actor": "mlp", "overrides": {"envs": 7}},
        {"name": "good", "actor": "mlp"},
    ]
    made = campaign(seeds=[1], arms=arms)
    folder = tmp_path / "failing"
    bad, good = plan(folder, seeds=[1], arms=arms)
    train(bad, 2)
    file = bad.path / "checkpoints" / "00000002" / "tensors.safetensors"
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
    made = campaign(seeds=[1], arms=[{"name": "mlp", "actor": "mlp"}])
    (run,) = plan(tmp_path, seeds=[1], arms=[{"name": "mlp", "actor": "mlp"}])
    train(run, 2)
    dump = run.path / "nonfinite" / "00000002"
    dump.mkdir(parents=True)
    (dump / "complete.json").write_text("{}")
    outcome = Runner(made, tmp_path, jobs=1, poll=0.01).run()
    assert outcome.failures.keys() == {"mlp-1"}
    assert "diverged after update 2" in outcome.failures["mlp-1"]
    assert not run.log.exists()


def test_runs_of_another_campaign_are_reused(trained, tmp_path, capsys):
    one = campaign(seeds=[1], arms=[{"name": "mlp", "actor": "mlp"}])
    runner = Runner(one, tmp_path / "new", jobs=1, reuse=[trained], until=None, poll=0.01)
    runner._start = lambda run, step, start=runner._start: step == "train" and start(run, step)
    assert runner.run().total == 1  # the evaluation is left out here: it needs a child
    assert f"mlp-1: copied from {trained / 'mlp-1'}" in capsys.readouterr().out
    with pytest.raises(CampaignError, match=r"no folder .* to reuse runs from"):
        Runner(one, tmp_path, jobs=1, reuse=[tmp_path / "none"])


def test_only_one_runner_at_a_time(tmp_path):
    with (
        hold(tmp_path / "a"),
        pytest.raises(CampaignError, match=r"already, by process \d+ on .*prism campaign status"),
        hold(tmp_path / "a"),
    ):
        pass
    with hold(tmp_path / "a"), hold(tmp_path / "b"):
        pass
    assert not is_locked(tmp_path / "a" / ".lock")


def test_a_lock_lives_as_long_as_the_child_that_inherited_it(tmp_path):
    path = tmp_path / "log"
    with path.open("a") as file:
        assert try_lock(file)
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=file
        )
    assert is_locked(path)
    child.communicate(b"\n")
    assert not is_locked(path)


def test_status_lines_without_a_terminal_are_few_and_plain(capsys):
    display = Display(every=3600.0)
    for _ in range(3):
        display.status(lambda: "half done")
    display.shown = float("-inf")
    display.status(lambda: "nearly done")
    display.event("done")
    assert capsys.readouterr().out == "nearly done\ndone\n"


def test_durations():
    assert [_parse_duration(text) for text in ("45m", "1h30m", "90s", "2h")] == [
        2700, 5400, 90, 7200,
    ]  # fmt: skip
    for text in ("", "45", "m", "1.5h", "soon"):
        with pytest.raises(ValueError, match="45m"):
            _parse_duration(text)
    assert [say_duration(s) for s in (40, 700, 11100)] == ["40 s", "12 min", "3 h 05 min"]
