"""Run folders: made, opened, logged to, and explained when they are something else."""

import json
import os
import shutil
from importlib.metadata import version

import pytest
import torch

from prism_motor.runs import CheckpointError, Run, RunError, collect_provenance

TENSORS = {"a.weight": torch.randn(3, 4), "count": torch.tensor(7)}
STATE = {"updates": 3}


def test_a_cut_write_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    run = Run.create(tmp_path / "run", {"x": 1})
    run.save(1, TENSORS, STATE)

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(CheckpointError, match=r"No space left.*Earlier checkpoints are intact"):
        run.save(2, TENSORS, STATE)
    monkeypatch.undo()
    assert run.steps() == [1]
    assert run.load().step == 1
    assert (run.path / "last").read_text() == "1\n"
    assert sorted(os.listdir(run.path / "checkpoints")) == ["00000001"]


def test_loading_takes_the_newest_whole_checkpoint(tmp_path):
    run = Run.create(tmp_path / "run", {})
    for step in (1, 2, 3):
        run.save(step, TENSORS, {"step": step})
    (run.path / "checkpoints" / "00000003" / "complete.json").unlink()
    assert run.load().state == {"step": 2}
    assert run.load(1).step == 1
    with pytest.raises(RunError, match=r"no checkpoint 7; available: \[1, 2\]"):
        run.load(7)


def test_pruning_keeps_the_newest(tmp_path):
    run = Run.create(tmp_path / "run", {})
    for step in range(5):
        run.save(step, TENSORS, {})
    run.prune(keep=2)
    assert run.steps() == [3, 4]


def test_metrics_survive_a_cut_line_and_rewind(tmp_path):
    run = Run.create(tmp_path / "run", {})
    for i in range(1, 5):
        run.log({"update": i, "reward": i / 3})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 5, "rew')
    assert [row["update"] for row in run.metrics()] == [1, 2, 3, 4]
    run.rewind_metrics(2)
    run.log({"update": 3, "reward": 9.0})
    assert [row["reward"] for row in Run.open(run.path).metrics()] == [1 / 3, 2 / 3, 9.0]


def test_metrics_of_earlier_versions_are_read_by_the_present_name(tmp_path):
    run = Run.create(tmp_path / "run", {})
    run.log({"iteration": 1, "loss": 0.5})
    run.close()
    assert run.metrics() == [{"update": 1, "loss": 0.5}]


def test_the_weights_of_a_checkpoint_lose_their_prefix(tmp_path):
    run = Run.create(tmp_path / "run", {})
    run.save(3, TENSORS, STATE)
    assert torch.equal(run.weights("a.")["weight"], TENSORS["a.weight"])


def test_folders_that_are_no_runs_are_explained(tmp_path):
    with pytest.raises(RunError, match="No run found at"):
        Run.open(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"no config\.json"):
        Run.open(tmp_path)
    (tmp_path / "config.json").write_text("{oops")
    with pytest.raises(RunError, match="not readable"):
        Run.open(tmp_path)
    with pytest.raises(RunError, match=r"not empty.*interrupted before the first checkpoint"):
        Run.create(tmp_path, {})
    shutil.rmtree(tmp_path)
    run = Run.create(tmp_path, {"x": 1})
    with pytest.raises(RunError, match="no complete checkpoint"):
        run.load()
    run.save(0, TENSORS, STATE)
    with pytest.raises(RunError, match=f"not empty.*--resume {tmp_path}"):
        Run.create(tmp_path, {})


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(RunError, match=r"not empty.*not a run"):
        Run.create(tmp_path, {})
    with pytest.raises(RunError, match="is a file"):
        Run.create(tmp_path / "notes.txt", {})


def test_an_unwritable_place_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="Cannot write to"):
        Run.create(tmp_path / "file" / "run", {})


def test_provenance_names_code_and_packages():
    provenance = collect_provenance()
    assert provenance["packages"]["torch"] == version("torch")
    assert "prism" in provenance
    json.dumps(provenance)
