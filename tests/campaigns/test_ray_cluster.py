"""A Ray cluster of two machines on this one; what dies, dies for real."""

import os
import signal
import subprocess
import sys

import pytest

from prism_motor.campaigns.files import write_record
from prism_motor.campaigns.locks import is_locked
from prism_motor.runs import Run

from .conftest import assert_same_weights, campaign, plan, train, wait_for

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.slow

LONG = 300
"""Updates that take long enough to be interrupted."""
MIDWAY = range(15, LONG - 50)
"""Updates after which a run is cut: each when it is due, since a busy machine may finish one before
it begins the other."""
CHANGES = {
    "updates": LONG,
    "seeds": [1],
    "overrides": {**campaign().overrides, "checkpoint_every": 10},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same campaign, uninterrupted and in this process."""
    runs = plan(tmp_path_factory.mktemp("whole"), **CHANGES)
    for run in runs:
        train(run)
    return runs


@pytest.fixture
def cluster(monkeypatch):
    """A head without work and two machines with one CPU each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 is starvation on a loaded machine
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    try:
        nodes = [made.add_node(num_cpus=1) for _ in range(2)]
        made.wait_for_nodes()
        yield made, nodes
    finally:
        made.shutdown()


@pytest.fixture
def start(tmp_path):
    """Start the campaign as users do; it does not outlive the test."""
    started = []

    def start(folder):
        words = ["campaign", "run", str(folder), "--on", "ray"]
        output = (tmp_path / f"driver-{len(started)}.txt").open("w+")
        driver = subprocess.Popen(
            [sys.executable, "-m", "prism_motor.cli", *words],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        started.append((driver, output))
        return driver

    yield start
    for driver, output in started:
        driver.kill()
        driver.wait()
        output.seek(0)
        print(output.read())
        output.close()


def fresh(folder):
    folder.mkdir()
    write_record(campaign(**CHANGES), folder)
    return plan(folder, **CHANGES)


def worker_of(run):
    """Return the process number of the Ray worker that does a run, and of the raylet above it."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}
    (worker,) = {
        int(parent)
        for _, parent, *words in rows
        if words and str(run.path) in words[0] and "prism_motor.cli train" in words[0]
    }
    return worker, parents[worker]


def is_midway(run):
    file = run.path / "metrics.jsonl"
    return file.exists() and file.read_text().count("\n") in MIDWAY


def find_midway(runs):
    """Wait until one of the runs is neither at its beginning nor at its end, and return it."""
    found = []
    wait_for(lambda: found.extend(run for run in runs if is_midway(run)) or found)
    return found[0]


def newest(run):
    """Return the newest checkpoint of a run."""
    return Run.open(run.path).steps()[-1]


def assert_equal_results(runs, whole):
    for run, other in zip(runs, whole, strict=True):
        assert_same_weights(run.path, other.path)
        rows = Run.open(run.path).metrics()
        assert [row["update"] for row in rows] == [*range(1, LONG + 1)]
        assert (run.path / "evaluations" / "nominal-101.json").exists()


def test_a_killed_worker_and_a_killed_machine_leave_the_same_weights(
    tmp_path, cluster, start, whole
):
    made, nodes = cluster
    raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
    runs = mlp, prism = fresh(tmp_path / "cut")
    driver = start(tmp_path / "cut")
    first = find_midway(runs)
    for run in (first, prism if first is mlp else mlp):
        wait_for(lambda run=run: is_midway(run))
        worker, raylet = worker_of(run)
        if run is mlp:
            os.kill(worker, signal.SIGKILL)
        else:
            made.remove_node(nodes[raylets.index(raylet)], allow_graceful=False)
    assert driver.wait(1800) == 0
    assert "Interrupted after" in mlp.log.read_text()  # it ended with its worker
    for run in runs:
        assert run.log.read_text().count("-- on ") == 3  # cut, trained, evaluated
    assert_equal_results(runs, whole)


def test_a_killed_driver_and_ctrl_c_leave_the_same_weights(tmp_path, cluster, start, whole):
    runs = fresh(tmp_path / "cut")
    driver = start(tmp_path / "cut")
    cut = find_midway(runs)
    driver.kill()
    wait_for(lambda: not any(is_locked(run.log) for run in runs))  # the jobs end with it
    saved = newest(cut)
    assert saved < LONG
    again = start(tmp_path / "cut")
    wait_for(lambda: newest(cut) > saved)
    again.send_signal(signal.SIGINT)
    assert again.wait(900) == 130
    assert newest(cut) < LONG
    for run in runs:
        assert not is_locked(run.log)
        if run.has_begun:  # it saved on the way out
            assert newest(run) == Run.open(run.path).metrics()[-1]["update"]
    assert start(tmp_path / "cut").wait(1800) == 0
    assert_equal_results(runs, whole)
