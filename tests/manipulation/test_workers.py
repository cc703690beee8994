import errno
import multiprocessing
import os
import signal
from functools import partial

import pytest

from prism_motor._checks import InputError, PrismError
from prism_motor._workers import WorkerError
from prism_motor.manipulation.tasks import Task
from prism_motor.manipulation.workers import EpisodeJob, run_episodes

TASK = Task("metaworld", 0, "reach-v3", "reach", 500)
JOBS = [EpisodeJob(TASK, initial_state=state) for state in range(6)]


def make_square():
    return lambda job: job.initial_state**2


def make_fragile(folder, deaths):
    """State 2 kills its worker ``deaths`` times; state 4 raises always."""

    def run(job):
        if job.initial_state == 2 and len(list(folder.iterdir())) < deaths:
            (folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if job.initial_state == 4:
            raise ArithmeticError("the simulation diverged")
        return job.initial_state**2

    return run


def make_nothing():
    raise FileNotFoundError("no assets")


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_results_come_in_order(workers):
    arrived = []
    results = run_episodes(make_square, JOBS, workers=workers, on_done=arrived.append)
    assert [result.result for result in results] == [0, 1, 4, 9, 16, 25]
    assert [result.job for result in results] == JOBS
    assert sorted(arrived, key=lambda result: result.result) == results


def test_a_dead_worker_costs_nothing_when_the_second_try_works(tmp_path, capfd):
    results = run_episodes(partial(make_fragile, tmp_path, 1), JOBS[:4], workers=2)
    assert [result.result for result in results] == [0, 1, 4, 9]
    said = capfd.readouterr().err
    assert (
        "metaworld/0, state 2: the worker died (SIGKILL, perhaps for want of memory); trying again."
        in said
    )


def test_an_episode_that_fails_twice_is_recorded_and_the_others_stay(tmp_path):
    results = run_episodes(partial(make_fragile, tmp_path, 2), JOBS, workers=1)
    assert [result.result for result in results] == [0, 1, None, 9, None, 25]
    assert "SIGKILL" in results[2].failure
    assert results[4].failure == "ArithmeticError: the simulation diverged"
    assert [one.trace.startswith("Traceback") for one in results] == [False] * 4 + [True, False]


def test_workers_that_cannot_start_stop_everything():
    with pytest.raises(WorkerError, match="FileNotFoundError: no assets"):
        run_episodes(make_nothing, JOBS, workers=2)


def make_mistaken(when):
    if when == "start":
        raise InputError("give a run that was trained there")

    def run(job):
        if when == "disk":
            raise OSError(errno.ENOSPC, "No space left on device", "traces/1.npz")
        raise InputError("give a run that was trained there")

    return run


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("start", "give a run that was trained there"),
        ("episode", "give a run that was trained there"),
        (
            "disk",
            "traces/1.npz: No space left on device. Free some space on the disk and try again.",
        ),
    ],
)
def test_what_a_user_can_fix_stops_everything_with_its_own_message(when, said, capfd):
    with pytest.raises(PrismError) as error:
        run_episodes(partial(make_mistaken, when), JOBS, workers=2)
    assert str(error.value) == said
    assert capfd.readouterr().err == ""  # it was not tried again
    assert multiprocessing.active_children() == []


def test_large_preparations_arrive_also_after_a_worker_died(tmp_path):
    make = partial(make_large, tmp_path, bytes(10_000_000))  # far more than a pipe holds
    assert [one.result for one in run_episodes(make, JOBS[:2], workers=2)] == [10_000_000] * 2


def make_large(folder, data):
    if not any(folder.iterdir()):
        (folder / "first").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return lambda job: len(data)


def test_nothing_to_do_and_bad_numbers():
    assert run_episodes(make_square, [], workers=2) == []
    with pytest.raises(ValueError, match="0 \\(this process\\) or more"):
        run_episodes(make_square, JOBS, workers=-1)
