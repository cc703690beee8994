import json

import numpy as np
import pytest
import torch

from prism_motor.analysis.probe.contact import (
    CONTACT,
    TARGETS,
    ContactProbeConfig,
    count_work,
    cut_contact_windows,
    probe_contact,
    read_policy,
    untrained_policy,
)
from prism_motor.analysis.probe.probes import ANY_ARM, ProbeSubjects
from prism_motor.analysis.probe.summary import collect_gains, collect_rows
from prism_motor.analysis.subjects import load_same_task
from prism_motor.cli import main
from prism_motor.manipulation.contact import ContactTrace


def make_trace(force, seed=0):
    force = np.asarray(force, float)
    displacement = np.random.default_rng(seed).normal(size=(len(force), 3))
    return ContactTrace(
        control_seconds=0.05,
        actions=np.zeros((len(force), 7)),
        position=displacement.cumsum(0),
        displacement=displacement,
        velocity=displacement / 0.05,
        force=np.zeros((len(force), 3)),
        largest_force=force,
    )


FORCE = np.r_[np.zeros(20), [4.0, 7.0, 30.0, 2.0], np.zeros(6)]
STATES = np.arange(60.0, dtype=np.float32).reshape(30, 2)


def test_windows_begin_eight_steps_before_first_contact_and_end_in_the_episode():
    windows = cut_contact_windows(make_trace(FORCE), STATES, steps=2, horizon=5)
    # First contact is row 21, the last full future begins at row 25.
    np.testing.assert_array_equal(windows.observations[:, 2], 2 * np.arange(13, 26))
    assert windows.episodes == 1
    assert set(windows.unit) == {0}


def test_targets_are_of_the_next_states_alone():
    trace = make_trace(FORCE)
    windows = cut_contact_windows(trace, STATES, steps=2, horizon=4)
    for k, t in enumerate(range(13, 27)):
        future = slice(t, t + 4)  # row t is what came of the action at t: the state t + 1
        length = np.linalg.norm(trace.displacement[future], axis=1)
        impulse = np.log(1 + FORCE[future].sum())
        assert windows.targets[k] == pytest.approx([impulse, (FORCE[future] * length).mean()])
    changed = FORCE.copy()
    changed[:18] = 3.0  # the past of every window from 18 on, below the threshold
    after = cut_contact_windows(make_trace(changed), STATES, steps=2, horizon=4)
    np.testing.assert_array_equal(windows.targets[5:], after.targets[5:])


def test_histories_are_those_that_the_policy_saw():
    windows = cut_contact_windows(make_trace(FORCE), STATES, steps=3, horizon=5)
    np.testing.assert_array_equal(windows.observations[0], STATES[11:14].reshape(-1))
    early = cut_contact_windows(make_trace(np.full(8, 9.0)), STATES[:8], steps=3, horizon=5)
    np.testing.assert_array_equal(early.observations[0], STATES[[0, 0, 0]].reshape(-1))


def test_episodes_without_contact_or_future_have_no_windows():
    for force in (np.zeros(30), np.r_[np.zeros(2), 9.0]):
        windows = cut_contact_windows(make_trace(force), STATES[: len(force)], 2, 5)
        assert (len(windows), windows.episodes) == (0, 0)


@pytest.fixture(scope="module")
def subjects(make_pusher):
    return load_same_task([make_pusher("linear"), make_pusher("prism"), make_pusher("mlp")])[0]


