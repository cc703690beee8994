"""Files of a replay buffer: resume is exact, and nothing is written twice."""

import json

import pytest
import torch

from prism_motor.runs.layout import CheckpointError
from prism_motor.tracking.learning.replay import ReplayBuffer
from prism_motor.train.replay_files import ReplayFiles
from tests.tracking.learning.test_replay import SIZES, fill


@pytest.mark.parametrize(("before", "after"), [(3, 4), (8, 8), (11, 6), (25, 30), (47, 3)])
def test_resume_is_exact_also_around_the_ring(tmp_path, before, after):
    first = ReplayBuffer(12, 3, SIZES, seed=4)
    fill(first, before)
    files = ReplayFiles(tmp_path, 4)
    tensors, plain = files.save(first)
    second = ReplayBuffer(12, 3, SIZES, seed=99)
    again = ReplayFiles(tmp_path, 4)
    again.load(second, tensors, plain)
    second.generator.set_state(first.generator.get_state())
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
