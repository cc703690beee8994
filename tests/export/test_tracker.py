"""The runner is as careful with a tracking policy as with one that walks."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from prism_motor.cli import main
from prism_motor.export import runner
from prism_motor.tracking.export import export_run
from tests.export.bound import read_contract
from tests.export.test_safety import Clock, stopped
from tests.tracking.tiny import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return export_run(make_run(tmp_path_factory.mktemp("tracking") / "run")).folder


@pytest.fixture(scope="module")
def export(folder):
    return runner.load_export(folder)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tracker(export, clock):
    return runner.Tracker(export.contract, export.session, clock)


@pytest.fixture
def clip(export):
    return export.clips["wave"]


@pytest.fixture
def reading(clip):
    return runner.read(*clip.start)


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ("dq", np.full(29, np.nan), "dq of left_hip_pitch is nan"),
        ("dq", np.full(29, 40.0), "dq of left_hip_pitch is 40"),
        ("q", np.full(29, 9.0), "q of left_hip_pitch is 9"),
        ("angular_velocity", np.array([0, 36.0, 0]), "angular_velocity of y is 36"),
        ("euler", np.array([0.0, np.inf, 0.0]), "euler of pitch is inf"),
        ("q", np.zeros(12), r"q must be 29 numbers, .* \(12,\)"),
    ],
)
def test_what_is_measured_must_be_believable(tracker, reading, clip, field, values, words):
    tracker.step(reading, clip.latent(0))
    stop = stopped(tracker, replace(reading, **{field: values}), clip.latent(1))
    with pytest.raises(runner.SafetyStop, match=f"at control step 1 .*{words}"):
        raise stop
    np.testing.assert_allclose(stop.targets, reading.q, atol=1e-12)
    again = stopped(tracker, reading, clip.latent(1))  # which would be fine
    assert str(again) == str(stop)
    tracker.reset()
    assert np.isfinite(tracker.step(reading, clip.latent(0))).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda z: z * 2, r"the latent is .* long; it must be"),
        (lambda z: 0 * z, r"the latent is 0 long"),
        (lambda z: z * np.nan, r"the latent of 0 is nan"),
        (lambda z: z[:-1], r"the latent must be \d+ numbers"),
        (lambda z: None, r"the latent must be \d+ numbers"),
    ],
)
def test_a_latent_must_be_one(tracker, reading, clip, change, words):
    with pytest.raises(runner.SafetyStop, match=words):
        tracker.step(reading, change(clip.latent(0)))


def test_a_policy_that_returns_nan_stops_the_robot(export, folder, reading, clip, capsys):
    session = export.session
    broken = SimpleNamespace(
        get_inputs=session.get_inputs,
        get_outputs=session.get_outputs,
        run=lambda names, feed: [np.full((1, 29), np.nan, np.float32)],
    )
    stop = runner.track(replace(export, session=broken), clip).stop
    assert "the policy's output of left_hip_pitch is nan" in str(stop)
    tracked = runner.track(replace(export, session=broken), clip)
    assert (len(tracked.actions), tracked.upright.sum(), len(tracked.qpos)) == (0, 1, 1)


def test_targets_stay_within_reach(export, reading, clip):
    session = export.session
    wild = SimpleNamespace(
        get_inputs=session.get_inputs,
        get_outputs=session.get_outputs,
        run=lambda names, feed: [np.full((1, 29), 1e9, np.float32)],
    )
    tracker = runner.Tracker(export.contract, wild, lambda: 0.0)
    targets = tracker.step(reading, clip.latent(0))
    np.testing.assert_array_equal(tracker.action, np.ones(29))
    pose, units = tracker.default_pose, np.array(export.contract["action"]["units"])
    np.testing.assert_allclose(targets, pose + units)


def test_a_late_step_holds(tracker, clock, reading, clip):
    tracker.step(reading, clip.latent(0))
    clock.now = 0.09
    np.testing.assert_array_equal(tracker.follow(), tracker.targets)
    assert tracker.stopped is None
    clock.now = 0.11
    np.testing.assert_allclose(tracker.follow(), reading.q, atol=1e-12)
    assert "the last control step was 0.11 s ago" in tracker.stopped
    assert np.isfinite(tracker.torques(reading.q, reading.dq)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(kind="flying"), "kind must be tracking.* it is flying"),
        (lambda c: c.pop("kind"), "has an unknown field|lacks"),
        (lambda c: c["observation"]["names"].pop(), "observation.size must be as many as .* 278"),
        (lambda c: c["observation"]["blocks"][3].update(first=62), r"blocks\[3\]\.first .* 61"),
        (lambda c: c["observation"]["blocks"][3].update(scale=-1), r"blocks\[3\]\.scale must be"),
        (lambda c: c["action"]["units"].pop(), r"action\.units must be 29 entries"),
        (lambda c: c["latent"].update(length=3.0), r"latent\.length must be the root of size"),
        (lambda c: c["clips"][1].update(name="stand"), "a name that no other clip has"),
        (lambda c: c["clips"][0].update(frames=1), r"clips\[0\]\.frames must be"),
        (lambda c: c["safety"].update(deadline=1e-3), "deadline must be at least"),
        (lambda c: c["upright"].pop("tilt"), r"lacks: upright\.tilt"),
        (lambda c: c["goal"].update(size=5), r"goal\.size must be"),
    ],
)
def test_contracts_that_do_not_fit(folder, change, words):
    contract = read_contract(folder)
    change(contract)
    with pytest.raises(runner.RunnerError, match=words):
        runner.check_contract(contract)


def test_a_contract_cannot_be_edited(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    contract = read_contract(copy)
    contract["action"]["units"][3] *= 1.1
    files = ("policy.onnx", "robot.xml", "backward.onnx", "clips.npz")
    bound = runner.bind(contract, *((copy / name).read_bytes() for name in files))
    (copy / "contract.json").write_text(json.dumps(bound))
    with pytest.raises(runner.RunnerError, match=r"was changed: action\.units\[3\] is not"):
        runner.load_export(copy)


def test_latents_carry_the_policy_they_are_for(folder, tmp_path):
    """Even with a binding of its own, a file of latents of another policy is refused."""
    contract = read_contract(folder)
    contract["provenance"]["policy_sha256"] = "0" * 64
    with pytest.raises(runner.RunnerError, match=r"latents of policy .*, not of 000000000000"):
        runner.parts.clips.read_clips(contract, folder / "clips.npz")
    (tmp_path / "clips.npz").write_bytes(b"no clips")
    with pytest.raises(runner.RunnerError, match="has no clips"):
        runner.parts.clips.read_clips(contract, tmp_path / "clips.npz")


def test_each_kind_has_its_controller(export, exports):
    walking = runner.load_export(exports("quadruped"))
    with pytest.raises(runner.RunnerError, match="for tracking: use Tracker"):
        runner.Controller(export.contract, export.session)
    with pytest.raises(runner.RunnerError, match="for walking: use Controller"):
        runner.Tracker(walking.contract, walking.session)


def test_a_walking_export_has_no_clips(exports, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["sim2sim", str(exports("quadruped")), "--clip", "wave"])
    assert caught.value.code == 2
    assert "--clip is for tracking" in capsys.readouterr().err
