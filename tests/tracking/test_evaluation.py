"""Tracking pieces of clips: how they are cut, run and measured; conditions and baselines."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from prism_motor._checks import EvaluationError, InputError
from prism_motor.tracking.conditions import CONDITIONS, find_condition
from prism_motor.tracking.domain import _TrackingEvaluator
from prism_motor.tracking.evaluation import (
    Piece,
    TrackedPiece,
    baselines,
    cut_pieces,
    find_pieces,
    measure,
    policy_controller,
    track,
)
from prism_motor.tracking.policy import TrackingPolicy
from prism_motor.tracking.presets import make_config
from prism_motor.tracking.references import References
from prism_motor.tracking.task import NOMINAL, TrackingRandomisation
from tests.tracking.robots import cut, make_motion, make_task, replace, short_references


def test_pieces_cover_every_frame_once():
    motions = [make_motion(cut(name, frames), 50.0) for name, frames in LENGTHS.items()]
    references = References(motions)
    pieces = cut_pieces(references, 2.0, 0.02)
    covered = [f for piece in pieces for f in range(piece.first, piece.first + piece.frames)]
    assert covered == list(range(len(references.qpos)))
    # A rest of less than a second joins the piece before it.
    assert pieces == [
        Piece("squat", 0, 0, 100),
        Piece("squat", 1, 100, 149),
        Piece("wave", 0, 249, 100),
        Piece("wave", 1, 349, 50),
        Piece("twist", 0, 399, 30),
    ]
    assert find_pieces(pieces, [("wave", 1), ("squat", 0)]) == [pieces[3], pieces[0]]
    with pytest.raises(InputError, match=r"no piece 2 of a clip 'wave'"):
        find_pieces(pieces, [("wave", 2)])


LENGTHS = {"squat": 249, "wave": 150, "twist": 30}


def test_what_is_measured_of_a_perfect_track_and_of_a_shifted_one():
    references = short_references(40)
    piece = Piece("squat", 0, 5, 30)
    qpos = references.qpos[5:35].copy()
    still = np.zeros((30, 2, 3))
    touching = np.ones((30, 2), dtype=bool)
    perfect = TrackedPiece(piece, qpos, np.ones(30, dtype=bool), still, touching)
    found = measure(perfect, references, 0.02)
    assert found == {
        "seconds": pytest.approx(0.58), "stood": True, "upright": 1.0, "time_to_fall": 0.6,
        "emd": 0.0, "joint_distance": 0.0, "velocity_distance": 0.0, "proximity": 1.0,
        "root_drift": 0.0, "foot_slip": 0.0,
    }  # fmt: skip
    # The same poses in the opposite order: EMD does not see it, the joint distance does.
    reversed_ = replace(perfect, qpos=qpos[::-1].copy())
    assert measure(reversed_, references, 0.02)["emd"] == pytest.approx(0.0, abs=1e-9)
    assert measure(reversed_, references, 0.02)["joint_distance"] > 10
    # Fallen after ten frames, with all joints 0.1 rad off: EMD says nothing about the fall.
    upright = np.arange(30) < 10
    off = qpos.copy()
    off[:, 7:] += 0.1
    fallen = replace(
        perfect, qpos=off, upright=upright, foot_velocity=still + np.array([0.3, 0.4, 9.0])
    )
    found = measure(fallen, references, 0.02)
    assert found["emd"] <= 0.1 * 29**0.5 + 1e-9
    assert (found["stood"], found["upright"]) == (False, pytest.approx(1 / 3))
    assert found["time_to_fall"] == pytest.approx(0.2)
    assert found["joint_distance"] == pytest.approx(100)
    assert found["foot_slip"] == pytest.approx(0.5)


@pytest.fixture(scope="module")
def world():
    references = short_references(30, names=("squat", "wave", "twist"))
    return references, make_task(references), cut_pieces(references, 10.0, 0.02)


def test_a_robot_begins_in_the_first_frame_and_acts_until_the_last(world):
    references, task, _ = world
    pieces = [Piece("squat", 0, 0, 12), Piece("wave", 0, 32, 20)]
    asked = []

    def control(observations, frames):
        asked.append(frames.tolist())
        return torch.zeros(len(observations), 29)

    tracked = track(control, task, references, pieces)
    # The first robot rests after its 11 steps; it is still asked, and nothing comes of it.
    assert asked == [[min(step, 10), 32 + step] for step in range(19)]
    for one, piece in zip(tracked, pieces, strict=True):
        assert one.piece is piece
        assert one.qpos.shape == (piece.frames, 36)
        np.testing.assert_array_equal(one.qpos[0], references.qpos[piece.first])
        assert one.upright[0]
        assert one.contact.shape == (piece.frames, 2)
    assert not np.allclose(tracked[0].qpos[-1], references.qpos[11])


def test_drives_that_aim_ahead_follow_better_than_held_poses(world):
    references, task, pieces = world
    controllers = baselines(references, torch.tensor(task.units))
    assert list(controllers) == ["open_loop", "default_pose", "mean_pose"]
    found = {
        name: [measure(one, references, 0.02) for one in track(control, task, references, pieces)]
        for name, control in controllers.items()
    }
    emd = {name: np.mean([one["emd"] for one in rows]) for name, rows in found.items()}
    assert emd["open_loop"] < emd["mean_pose"] < emd["default_pose"]
    assert all(one["stood"] for one in found["open_loop"])  # nobody falls in half a second


def test_conditions_change_friction_and_masses_and_nothing_else(world, monkeypatch):
    references, task, pieces = world
    seen = {}
    from prism_motor.tracking import evaluation

    class Spy(evaluation.TrackingEnv):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            seen[name] = self

    monkeypatch.setattr(evaluation, "TrackingEnv", Spy)
    task = replace(task, randomisation=TrackingRandomisation())
    for name in CONDITIONS:
        control = baselines(references, torch.tensor(task.units))["open_loop"]
        track(control, task, references, [pieces[0]._replace(frames=3)], condition=name)
    mass = {name: env.engine._models[0].body_mass.sum() for name, env in seen.items()}
    friction = {name: float(env.engine.friction[0]) for name, env in seen.items()}
    assert mass["nominal"] == mass["low-friction"] == pytest.approx(33.34, abs=0.01)
    assert mass["payload"] == pytest.approx(1.15 * mass["nominal"])
    assert (friction["nominal"], friction["low-friction"], friction["payload"]) == (1.0, 0.2, 1.0)
    for name in ("nominal", "low-friction", "payload"):
        assert not seen[name].task.randomisation.is_random
        assert seen[name].offsets.count_nonzero() == 0
    assert seen["training"].task.randomisation == TrackingRandomisation()
    assert 0.5 < friction["training"] < 1.25
    with pytest.raises(InputError, match=r"Unknown condition 'icy'"):
        find_condition("icy", NOMINAL)


def test_what_is_random_says_so():
    assert not NOMINAL.is_random
    assert not replace(NOMINAL, mass_scale=1.15, friction=(0.2, 0.2)).is_random
    for name, value in (
        ("friction", (0.2, 0.3)), ("mass", (0.9, 1.0)), ("center_of_mass", 0.1),
        ("joint_offset", 0.1), ("noise", 0.1),
    ):  # fmt: skip
        assert replace(NOMINAL, **{name: value}).is_random
    assert replace(NOMINAL, push_seconds=(1,), push_rate=0.1).is_random
    assert not replace(NOMINAL, push_seconds=(1,)).is_random


@pytest.fixture
def evaluate(world, monkeypatch):
    """Track all pieces with a random policy, by condition and settings."""
    references, task, _ = world
    from prism_motor.tracking import references as module

    monkeypatch.setattr(module, "load_references", lambda task: references)
    config = make_config("tiny", "prism")
    torch.manual_seed(0)
    policy = TrackingPolicy(config.networks, task.layout).eval()
    random = replace(task, randomisation=TrackingRandomisation())
    config = replace(config, task=random)

    def run(condition="nominal", keys=None, **settings):
        from prism_motor.tracking.config import TrackingEvaluation

        evaluation = TrackingEvaluation(conditions=(condition,), piece=0.4, **settings)
        evaluator = _TrackingEvaluator(policy, config, evaluation)
        keys = keys or [(piece.clip, piece.number) for piece in evaluator._pieces]
        found = []
        steps = []
        evaluator.run(condition, 101, keys, lambda *e: found.extend(e), lambda: steps.append(1))
        assert len(steps) == evaluator.steps(keys)
        return {(one.clip, one.piece): asdict(one) for one in found}

    return run


@pytest.mark.parametrize("condition", ["nominal", "training"])
def test_the_result_does_not_depend_on_what_is_tracked_at_the_same_time(evaluate, condition):
    whole = evaluate(condition)
    assert len(whole) == 3
    for settings in ({"envs": 1}, {"envs": 2}, {"threads": 2}):
        assert evaluate(condition, **settings) == whole
    some = evaluate(condition, keys=[("twist", 0), ("squat", 0)])
    assert some == {key: whole[key] for key in (("squat", 0), ("twist", 0))}


def test_an_action_that_is_not_finite_names_the_clip(world):
    references, task, pieces = world

    def control(observations, frames):
        return torch.full((len(observations), 29), float("nan"))

    with pytest.raises(EvaluationError, match=r"In frame 1 of squat an action is not finite"):
        track(control, task, references, pieces)


def test_a_policy_is_prompted_with_the_next_frame(world):
    references, task, _ = world
    config = make_config("tiny", "mlp")
    policy = TrackingPolicy(config.networks, task.layout).eval()
    control = policy_controller(policy, references, window=1)
    seen = torch.randn(2, task.layout.size)
    with torch.inference_mode():
        found = control(seen, torch.tensor([4, 35]))
        coming = torch.cat([references.observations(task.layout, i) for i in (0, 1)])[[5, 36]]
        wanted = policy(seen, policy.encode(coming))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
