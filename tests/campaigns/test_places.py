"""Where jobs run, and what a job does on the machine that it was sent to."""

import signal
import sys
import threading
from dataclasses import replace

import pytest

from prism_motor._checks import InputError
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.locks import is_locked
from prism_motor.campaigns.places import choose_place
from prism_motor.campaigns.places.local import LocalPlace
from prism_motor.campaigns.places.node import Ended, NodeJob, Order, find_problem
from prism_motor.campaigns.places.ray_cluster import RayHandle, RayPlace
from prism_motor.runs.layout import LOCK
from prism_motor.runs.locks import Lock, try_lock

from .conftest import wait_for


def order(folder, program="pass", **changes):
    """A job that runs a program in Python; its run has not begun."""
    log = folder / "job.log"
    log.write_text("-- sent as abc\n")
    words = (sys.executable, "-c", program)
    made = Order("job", folder / "run", log, words, words, token="abc")
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"on": "mars"}, r"--on must be local, ray, ray://HOST:PORT or slurm, got 'mars'"),
        ({"on": "ray://head"}, r"--on must be"),
        ({"on": "local", "gpus": 0.5}, r"add --on ray"),
        ({"on": "ray", "slurm": {"time": "60"}}, r"add --on slurm"),
        ({"on": "slurm", "gpus": 0.5}, r"Slurm gives whole GPUs, got 0.5"),
    ],
)
def test_a_place_that_cannot_be_is_refused(tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        choose_place(folder=tmp_path, **words)


@pytest.mark.parametrize(("on", "module"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_missing_package_names_its_extra(tmp_path, monkeypatch, on, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'prism-motor\[{on}\]'"):
        choose_place(on, tmp_path)


def test_this_machine_is_the_default(tmp_path):
    assert isinstance(choose_place("local", tmp_path), LocalPlace)


@pytest.mark.parametrize(
    ("device", "given", "gpus"),
    [("cpu", None, 0), ("cpu", 1, 0), ("cuda", None, 1), ("cuda:1", 0.5, 0.5), ("auto", None, 0),
     ("auto", 0.25, 0.25)],
)  # fmt: skip
def test_gpus_of_a_job(tmp_path, device, given, gpus):
    assert order(tmp_path, device=device).with_gpus(given).gpus == gpus


def test_a_job_leaves_its_exit_code_and_where_it_was(tmp_path):
    job = order(tmp_path, "import os; print('seen', repr(os.environ['CUDA_VISIBLE_DEVICES']))")
    assert NodeJob(job).run().code == 0
    text = job.log.read_text()
    assert "-- on " in text
    assert "seen ''" in text  # a CPU job sees no GPU, whatever the place shows it
    assert NodeJob(order(tmp_path, "raise SystemExit(3)")).run().code == 3


def test_a_job_goes_on_once_its_folder_has_begun(tmp_path):
    resume = (sys.executable, "-c", "print('resumed')")
    made = order(tmp_path, "print('begun')", resume=resume)
    NodeJob(made).run()
    (made.run / "checkpoints" / "00000001").mkdir(parents=True)
    (made.run / "config.json").write_text("{}")
    NodeJob(made).run()
    said = [line for line in made.log.read_text().splitlines() if not line.startswith("--")]
    assert said == ["begun", "resumed"]


def test_a_machine_without_the_folder_or_with_other_versions_says_so(tmp_path):
    good = order(tmp_path)
    assert find_problem(good) == ""
    assert "has another" in find_problem(replace(good, token="xyz"))
    assert "Mount the same folder" in find_problem(replace(good, log=tmp_path / "no" / "log"))
    other = {**good.versions, "torch": "0.0.1"}
    ended = NodeJob(replace(good, versions=other)).run()
    assert "here. Install the same ones on all machines" in ended.problem
    assert "torch is" in ended.problem
    assert "0.0.1 here" in ended.problem


@pytest.mark.parametrize("held", ["log", "run"])
def test_a_job_waits_for_what_another_one_holds(tmp_path, held):
    made = order(tmp_path, "print('working')")
    made.run.mkdir()
    ended = []
    with made.log.open("a") as file, Lock(made.run / LOCK, "") as lock:
        if held == "log":
            assert try_lock(file)
            lock.release()
        thread = threading.Thread(target=lambda: ended.append(NodeJob(made).run()))
        thread.start()
        thread.join(1.0)
        assert thread.is_alive()
        assert "working" not in made.log.read_text()
    thread.join(60)
    assert ended[0].code == 0
    assert "working" in made.log.read_text()


def test_stopping_a_job_waits_until_its_child_has_saved(tmp_path):
    program = (
        "import signal, sys, time\n"
        "def save(*_):\n"
        "    time.sleep(0.3)\n"
        "    print('saved')\n"
        "    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    made = order(tmp_path, program)
    job, ended = NodeJob(made), []
    thread = threading.Thread(target=lambda: ended.append(job.run()))
    thread.start()
    wait_for(lambda: "ready" in made.log.read_text())
    assert is_locked(made.log)
    job.stop()
    assert "saved" in made.log.read_text()
    thread.join(60)
    assert ended[0].code == 128 + signal.SIGTERM
    job.stop()  # a second time does nothing


class FakeRay:
    """As much of Ray as a handle needs, with a task that has ended somehow."""

    class exceptions:  # noqa: N801
        RayError = type("RayError", (Exception,), {})
        TaskCancelledError = type("TaskCancelledError", (RayError,), {})
        WorkerCrashedError = type("WorkerCrashedError", (RayError,), {})

    def __init__(self, result):
        self.result = result

    def wait(self, tasks, timeout):
        return tasks, []

    def get(self, task):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    "result", [Ended(2, "node7 has other versions"), FakeRay.exceptions.RayError("no prism here")]
)
def test_a_cluster_that_cannot_do_jobs_is_said_once(tmp_path, result):
    handle = RayHandle(FakeRay(result), order(tmp_path), "task")
    with pytest.raises(CampaignError, match=r"job: .*(node7 has other versions|no prism here)"):
        handle.poll()
    assert handle.poll() == 2  # so that the others can be stopped in peace


class Queue:
    """A remote function that takes tasks."""

    def options(self, **_):
        return self

    def remote(self, _):
        return "task"


def test_a_job_that_no_machine_has_room_for_is_named_once(tmp_path, capsys):
    pytest.importorskip("ray", reason="Ray is not installed")
    place = RayPlace()
    place.ray, place._work = FakeRay(Ended()), Queue()
    place.ray.nodes = lambda: [
        {"Alive": True, "Resources": {"CPU": 2.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
    ]
    for made in (order(tmp_path, threads=2), *2 * [order(tmp_path, device="cuda")]):
        with made.log.open("a") as log:
            place.start(made, log)
    said = capsys.readouterr().err
    assert said.count("job needs 1 CPU and 1 GPUs, and no machine of the cluster has as many") == 1
    assert said.count("note") == 1


def test_ray_that_cannot_be_reached_is_one_message():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    place = RayPlace("ray://head:10001")

    def fail(*_, **__):
        raise Exception("The current node timed out during startup.")

    place.ray = type("Ray", (), {"init": staticmethod(fail), "exceptions": ray.exceptions})
    with pytest.raises(CampaignError, match=r"Cannot connect to Ray at ray://head:10001: .* start"):
        place.__enter__()


def test_a_cancelled_task_is_over_when_its_child_has_saved(tmp_path):
    made = order(tmp_path)
    handle = RayHandle(FakeRay(FakeRay.exceptions.TaskCancelledError()), made, "task")
    with made.log.open("a") as file:
        assert try_lock(file)
        assert handle.poll() is None
    assert handle.poll() == 130
