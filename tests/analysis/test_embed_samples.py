"""Conditions that separate, matched samples, and ``prism embed``."""

import numpy as np
import pytest

from prism_motor.analysis.embed_samples import classify, match, project, shuffle_labels
from prism_motor.analysis.rollouts import Columns, Rollout

ROBOTS = np.tile(np.repeat(np.arange(20), 15), 3)
LABELS = np.repeat(np.arange(3), 300)


def noise(width=8, seed=0):
    return np.random.default_rng(seed).normal(size=(len(LABELS), width))


def test_separable_features_are_classified():
    features = noise()
    features[:, 2] += 8.0 * LABELS
    accuracy = classify(features, LABELS, ROBOTS, seed=0)
    assert accuracy.value > 0.99
    assert accuracy.interval.high > 0.99
    np.testing.assert_allclose(accuracy.confusion.sum(1), 1.0)
    assert np.diag(accuracy.confusion).min() > 0.97


def test_features_without_information_are_at_chance():
    accuracy = classify(noise(), LABELS, ROBOTS, seed=0)
    assert accuracy.value == pytest.approx(1 / 3, abs=0.06)
    assert accuracy.interval.contains(1 / 3)


def test_shuffled_labels_are_at_chance():
    features = noise()
    features[:, 2] += 8.0 * LABELS
    shuffled = shuffle_labels(LABELS, ROBOTS, seed=1)
    accuracy = classify(features, shuffled, ROBOTS, seed=0)
    assert accuracy.value == pytest.approx(1 / 3, abs=0.2)
    for robot in range(20):
        mine = robot == ROBOTS
        assert np.bincount(shuffled[mine]).tolist() == [15, 15, 15]
        for label in range(3):  # one new label for all samples of a robot under a condition
            assert len(set(shuffled[mine & (label == LABELS)])) == 1


def test_knowing_the_robot_does_not_help():
    """Robots with a signature and labels of their own: only a leak could help."""
    generator = np.random.default_rng(0)
    robots = np.repeat(np.arange(30), 20)
    labels = generator.integers(3, size=30)[robots]
    features = generator.normal(size=(30, 12))[robots] + 0.01 * generator.normal(size=(600, 12))
    assert classify(features, labels, robots, seed=0).value < 0.6
    leaky = classify(features, labels, np.arange(600), seed=0)  # every sample its own robot
    assert leaky.value > classify(features, labels, robots, seed=0).value + 0.2


def test_accuracy_repeats_and_components_reduce():
    features = noise(80)
    features[:, 70] += 5.0 * LABELS
    one, two = (classify(features, LABELS, ROBOTS, seed=3) for _ in "ab")
    assert (one.value, one.interval) == (two.value, two.interval)
    assert classify(features, LABELS, ROBOTS, seed=3, components=2).value < one.value


def rollout(steps, command=0.3, shift=0.0):
    """Two robots; ``steps`` says how long the first episode of each lasts, then one more step."""
    rows = [
        (robot, 2 * robot + number, step)
        for robot, length in enumerate(steps)
        for number, count in enumerate((length, 1))
        for step in range(count)
    ]
    robots, episodes, at = (np.array(column) for column in zip(*rows, strict=True))
    commands = np.full((len(rows), 3), 0.0)
    commands[robots == 0, 0] = 0.2
    commands[robots == 1, 0] = command
    values = np.stack([robots + shift, at], axis=1).astype(float)
    none = Columns((), np.zeros((len(rows), 0)))
    flags = np.zeros(len(rows), dtype=bool)
    return Rollout(
        about={}, environment=robots, episode=episodes, step=at, done=flags, fell=flags,
        observations=Columns(("robot", "step"), values), commands=Columns(tuple("xyw"), commands),
        actions=none, targets=none, quantities=none, features={"conditioner": 10 * values},
    )  # fmt: skip


def test_samples_are_matched_by_robot_and_step():
    samples = match([rollout([5, 6]), rollout([4, 9], shift=0.5)], "conditioner", frames=2)
    keys = list(zip(samples.robots.tolist(), samples.steps.tolist(), strict=True))
    assert keys == [(0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (1, 5)]
    for condition, shift in ((0, 0.0), (1, 0.5)):
        np.testing.assert_allclose(samples.observations[condition, :, 0], samples.robots + shift)
        np.testing.assert_allclose(samples.observations[condition, :, 1], samples.steps)
        np.testing.assert_allclose(
            samples.features[condition], 10 * samples.observations[condition]
        )


def test_other_commands_are_no_match():
    samples = match([rollout([5, 6]), rollout([5, 6], command=0.4)], "conditioner", frames=0)
    assert set(samples.robots.tolist()) == {0}


def test_projection_repeats_and_keeps_clusters_apart():
    features = np.random.default_rng(0).normal(size=(3, 20, 6))
    features += 30.0 * np.arange(3)[:, None, None]
    one, two = project(features, 7), project(features, 7)
    np.testing.assert_array_equal(one, two)
    assert one.shape == (3, 20, 2)
    centres = one.mean(1)
    spread = np.abs(one - centres[:, None]).mean()
    gaps = [np.linalg.norm(centres[a] - centres[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(gaps) > 2 * spread
