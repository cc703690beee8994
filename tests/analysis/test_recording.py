from dataclasses import replace

import numpy as np
import pytest

from prism_motor.analysis.recording import CommandScript, record
from prism_motor.analysis.rollouts import Columns, Rollout
from prism_motor.runs import RunError


@pytest.fixture(scope="module")
def policy(make_policy):
    return make_policy("prism")


@pytest.fixture(scope="module")
def rollout(policy):
    return record(policy, policy.config.task, "nominal", seed=5, envs=3, steps=60, run="a-run")


def following(rollout):
    """Rows that have a next row in the same episode."""
    return np.flatnonzero(rollout.episode[:-1] == rollout.episode[1:])


def test_rows_are_sorted_and_every_column_has_a_name(rollout):
    assert len(rollout) == 180
    assert set(rollout.environment) == {0, 1, 2}
    rows = following(rollout)
    np.testing.assert_array_equal(rollout.step[rows + 1], rollout.step[rows] + 1)
    for columns in (rollout.observations, rollout.actions, rollout.targets, rollout.quantities):
        assert columns.values.shape == (180, len(set(columns.names)))
    assert rollout.observations.values.dtype == np.float32
    with pytest.raises(KeyError, match="slip_velocity"):
        rollout.quantities["slip"]


def test_quantities_of_a_row_are_those_of_the_next_observation(rollout):
    rows = following(rollout)
    for quantity, seen in (("roll", "roll[t]"), ("pitch", "pitch[t]"), ("yaw_rate", "gyro_z[t]")):
        after = rollout.observations[seen][rows + 1]
        np.testing.assert_array_equal(rollout.quantities[quantity][rows], after)
        assert not np.array_equal(rollout.observations[seen][rows], after)


def test_commands_are_those_of_the_observation(rollout):
    forward = 2.0 * rollout.commands["command_forward"]
    np.testing.assert_allclose(rollout.observations["command_forward[t]"], forward)


def test_targets_are_reference_plus_scaled_action(policy, rollout):
    rows = following(rollout)
    applied = rollout.observations["action_front_left_knee[t]"][rows + 1]
    np.testing.assert_allclose(applied, rollout.actions["action_front_left_knee"][rows], atol=1e-6)
    first = rollout.step == 0
    pose = -1.5  # a gait begins at the default pose
    expected = pose + policy.config.task.actions.scale * rollout.actions.values[first, 2]
    np.testing.assert_allclose(rollout.targets["target_front_left_knee"][first], expected)


def test_same_seed_same_rollout_whatever_the_threads(policy, rollout):
    options = {"envs": 3, "steps": 60}
    again = record(policy, policy.config.task, "nominal", seed=5, threads=2, **options)
    np.testing.assert_array_equal(again.quantities.values, rollout.quantities.values)
    np.testing.assert_array_equal(again.features["polynomial"], rollout.features["polynomial"])
    other = record(policy, policy.config.task, "nominal", seed=6, **options)
    assert not np.array_equal(other.observations.values, rollout.observations.values)


def test_round_trip(rollout, tmp_path):
    loaded = Rollout.load(rollout.save(tmp_path / "deep" / "rollout.npz"))
    assert loaded.about == rollout.about
    assert loaded.about["run"] == "a-run"
    assert len(loaded.about["policy_sha256"]) == 64
    for name, value in vars(rollout).items():
        if isinstance(value, Columns):
            assert getattr(loaded, name).names == value.names
            np.testing.assert_array_equal(getattr(loaded, name).values, value.values)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(loaded, name), value)
    assert list(loaded.features) == list(rollout.features)
    for name, values in rollout.features.items():
        np.testing.assert_array_equal(loaded.features[name], values)


def test_old_files_without_net_power_get_it_from_the_signed_one(rollout, tmp_path):
    read = rollout.quantities
    kept = [i for i, name in enumerate(read.names) if name != "joint_power_net"]
    old = Columns(tuple(read.names[i] for i in kept), read.values[:, kept])
    loaded = Rollout.load(replace(rollout, quantities=old).save(tmp_path / "old.npz"))
    np.testing.assert_array_equal(loaded.quantities["joint_power_net"], read["joint_power_net"])
    np.testing.assert_array_equal(loaded.quantities["roll"], read["roll"])


def test_files_that_are_no_rollouts(rollout, tmp_path):
    with pytest.raises(RunError, match="There is no rollout"):
        Rollout.load(tmp_path / "missing.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(RunError, match="is not a rollout"):
        Rollout.load(tmp_path / "text.npz")
    file = rollout.save(tmp_path / "cut.npz")
    file.write_bytes(file.read_bytes()[:-3000])
    with pytest.raises(RunError, match="is not a rollout"):
        Rollout.load(file)


def test_whole_episodes_end_with_done(make_policy):
    policy = make_policy("mlp", "laptop")  # untrained: it falls soon
    rollout = record(
        policy, policy.config.task, "nominal", seed=1, envs=3, steps=150, features=False
    )
    assert len(set(rollout.episode)) >= 6
    for episode in set(rollout.episode):
        rows = rollout.episode == episode
        robot = rollout.environment == rollout.environment[rows][0]
        cut = episode == rollout.episode[robot].max()  # the recording ends before it
        assert rollout.step[rows].tolist() == list(range(rows.sum()))
        assert not rollout.done[rows][:-1].any()
        assert rollout.done[rows][-1] or cut
    np.testing.assert_array_equal(rollout.fell, rollout.done)
    assert rollout.features == {}


def test_script_is_followed_to_the_step(policy):
    script = CommandScript(((0, 0.1, 0.0, 0.2), (0.3, 0.4, -0.1, 0.0)), seconds=0.6)
    rollout = record(policy, policy.config.task, seed=1, envs=2, script=script, features=False)
    assert len(rollout) == 2 * 30
    early = rollout.step < 15
    np.testing.assert_allclose(rollout.commands.values[early], [[0.1, 0.0, 0.2]] * 30, rtol=1e-6)
    np.testing.assert_allclose(rollout.commands.values[~early], [[0.4, -0.1, 0.0]] * 30, rtol=1e-6)
    assert rollout.about["script"]["seconds"] == 0.6


@pytest.mark.parametrize(
    "points", [(), ((0.5, 0, 0, 0),), ((0, 0, 0, 0), (0, 1, 0, 0)), ((0, 0, 0, 0), (2.0, 1, 0, 0))]
)
def test_scripts_without_sense_are_refused(points):
    with pytest.raises(ValueError, match="times must start at 0"):
        CommandScript(points, seconds=2.0)


def test_requests_without_sense_are_refused(policy):
    task = policy.config.task
    with pytest.raises(ValueError, match="give steps, or a script"):
        record(policy, task, seed=1, envs=1)
    with pytest.raises(ValueError, match="steps must be at least 1"):
        record(policy, task, seed=1, envs=1, steps=0)
    with pytest.raises(ValueError, match="Unknown condition"):
        record(policy, task, "windy", seed=1, envs=1, steps=3)
