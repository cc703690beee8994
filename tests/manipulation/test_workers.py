import os
import signal
from functools import partial

import pytest

from prism_motor.manipulation.tasks import Task
from prism_motor.manipulation.workers import EpisodeJob, WorkerError, run_episodes

TASK = Task("metaworld", 0, "reach-v3", "reach", 500)
EPISODES = [EpisodeJob(TASK, initial_state=state) for state in range(6)]


def make_square():
    return lambda episode: episode.initial_state**2


def make_fragile(folder, deaths):
    """State 2 kills its worker ``deaths`` times; state 4 raises always."""

    def run(episode):
        if episode.initial_state == 2 and len(list(folder.iterdir())) < deaths:
            (folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if episode.initial_state == 4:
            raise ArithmeticError("the simulation diverged")
        return episode.initial_state**2

    return run


def make_nothing():
    raise FileNotFoundError("no assets")


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_outcomes_come_in_order(workers):
    arrived = []
    outcomes = run_episodes(make_square, EPISODES, workers=workers, on_done=arrived.append)
    assert [outcome.record for outcome in outcomes] == [0, 1, 4, 9, 16, 25]
    assert [outcome.episode for outcome in outcomes] == EPISODES
    assert sorted(arrived, key=lambda outcome: outcome.record) == outcomes


def test_a_dead_worker_costs_nothing_when_the_second_try_works(tmp_path, capfd):
    outcomes = run_episodes(partial(make_fragile, tmp_path, 1), EPISODES[:4], workers=2)
    assert [outcome.record for outcome in outcomes] == [0, 1, 4, 9]
    said = capfd.readouterr().err
    assert "metaworld/0, state 2: the worker died (exit code -9); trying it again." in said


def test_an_episode_that_fails_twice_is_recorded_and_the_others_stay(tmp_path):
    outcomes = run_episodes(partial(make_fragile, tmp_path, 2), EPISODES, workers=1)
    assert [outcome.record for outcome in outcomes] == [0, 1, None, 9, None, 25]
    assert "exit code -9" in outcomes[2].failure
    assert outcomes[4].failure == "ArithmeticError: the simulation diverged"


def test_workers_that_cannot_start_stop_everything():
    with pytest.raises(WorkerError, match="FileNotFoundError: no assets"):
        run_episodes(make_nothing, EPISODES, workers=2)


def test_nothing_to_do_and_bad_numbers():
    assert run_episodes(make_square, [], workers=2) == []
    with pytest.raises(ValueError, match="0 \\(this process\\) or more"):
        run_episodes(make_square, EPISODES, workers=-1)
