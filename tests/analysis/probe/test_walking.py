import numpy as np
import pytest

from prism_motor.analysis.probe.probes import join_windows
from prism_motor.analysis.probe.walking import TARGETS, cut_windows
from prism_motor.analysis.quantities import TOTALS
from prism_motor.analysis.rollouts import Columns, Rollout

FRAMES, HEIGHT = 3, 0.78
JUMPING = ("command_forward[t]", "command_sideways[t]", "command_yaw[t]", "yaw[t]")


def make_rollout(lengths=(10, 12), seed=0):
    """Episodes of one robot each, upright, with random quantities."""
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    values = rng.uniform(0, 1, (rows, len(TOTALS)))
    values[:, TOTALS.index("base_height")] = HEIGHT
    values[:, [TOTALS.index("roll"), TOTALS.index("pitch")]] = 0.1
    episode = np.repeat(np.arange(len(lengths)), lengths)
    nothing = Columns((), np.zeros((rows, 0)))
    seen = np.concatenate([np.arange(rows)[:, None], np.zeros((rows, 4))], axis=1)
    return Rollout(
        about={"task": {"robot": "g1", "observations": {"actor_frames": FRAMES}}},
        environment=episode.copy(),
        episode=episode,
        step=np.concatenate([np.arange(n) for n in lengths]),
        done=np.zeros(rows, bool),
        fell=np.zeros(rows, bool),
        observations=Columns(("row", *JUMPING), seen),
        commands=nothing,
        actions=nothing,
        targets=nothing,
        quantities=Columns(TOTALS, values),
    )


def starts(rollout, horizon=4):
    return cut_windows(rollout, horizon).observations[:, 0].astype(int).tolist()


def put(rollout, name, row, value):
    rollout.quantities.values[row, TOTALS.index(name)] = value


def test_windows_begin_with_a_full_history_and_end_inside_the_episode():
    assert starts(make_rollout((10, 12))) == [*range(2, 7), *range(12, 19)]
    assert starts(make_rollout((3, 5)), horizon=4) == []


def test_targets_are_of_the_next_states_alone():
    rollout = make_rollout()
    horizon = 4
    windows = cut_windows(rollout, horizon)
    read = rollout.quantities
    for i, target in enumerate(TARGETS):
        for k, t in enumerate(starts(rollout, horizon)):
            # A row holds the state after its step: rows t..t+3 are the states t+1..t+4.
            future = read[target.quantity][t : t + horizon]
            expected = np.log(1 + future.sum()) if target.logarithm else future.mean()
            assert windows.targets[k, i] == pytest.approx(expected)


def test_the_present_and_the_past_do_not_matter():
    rollout, changed = make_rollout(), make_rollout()
    for target in TARGETS:
        changed.quantities.values[:5, TOTALS.index(target.quantity)] = 99.0
    first = starts(rollout).index(5)
    before, after = cut_windows(rollout, 4), cut_windows(changed, 4)
    np.testing.assert_array_equal(before.targets[first:], after.targets[first:])
    assert (before.targets[first - 1] != after.targets[first - 1]).all()


@pytest.mark.parametrize(("name", "value"), [("base_height", 0.5), ("roll", 0.4), ("pitch", -0.4)])
def test_only_upright_windows_count(name, value):
    rollout = make_rollout((20,))
    put(rollout, name, 9, value)  # the state at time 10
    # Its windows are those of t = 10 itself and those that reach it: t + 1 <= 10 <= t + 4.
    assert starts(rollout) == [t for t in range(2, 17) if not 6 <= t <= 10]


@pytest.mark.parametrize("name", JUMPING)
def test_windows_without_jumps_alone_count(name):
    rollout = make_rollout((20,))
    rollout.observations.values[9:, 1 + JUMPING.index(name)] = 3.5
    # The observation of t = 9 is new. It is in the history up to t = 10 and in the future from 6.
    assert starts(rollout) == [t for t in range(2, 17) if not 6 <= t <= 10]


def test_robots_of_different_rollouts_stay_apart():
    one, two = cut_windows(make_rollout((10, 12)), 4), cut_windows(make_rollout((9,)), 4)
    joined = join_windows([one, two])
    assert np.unique(joined.unit).tolist() == [0, 1, 2]
    assert joined.episodes == 3
    assert len(joined) == len(one) + len(two)


def test_horizon_must_be_positive():
    with pytest.raises(ValueError, match="at least 1 step"):
        cut_windows(make_rollout(), 0)
