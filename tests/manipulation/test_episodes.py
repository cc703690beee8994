"""Evaluated episodes of handling: traces, videos, correctors, workers, crashes."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

from prism_motor.domains import DOMAINS
from prism_motor.manipulation import data
from prism_motor.manipulation.config import HandlingEvaluation
from prism_motor.manipulation.episodes import EpisodeFiles
from prism_motor.manipulation.tasks import find_task
from prism_motor.train import session
from prism_motor.train.evaluations import Evaluations
from tests.manipulation.diffusion.conftest import demonstrations_of, make_config


@pytest.fixture(scope="module", autouse=True)
def _short_episodes():
    """Policies of two updates solve nothing; twenty steps are enough to see that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load_for", demonstrations_of)
        patch.setattr(data, "find_tasks", lambda *task: (replace(find_task(*task), horizon=20),))
        yield


def make_run(path, arm="prism"):
    session.train(*session.start(make_config(arm, updates=2), path))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "prism")


@pytest.fixture
def evaluate(run):
    """Make evaluations that are closed at the end."""
    opened = []

    def make(path=run, **settings):
        opened.append(Evaluations(path, HandlingEvaluation(**settings)))
        return opened[-1]

    yield make
    for evaluations in opened:
        evaluations.close()


def trace_file(evaluations, condition, seed, state):
    name = evaluations.domain.evaluation_name(evaluations.evaluation, condition, seed)
    return EpisodeFiles(evaluations.run.path, name, evaluations.step).trace(
        find_task("metaworld", "reach-v3"), state
    )


def key(state):
    return ("metaworld", "reach-v3", state)


class CrashError(Exception):
    pass


def test_every_episode_is_kept_as_soon_as_it_ends(run, evaluate):
    asked = {"conditions": ("delay",), "seeds": (7,), "episodes": 3}
    first = evaluate(**asked)

    def crash():
        raise CrashError

    assert first.missing("delay", 7) == [key(0), key(1), key(2)]
    with pytest.raises(CrashError):
        first.measure("delay", 7, [key(0), key(1), key(2)], report=crash)
    again = evaluate(**asked)
    done = again.read("delay", 7)
    assert done.keys() == {key(0)}
    assert again.missing("delay", 7) == [key(1), key(2)]
    rest = again.measure("delay", 7, [key(1), key(2)])
    assert first.read("delay", 7) == done | rest
    assert first.measure("delay", 7, [key(0), key(1), key(2)], again=True) == done | rest
    data = json.loads((run / "evaluations" / "delay-7.json").read_text())
    assert data["kind"] == "manipulation"
    assert data["condition"] == {
        "name": "delay", "delay": 1, "state_noise": 0.0, "image_noise": 0.0,
    }  # fmt: skip
    row = data["episodes"][1]
    assert (row["arm"], row["suite"], row["task"]) == ("prism", "metaworld", "reach-v3")
    assert (row["initial_state"], row["steps"], row["success"]) == (1, 20, False)


def test_arms_and_conditions_begin_from_the_same_states(run, evaluate, tmp_path):
    starts = []
    for path in (run, make_run(tmp_path / "linear", "linear")):
        evaluations = evaluate(path, seeds=(3,), episodes=2, traces=True)
        evaluations.measure("none", 3, [key(1)])
        trace = np.load(trace_file(evaluations, "none", 3, 1))
        starts.append(trace["position"][0] - trace["displacement"][0])
        assert len(trace["largest_force"]) == 20
        assert evaluations.missing("none", 3) == [key(0)]
    np.testing.assert_array_equal(*starts)


def test_an_episode_without_the_trace_that_is_asked_for_is_missing(evaluate):
    evaluate(seeds=(6,), episodes=1).measure("none", 6, [key(0)])
    assert evaluate(seeds=(6,), episodes=1).missing("none", 6) == []
    traced = evaluate(seeds=(6,), episodes=1, traces=True)
    assert traced.missing("none", 6) == [key(0)]
    traced.measure("none", 6, [key(0)])
    assert traced.missing("none", 6) == []


def test_files_of_a_corrector_have_its_name_and_other_protocols_are_other_evaluations(
    run, evaluate, monkeypatch
):
    class Nothing:
        def reset(self, seed):
            pass

        def correct(self, action, physics):
            return np.zeros_like(action)

    monkeypatch.setattr("prism_motor.manipulation.episodes.find_corrector", lambda _: Nothing())
    asked = {"seeds": (5,), "episodes": 1, "corrector": "mcc-oracle"}
    outcomes = evaluate(**asked, linger=2).measure("none", 5, [key(0)])
    assert outcomes[key(0)].smoothness == 0
    assert (run / "evaluations" / "none+mcc-oracle-5.json").is_file()
    assert evaluate(**asked, linger=2).read("none", 5) == outcomes
    assert evaluate(**asked).read("none", 5) == {}
    assert evaluate(seeds=(5,), episodes=1).read("none", 5) == {}
    softer = HandlingEvaluation(**asked, linger=2, stiffness=50.0)
    name = DOMAINS["manipulation"].evaluation_name(softer, "none", 5)
    assert name == "none+mcc-oracle+kp50-5"
    with pytest.raises(ValueError, match="mcc-oracel"):
        evaluate(corrector="mcc-oracel")


def test_there_are_only_so_many_initial_states(evaluate):
    with pytest.raises(ValueError, match=r"has 50 fixed initial states.*got 51"):
        evaluate(episodes=51).measure("none", 1, [key(50)])
    with pytest.raises(ValueError, match="Unknown condition 'nominal'"):
        HandlingEvaluation(conditions=("nominal",))


def test_a_video_of_the_first_episode(run, evaluate):
    pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed")
    evaluations = evaluate(seeds=(9,), episodes=2, videos=1)
    evaluations.measure("none", 9, [key(0), key(1)])
    files, reach = EpisodeFiles(run, "none-9", 2), find_task("metaworld", "reach-v3")
    assert files.video(reach, 0).stat().st_size > 1000
    assert not files.video(reach, 1).exists()
    assert evaluations.missing("none", 9) == []
    files.video(reach, 0).unlink()
    assert evaluations.missing("none", 9) == [key(0)]


@pytest.mark.slow
def test_workers_find_what_this_process_finds(evaluate):
    asked = {"conditions": ("proprioception",), "seeds": (4,), "episodes": 2}
    expected = evaluate(**asked).measure("proprioception", 4, [key(0), key(1)])
    there = evaluate(**asked, workers=1, traces=True)
    found = there.measure("proprioception", 4, [key(0), key(1)], again=True)
    assert found == expected
    assert trace_file(there, "proprioception", 4, 1).is_file()
