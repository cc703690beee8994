"""Whatever ends a command ends all that it started; whatever ends a worker ends in a message."""

import os
import signal
import sys
import time

import pytest

from prism_motor.campaigns.files import write_record
from prism_motor.runs import Run
from tests.campaigns.conftest import campaign
from tests.faults.processes import PRISM, Command, command_line, wait_until_gone
from tests.faults.sizes import ALL
from tests.train.cases import CASES

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
    pytest.mark.slow,
]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
LIMIT = 15.0
"""Seconds in which all processes must be gone."""

POOL = """
import os, sys, time
from prism_motor._processes import exit_code, on_stop, raise_stopped
from prism_motor._workers import WorkerPool

class Sleeper:
    def __call__(self, job):
        print("begun", flush=True)
        time.sleep(600)

if __name__ == "__main__":
    try:
        with on_stop(raise_stopped), WorkerPool(Sleeper, 2) as pool:
            pool.run([1, 2, 3])
    except KeyboardInterrupt as stop:
        sys.exit(exit_code(stop))
"""
TRAIN = (
    "train", "locomotion", "--envs", 8, "--threads", 1, "--ppo.steps", 6, "--ppo.epochs", 1,
    "--ppo.minibatches", 2, "--checkpoint-every", 5000, "--updates", 100000, "--processes", 2,
)  # fmt: skip


def start_pool(folder):
    (folder / "pool.py").write_text(POOL)
    command = Command([sys.executable, folder / "pool.py"], folder / "said")
    command.wait_for(lambda: command.said.count("begun") == 2)
    return command


def start_training(folder):
    command = Command([*PRISM, *TRAIN, "--out", folder / "run"], folder / "said")
    rows = folder / "run" / "metrics.jsonl"
    command.wait_for(lambda: rows.exists() and rows.read_text().count("\n") > 2)
    return command


def start_physics(folder):
    command = Command([*PRISM, "physics", "--out", folder / "physics"], folder / "said")
    command.wait_for((folder / "physics" / "results.json").exists)
    return command


def start_evaluation(folder):
    case = CASES["manipulation"]
    patch = case.setup()
    from prism_motor.train import session

    session.train(*session.start(case.make(updates=1), folder / "run"))
    patch.undo()
    words = ("eval", folder / "run", "--workers", 2, "--episodes", 50)
    command = Command([*PRISM, *words], folder / "said")
    command.wait_for((folder / "run" / "evaluations" / "none-101.json").exists)
    return command


def start_campaign(folder):
    made = campaign(updates=100000, seeds=[1])
    (folder / "runs").mkdir()
    write_record(made, folder / "runs")
    words = ("campaign", "run", folder / "runs", "--jobs", 2)
    command = Command([*PRISM, *words], folder / "said")
    rows = [folder / "runs" / name / "metrics.jsonl" for name in ("mlp-1", "prism-1")]
    command.wait_for(lambda: all(file.exists() for file in rows))
    return command


STARTS = {
    "pool": start_pool,
    "train": start_training,
    "physics": start_physics,
    "eval": start_evaluation,
    "campaign": start_campaign,
}
SMOKE = {(name, number) for name in ("pool",) for number in SIGNALS} | {("train", signal.SIGKILL)}
CASES_OF_SIGNALS = [
    (name, number) for name in STARTS for number in SIGNALS if ALL or (name, number) in SMOKE
]


@pytest.fixture
def start(tmp_path):
    """Start commands that do not outlive the test."""
    started = []

    def start(name):
        started.append(STARTS[name](tmp_path))
        return started[-1]

    yield start
    for command in started:
        command.clean_up()


@pytest.mark.parametrize(("name", "number"), CASES_OF_SIGNALS)
def test_a_signal_ends_a_command_and_all_that_it_started(name, number, start, tmp_path):
    command = start(name)
    family = command.family()
    assert len(family) >= 2, command.said
    command.process.send_signal(number)
    code = command.process.wait(timeout=60)
    assert wait_until_gone(family, LIMIT) == [], command.said
    assert code == (-number if number == signal.SIGKILL else 128 + number), command.said
    assert "Traceback" not in command.said
    if name == "train":  # checkpoints are thousands of updates apart: this one was made at the end
        assert Run.open(tmp_path / "run").load().step > 0


@pytest.mark.skipif(not ALL, reason="part of make faults")
@pytest.mark.parametrize("name", ["physics", "train"])
def test_ctrl_c_in_a_terminal_reaches_all_processes_and_one_answers(name, start):
    command = start(name)
    family = command.family()
    os.killpg(command.process.pid, signal.SIGINT)
    assert command.process.wait(timeout=60) == 130
    assert wait_until_gone(family, LIMIT) == []
    assert "Traceback" not in command.said


def test_a_killed_process_of_training_ends_the_others_with_a_message(start, tmp_path):
    command = start("train")
    family = command.family()
    children = [pid for pid in family if "--multiprocessing-fork" in command_line(pid)]
    assert len(children) == 2
    os.kill(children[1], signal.SIGKILL)
    assert command.process.wait(timeout=LIMIT) == 2
    assert wait_until_gone(family, LIMIT) == []
    assert "Process 1 of 2 ended with SIGKILL" in command.said
    assert "Traceback" not in command.said
    assert Run.open(tmp_path / "run").load().step == 0  # and it can be resumed from there


def kill_new(command, killed):
    """Kill all workers that have appeared since the last call."""
    for pid in command.family():
        if "--multiprocessing-fork" in command_line(pid) and pid not in killed:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name", ["pool", *(["physics"] if ALL else [])])
def test_workers_that_are_killed_while_they_start_end_the_command(name, tmp_path):
    words = {
        "pool": (sys.executable, tmp_path / "pool.py"),
        "physics": (*PRISM, "physics", "--out", tmp_path / "physics"),
    }[name]
    (tmp_path / "pool.py").write_text(POOL)
    command = Command(words, tmp_path / "said")
    killed, end = [], time.monotonic() + 120
    try:
        while command.process.poll() is None:
            assert time.monotonic() < end, command.said
            kill_new(command, killed)
            time.sleep(0.01)
    finally:
        command.clean_up()
    assert "the worker died (SIGKILL, perhaps for want of memory); trying again." in command.said
    assert len(killed) >= 2
    if name == "physics":
        assert command.process.returncode == 2
        assert "Finished runs are kept" in command.said


@pytest.mark.skipif(not ALL, reason="part of make faults")
def test_a_killed_worker_of_an_evaluation_costs_nothing(start, tmp_path):
    command = start("eval")
    kill_new(command, [])
    command.wait_for(lambda: command.said.count("trying again") == 2)
    rows = tmp_path / "run" / "evaluations" / "none-101.json"
    before = rows.read_text().count('"success"')
    command.wait_for(lambda: rows.read_text().count('"success"') > before)