def test_features_are_those_of_the_conditioner(subjects):
    linear, prism, mlp = (one.policy for one in subjects)
    steps, size = prism.config.network.observation_steps, prism.config.task.state
    seen = np.random.default_rng(0).random((6, steps * size), dtype=np.float32)
    found = read_policy(prism, seen)
    assert list(found) == ["raw", "first_order", "polynomial", "conditioner"]
    # Normalised by hand: states between the demonstrations' extremes to -1 .. 1.
    from prism_motor.runs import Run

    tensors = Run.open(subjects[1].path).load().tensors
    low = tensors["statistics/observation.state/min"]
    high = tensors["statistics/observation.state/max"]
    state = 2 * (torch.from_numpy(seen).reshape(6, steps, size) - low) / (high - low) - 1
    conditioner = prism.network.diffusion.conditioner
    with torch.inference_mode():
        inputs = conditioner.input_norm(state.flatten(1))
        first, second = conditioner.interaction.factors(inputs)
        product = first * (1 + conditioner.interaction.gate * second)
        output = conditioner(state.flatten(1))
    np.testing.assert_allclose(found["first_order"], first, atol=1e-5)
    np.testing.assert_allclose(found["polynomial"], product, atol=1e-5)
    np.testing.assert_allclose(found["conditioner"], output, atol=1e-5)
    np.testing.assert_array_equal(found["raw"], seen)
    plain = read_policy(linear, seen)
    assert list(plain) == ["raw", "conditioner"]
    np.testing.assert_allclose(plain["conditioner"], state.flatten(1), atol=1e-5)
    assert list(read_policy(mlp, seen)) == ["raw", "latent_1", "latent_2", "conditioner"]


def test_untrained_networks_have_other_weights(subjects):
    policy = subjects[1].policy
    with torch.no_grad():
        policy.network.diffusion.conditioner.interaction.gate.fill_(0.7)
    other = untrained_policy(policy)
    assert not torch.equal(
        other.network.diffusion.conditioner.interaction.gate,
        policy.network.diffusion.conditioner.interaction.gate,
    )


@pytest.fixture(scope="module")
def study(subjects, short_scene):
    config = ContactProbeConfig(episodes=6, horizon=3)
    reports = []
    who = ProbeSubjects(subjects[:2], subjects[:2])
    found = probe_contact(who, config, short_scene, lambda: reports.append(1))
    assert len(reports) == count_work(who, config)
    return found


def test_all_arms_are_probed_on_the_same_windows(study):
    assert study.scope is CONTACT
    assert study.units == study.episodes == 6
    assert [p.features for p in study.probes if p.arm == ANY_ARM] == ["raw"]
    assert len({tuple(p.sums[:, 0, 0]) for p in study.probes}) == 1
    titles = [one.title for one in collect_gains(collect_rows(study), across=True)]
    assert titles == [
        "prism: polynomial vs first_order",
        "prism conditioner vs linear conditioner",
    ]


def test_command_probes_what_the_run_is(make_pusher, tmp_path, capsys):
    runs = [str(make_pusher("prism")), str(make_pusher("linear"))]
    with pytest.raises(SystemExit):
        main(["probe", *runs, "--envs", "5", "--out", str(tmp_path)])
    assert "Unrecognized options: --envs" in capsys.readouterr().err


def test_a_walking_run_has_no_episodes_to_count(make_run, capsys):
    with pytest.raises(SystemExit):
        main(["probe", str(make_run("mlp")), "--episodes", "5"])
    assert "Unrecognized options: --episodes" in capsys.readouterr().err


@pytest.mark.slow
def test_command_writes_what_it_says(make_pusher, tmp_path, capsys):
    runs = [str(make_pusher("linear")), str(make_pusher("prism"))]
    main(["probe", *runs, "--episodes", "6", "--out", str(tmp_path), "--untrained"])
    said = capsys.readouterr().out
    assert "windows of one episode sit on both sides" in said
    data = json.loads((tmp_path / "probe.json").read_text())
    assert data["recorded"] == runs
    assert data["episodes"] == 6
    assert set(data["probes"][0]["targets"]) == {target.name for target in TARGETS}
    assert any(row[0] == "prism (untrained)" for row in data["table"]["rows"])
    assert "from random resets" in data["caption"]
    assert (tmp_path / "probe.png").read_bytes()[1:4] == b"PNG"
