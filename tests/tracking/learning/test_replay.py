"""Replay: true successors, uniform draws, and resume without writing everything again."""

import json

import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.runs.layout import CheckpointError
from prism_motor.tracking.learning.replay import ReplayBuffer, replay_bytes, transition_fields
from prism_motor.tracking.learning.replay_files import ReplayFiles
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


@pytest.mark.parametrize(("before", "after"), [(3, 4), (8, 8), (11, 6), (25, 30), (47, 3)])
def test_resume_is_exact_also_around_the_ring(tmp_path, before, after):
    first = ReplayBuffer(12, 3, SIZES, seed=4)
    fill(first, before)
    files = ReplayFiles(tmp_path, 4)
    tensors, plain = files.save(first)
    second = ReplayBuffer(12, 3, SIZES, seed=99)
    again = ReplayFiles(tmp_path, 4)
    again.load(second, tensors, plain)
    for replay in (first, second):
        fill(replay, after, start=before)
    for _ in range(3):
        one, other = first.sample(200), second.sample(200)
        assert all(torch.equal(one[name], other[name]) for name in one)
    # What both write next is the same, too.
    saved, continued = files.save(first), again.save(second)
    assert saved[1] == continued[1]
    assert all(torch.equal(saved[0][name], continued[0][name]) for name in saved[0])


def test_rows_are_written_once_and_the_tail_is_short(tmp_path):
    folder = tmp_path / "replay"
    replay, files = ReplayBuffer(40, 2, SIZES), ReplayFiles(folder, 8)
    states, written = [], {}
    for i in range(12):
        fill(replay, 5, start=5 * i)
        tensors, plain = files.save(replay)
        states.append(plain)
        assert len(tensors["tail.ends"]) < 8
        for file in folder.glob("*"):
            stamp = file.stat().st_mtime_ns
            assert written.setdefault(file.name, stamp) == stamp  # never written again
    assert len(written) == 60 // 8
    # The oldest of three is kept for its policy alone.
    for i, one in enumerate(states[-8:-7] + states[-2:]):
        state = tmp_path / "checkpoints" / str(i) / "state.json"
        state.parent.mkdir(parents=True)
        state.write_text(json.dumps({"replay": one}))
    whole = state.read_text()
    state.write_text(whole[:-9])
    files.prune(tmp_path)  # a damaged checkpoint may need any of them
    assert {file.name for file in folder.iterdir()} == set(written)
    state.write_text(whole)
    files.prune(tmp_path)
    kept = {file.name for file in folder.iterdir()}
    assert kept == {one["file"] for plain in states[-2:] for one in plain["segments"]}
    assert len(kept) < len(written)
    ReplayFiles(folder, 8).load(ReplayBuffer(40, 2, SIZES), tensors, plain)


def test_a_run_that_saves_late_writes_only_what_is_left(tmp_path):
    replay, files = ReplayBuffer(10, 2, SIZES), ReplayFiles(tmp_path, 4)
    fill(replay, 95)
    _, plain = files.save(replay)
    assert [one["first"] for one in plain["segments"]] == [85, 89]
    assert plain["tail"] == 93


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_damage_is_named(tmp_path, damage):
    replay, files = ReplayBuffer(12, 2, SIZES), ReplayFiles(tmp_path, 4)
    fill(replay, 9)
    tensors, plain = files.save(replay)
    victim = tmp_path / plain["segments"][1]["file"]
    if damage == "missing":
        victim.unlink()
    else:
        data = bytearray(victim.read_bytes())
        data[-1] ^= 1
        victim.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match=r"rows-000000004-000000008-.*missing or changed"):
        files.load(ReplayBuffer(12, 2, SIZES), tensors, plain)
    with pytest.raises(CheckpointError, match="capacity 12, this run's has 13"):
        files.load(ReplayBuffer(13, 2, SIZES), tensors, plain)
