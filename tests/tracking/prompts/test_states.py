"""States for prompts: drawn from the replay buffer, bound to weights, in a small file."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from prism_motor.domains import open_run
from prism_motor.runs import Run, RunError
from prism_motor.runs.checkpoints import Checkpoint, hash_weights
from prism_motor.runs.layout import PROMPTS, REPLAY
from prism_motor.tracking.learning.replay import ReplayBuffer
from prism_motor.tracking.prompts.states import (
    COUNT,
    draw_states,
    find_states,
    read_states,
    write_states,
)
from prism_motor.tracking.references import load_references
from prism_motor.train.replay_files import ReplayFiles
from prism_motor.train.ship import ship
from tests.tracking.runs import train_tiny


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_tiny(tmp_path_factory.mktemp("prompts"))


@pytest.fixture
def run(trained, tmp_path):
    return Run.open(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture(scope="module")
def references(trained):
    return load_references(open_run(trained)[2].task)


def weights_of(run):
    return hash_weights(run.weights("policy."))


def buffer_rows(run):
    """All rows of the newest checkpoint's buffer, read independently."""
    checkpoint = run.load()
    plain = checkpoint.state["replay"]
    rows = {
        plain["tail"] + i: row for i, row in enumerate(checkpoint.tensors["replay.tail.physics"])
    }
    for segment in plain["segments"]:
        for i, row in enumerate(load_file(run.path / REPLAY / segment["file"])["physics"]):
            rows[segment["first"] + i] = row
    oldest = plain["added"] - plain["capacity"]
    return torch.cat([row for number, row in rows.items() if number >= oldest]).numpy()


def test_training_ends_with_a_file_of_states_of_its_own_buffer(run):
    states = read_states(run.path / PROMPTS, weights_of(run))
    rows = buffer_rows(run)
    assert len(states) == len(rows) == 40 * 8  # fewer than are wanted: all of them
    rows[:, :2] = 0
    found = np.concatenate([states.qpos, states.qvel], axis=1)
    for state in found[::16]:
        assert np.abs(rows - state).max(axis=1).min() < 0.02  # half precision, up to 20 rad/s
    np.testing.assert_allclose(np.linalg.norm(states.qpos[:, 3:7], axis=1), 1, atol=1e-9)
    assert "320 states" in states.source


def test_the_same_run_gives_the_same_file(run):
    before = (run.path / PROMPTS).read_bytes()
    (run.path / PROMPTS).unlink()
    assert write_states(run) == run.path / PROMPTS
    assert (run.path / PROMPTS).read_bytes() == before


def test_what_the_ring_has_overwritten_is_not_drawn_and_the_file_stays_small(tmp_path):
    replay = ReplayBuffer(rows=50, envs=128, sizes={"physics": 71})
    files = ReplayFiles(tmp_path / REPLAY, segment_rows=8)
    for number in range(70):
        replay.add(physics=torch.full((128, 71), float(number)), ends=torch.zeros(128))
        if number % 9 == 0:
            files.save(replay)
    tensors, plain = files.save(replay)
    tensors = {f"replay.{k}": v for k, v in tensors.items()} | {"policy.x": torch.ones(1)}
    checkpoint = Checkpoint(3, tensors, {"replay": plain})
    run = Run(tmp_path, {})
    states = draw_states(run, checkpoint)
    assert len(states) == COUNT
    numbers = set(states.qpos[:, 0].astype(int).tolist())
    assert min(numbers) == 20
    assert max(numbers) == 69
    assert len(numbers) > 45  # from everywhere
    run.load = lambda: checkpoint
    assert write_states(run).stat().st_size < 500_000


def test_states_of_other_weights_are_refused_and_replaced(run, references):
    with pytest.raises(
        RunError, match=r"belongs to other weights: .* \(update 6\), not to 00000000"
    ):
        read_states(run.path / PROMPTS, "0" * 64)
    older = run.load(run.steps()[0])
    # The buffer knows better.
    states = find_states(run, older, references)
    assert "replay buffer" in states.source
    assert not states.note
    # Without it there are the clips, and a word about it.
    shutil.rmtree(run.path / REPLAY)
    states = find_states(run, older, references)
    assert len(states) == len(references.qpos)
    assert "belongs to other weights" in states.note
    assert "frames of the clips instead" in states.note
    # For the weights that it belongs to, the file is enough.
    assert not find_states(run, run.load(), references).note


@pytest.mark.parametrize("damage", ["cut", "text", "other", "nan", "short"])
def test_a_damaged_file_is_said_and_not_used(run, references, damage):
    file = run.path / PROMPTS
    weights = weights_of(run)
    labels = {"header": json.dumps({"format": 1, "policy_sha256": weights})}
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "text":
        file.write_text("hello")
    elif damage == "other":
        save_file({"x": torch.ones(2)}, file, labels)
    elif damage == "nan":
        whole = load_file(file)
        whole["qvel"][3, 3] = float("nan")
        save_file(whole, file, labels)
    else:
        whole = load_file(file)
        save_file({**whole, "qvel": whole["qvel"][:5].clone()}, file, labels)
    with pytest.raises(RunError, match="Delete it; training to the end"):
        read_states(file, weights)
    shutil.rmtree(run.path / REPLAY)
    assert str(file) in find_states(run, run.load(), references).note


def test_without_any_file_the_clips_are_used_and_it_is_said(run, references):
    (run.path / PROMPTS).unlink()
    shutil.rmtree(run.path / REPLAY)
    assert write_states(run) is None
    states = find_states(run, run.load(), references)
    assert "has neither prompts.safetensors nor a replay buffer" in states.note


def test_a_shipped_policy_takes_its_states_along(run, references, tmp_path):
    shipped = ship(run.path, "tiny-tracker", tmp_path / "package")
    copy = Run.open(shipped)
    assert not (shipped / REPLAY).exists()
    states = find_states(copy, copy.load(), references)
    assert not states.note
    assert len(states) == 320
    assert states.observations(open_run(shipped)[2].task.layout).shape[0] == 320
