"""A Ray cluster of two machines on this one; what dies, dies for real."""

import os
import signal
import subprocess
import sys

import pytest

from prism_motor.campaigns.files import write_record
from prism_motor.campaigns.locks import is_locked
from prism_motor.runs import Run

from .conftest import assert_same_weights, campaign, have_begun, plan, train, wait_for

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.slow

LONG = 300
"""Updates that take long enough to be interrupted."""
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


def newest(runs):
    """Return the newest checkpoint of each run."""
    return [Run.open(run.path).steps()[-1] for run in runs]


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
    runs = mlp, prism = fresh(tmp_path / "cut")
    driver = start(tmp_path / "cut")
    wait_for(lambda: have_begun(runs, 15))
    os.kill(worker_of(mlp)[0], signal.SIGKILL)
    wait_for(lambda: mlp.log.read_text().count("-- on ") == 2)  # Ray tries it again
    raylet = worker_of(prism)[1]
    (node,) = [
        node
        for node in nodes
        if node.all_processes["raylet"][0].process.pid == raylet
    ]  # fmt: skip
    made.remove_node(node, allow_graceful=False)
    assert driver.wait(600) == 0
    assert "Interrupted after" in mlp.log.read_text()  # it ended with its worker
    assert prism.log.read_text().count("-- on ") == 3  # cut, trained, evaluated
    assert_equal_results(runs, whole)


def test_a_killed_driver_and_ctrl_c_leave_the_same_weights(tmp_path, cluster, start, whole):
    runs = fresh(tmp_path / "cut")
    driver = start(tmp_path / "cut")
    wait_for(lambda: have_begun(runs, 15))
    driver.kill()
    wait_for(lambda: not any(is_locked(run.log) for run in runs))  # the jobs end with it
    saved = newest(runs)
    assert max(saved) < LONG
    again = start(tmp_path / "cut")
    wait_for(lambda: all(now > then for now, then in zip(newest(runs), saved, strict=True)))
    again.send_signal(signal.SIGINT)
    assert again.wait(300) == 130
    for run in runs:
        assert not is_locked(run.log)
        rows = Run.open(run.path).metrics()
        assert newest([run]) == [rows[-1]["update"]]  # it saved on the way out
    assert start(tmp_path / "cut").wait(600) == 0
    assert_equal_results(runs, whole)
