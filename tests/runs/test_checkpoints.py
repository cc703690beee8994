"""Checkpoints: exact, and refused when anything about them is not whole."""

import json
import os

import pytest
import torch

from prism_motor.runs import CheckpointError, load_checkpoint, save_checkpoint
from prism_motor.runs.checkpoints import checkpoint_steps, select
from prism_motor.runs.seals import seal_data

TENSORS = {"a.weight": torch.randn(3, 4), "count": torch.tensor(7)}
STATE = {"updates": 3, "rate": 0.1 + 0.2, "names": ["x"]}


def test_checkpoint_round_trip_is_exact(tmp_path):
    path = save_checkpoint(tmp_path, 3, TENSORS, STATE)
    loaded = load_checkpoint(path)
    assert loaded.step == 3
    assert loaded.state == STATE
    assert loaded.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(loaded.tensors[name], tensor)
        assert loaded.tensors[name].dtype == tensor.dtype
    assert os.listdir(tmp_path) == ["00000003"]


@pytest.mark.parametrize("name", ["tensors.safetensors", "state.json"])
def test_truncated_or_changed_files_are_refused(tmp_path, name):
    path = save_checkpoint(tmp_path, 3, TENSORS, STATE)
    whole = (path / name).read_bytes()
    for damaged in (whole[:-5], whole[:-1] + b"x", b""):
        (path / name).write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"truncated or changed.*earlier"):
            load_checkpoint(path)
    (path / name).unlink()
    with pytest.raises(CheckpointError, match="missing"):
        load_checkpoint(path)


def test_a_checkpoint_without_marker_or_of_another_version_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, 3, TENSORS, STATE)
    marker = json.loads((path / "complete.json").read_text())
    (path / "complete.json").write_text(json.dumps(marker | {"step": 3.0}))
    with pytest.raises(CheckpointError, match="was changed"):
        load_checkpoint(path)
    (path / "complete.json").write_text(json.dumps(marker | {"schema": 99}))
    with pytest.raises(CheckpointError, match="version 99"):
        load_checkpoint(path)
    (path / "complete.json").write_text("{")
    with pytest.raises(CheckpointError, match="not readable"):
        load_checkpoint(path)
    (path / "complete.json").unlink()
    with pytest.raises(CheckpointError, match="not a complete checkpoint"):
        load_checkpoint(path)


def test_names_decide_what_is_a_checkpoint(tmp_path):
    assert checkpoint_steps(tmp_path / "nowhere") == []
    for step in (10, 9):
        save_checkpoint(tmp_path, step, TENSORS, STATE)
    for name in ("notes", ".00000012.99.tmp", "13", "0000001²"):
        (tmp_path / name).mkdir()
    assert checkpoint_steps(tmp_path) == [9, 10]
    (tmp_path / "00000010" / "complete.json").unlink()
    assert checkpoint_steps(tmp_path) == [9, 10]  # loading it says what is wrong


def test_a_marker_in_another_folder_or_without_seals_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, 3, TENSORS, STATE)
    path.rename(tmp_path / "00000004")
    with pytest.raises(CheckpointError, match="that of checkpoint 3"):
        load_checkpoint(tmp_path / "00000004")
    file = tmp_path / "00000004" / "complete.json"
    marker = json.loads(file.read_text()) | {"step": 4}
    del marker["sha256"]
    file.write_text(json.dumps(marker))
    with pytest.raises(CheckpointError, match="was changed"):
        load_checkpoint(tmp_path / "00000004")
    former = {key: marker[key] for key in ("schema", "step", "files")}
    file.write_text(json.dumps(former))  # as earlier versions wrote it
    assert load_checkpoint(tmp_path / "00000004").step == 4
    for change in ({"files": {}}, {"files": 3}, {"run": []}, {"run": {"a": {"bytes": "x"}}}):
        file.write_text(json.dumps(seal_data(marker | change)))
        with pytest.raises(CheckpointError, match="does not seal"):
            load_checkpoint(tmp_path / "00000004")


def test_a_selection_loses_its_prefix():
    assert select({"a.x": 1, "a.y": 2, "b.x": 3}, "a.") == {"x": 1, "y": 2}
