"""Replay: true successors and uniform draws."""

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.learning.replay import ReplayBuffer, replay_bytes, transition_fields
from prism_motor.tracking.observations import Layout

SIZES = {"observation": 3, "action": 1}


def fill(replay, rows, start=0, every=7):
    """Add rows whose observation is (episode, clock, env); env e's episodes end every few steps."""
    for t in range(start, start + rows):
        envs = torch.arange(replay.envs)
        age = t + 3 * envs
        observation = torch.stack([age // every, age % every, envs], dim=1).float()
        action = (10.0 * t + envs).unsqueeze(1)
        replay.add(ends=(age % every) == every - 1, observation=observation, action=action)


@pytest.mark.parametrize("rows", [5, 12, 13, 40])
def test_successors_are_of_the_same_episode_one_step_later(rows):
    replay = ReplayBuffer(12, 4, SIZES, seed=1)
    fill(replay, rows)
    batch = replay.sample(5000)
    now, later = batch["observation"], batch["next_observation"]
    assert torch.equal(now[:, 0], later[:, 0])
    assert torch.equal(now[:, 1] + 1, later[:, 1])
    assert torch.equal(now[:, 2], later[:, 2])
    # The action is that of the row: its time is the one of the observation.
    time = 7 * now[:, 0] + now[:, 1] - 3 * now[:, 2]
    assert torch.equal(batch["action"][:, 0], 10 * time + now[:, 2])
    assert time.min() >= rows - min(rows, 12)
    assert time.max() == rows - 2  # the newest row has no successor yet


def test_draws_are_uniform_over_all_transitions():
    replay = ReplayBuffer(10, 3, SIZES, seed=2)
    fill(replay, 17)
    drawn = torch.cat([replay.sample(10_000)["action"][:, 0] for _ in range(6)])
    keys, counts = drawn.unique(return_counts=True)
    valid = [10.0 * t + e for t in range(7, 16) for e in range(3) if (t + 3 * e) % 7 != 6]
    assert keys.tolist() == sorted(valid)
    expected = len(drawn) / len(valid)
    assert ((counts - expected).abs() < 5 * expected**0.5).all()


def test_what_cannot_be_drawn_is_said():
    replay = ReplayBuffer(10, 2, SIZES)
    with pytest.raises(InputError, match="0 rows"):
        replay.sample(1)
    fill(replay, 1)
    with pytest.raises(InputError, match="1 rows"):
        replay.sample(1)
    fill(replay, 5, every=1)
    replay.fields["ends"][:] = True
    with pytest.raises(InputError, match="almost every row ends"):
        replay.sample(1)
    with pytest.raises(InputError, match="fields observation, action"):
        replay.add(ends=torch.zeros(2, dtype=torch.bool), observation=torch.zeros(2, 3))


def test_memory_is_known_before():
    sizes = transition_fields(Layout(), 256, 6, physics=71)
    replay = ReplayBuffer(3, 2, sizes)
    used = sum(one.numel() * one.element_size() for one in replay.fields.values())
    assert replay_bytes(3, 2, sizes) == used
    assert 13e9 < replay_bytes(5000, 512, sizes) < 14e9
    with pytest.raises(InputError, match=r"needs 4\d+\.\d GB"):
        ReplayBuffer(10**8, 10**6, {"observation": 10**6})
