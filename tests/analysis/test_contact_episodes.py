import numpy as np
import pytest

from prism_motor.analysis.contact_episodes import (
    ContactEpisode,
    ContactRecord,
    aligned,
    measure,
    typical,
)
from prism_motor.analysis.contact_figure import crop
from prism_motor.manipulation.contact import ContactTrace, diagnose
from prism_motor.manipulation.rollout import HandlingOutcome

DT = 0.05


def make_episode(force, success=True, state=0):
    force = np.asarray(force, float)
    velocity = np.ones((len(force), 3))
    trace = ContactTrace(
        control_seconds=DT,
        actions=np.zeros((len(force), 7)),
        position=(velocity * DT).cumsum(0),
        displacement=velocity * DT,
        velocity=velocity,
        force=np.zeros((len(force), 3)),
        largest_force=force,
    )
    outcome = HandlingOutcome(success, len(force), 0.0, 0.0, 0.0)
    return ContactEpisode(state, outcome, trace, diagnose(trace))


def bump(height, at=10, steps=30):
    return np.where((np.arange(steps) >= at) & (np.arange(steps) < at + 3), height, 0.0)


def test_alignment_puts_all_first_contacts_at_one_place():
    record = ContactRecord(
        "a", 1, {}, tuple(make_episode(bump(h, at)) for h, at in ((10, 9), (30, 20)))
    )
    found = aligned([record], "largest_force")
    np.testing.assert_array_equal(found[:, 8:11], [[10] * 3, [30] * 3])
    assert np.nanmax(found[:, :8]) == 0


def test_episodes_without_contact_count_in_no_mean():
    record = ContactRecord("a", 1, {}, (make_episode(bump(10)), make_episode(np.zeros(30))))
    found = measure([record], "peak_force", successful=False)
    assert found is not None
    assert (found.value, found.low) == (10.0, None)
    empty = ContactRecord("a", 1, {}, (make_episode(np.zeros(30)),))
    assert measure([empty], "peak_force", successful=False) is None
    assert len(aligned([empty], "speed")) == 0


def test_successful_episodes_alone():
    episodes = (make_episode(bump(10)), make_episode(bump(50), success=False))
    record = ContactRecord("a", 1, {}, episodes)
    every = measure([record], "peak_force", successful=False)
    solved = measure([record], "peak_force", successful=True)
    assert every is not None
    assert solved is not None
    assert (every.value, solved.value) == (30.0, 10.0)
    assert every.low is not None
    assert every.low < 30 < every.high


def test_training_seeds_are_averaged_before_their_spread_is_taken():
    records = [
        ContactRecord("a", seed, {}, (make_episode(bump(h)), make_episode(bump(h + 4))))
        for seed, h in ((1, 10), (2, 20))
    ]
    found = measure(records, "peak_force", successful=False)
    assert found is not None
    assert found.value == 17.0
    assert found.high is not None
    assert found.high - found.value == pytest.approx(np.std([12, 22], ddof=1))
    assert found.write(1) == "17.0 ± 7.1"


def test_the_typical_episode_has_the_median_force_of_the_successful_ones():
    heights = ((10, True), (99, False), (30, True), (20, True))
    episodes = [make_episode(bump(h), ok, i) for i, (h, ok) in enumerate(heights)]
    found = typical(episodes)
    assert found is not None
    assert found.initial_state == 3
    failed = typical(episodes[1:2])
    assert failed is not None
    assert typical([make_episode(np.zeros(5))]) is None


def test_pictures_are_cropped_to_what_moves():
    still = np.full((100, 100, 3), 90, np.uint8)
    moved = still.copy()
    moved[70:90, 10:30] = 200
    assert crop([still, moved, still]) == (slice(50, 100), slice(0, 50))
    moved[5:95] = 200
    assert crop([still, moved]) == (slice(0, 100), slice(0, 100))
    assert crop([still, still]) == (slice(0, 100), slice(0, 100))
