"""Run folders: made, opened, logged to, and explained when they are something else."""

import json
import os
import shutil
from importlib.metadata import version

import pytest
import torch
from safetensors import SafetensorError

from prism_motor.runs import CheckpointError, Run, RunError, collect_provenance
from prism_motor.runs.locks import LockedError
from prism_motor.runs.seals import seal_data
from prism_motor.runs.verification import verify

TENSORS = {"a.weight": torch.randn(3, 4), "count": torch.tensor(7)}
STATE = {"updates": 3}


def test_a_cut_write_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    run = Run.create(tmp_path / "run", {"x": 1})
    run.save(1, TENSORS, STATE)

    for error in (OSError(28, "No space left on device"), SafetensorError("No space left (28)")):

        def full(*_args, error=error, **_kwargs):
            raise error

        monkeypatch.setattr("safetensors.torch.save_file", full)
        with pytest.raises(CheckpointError, match=r"No space left.*Earlier checkpoints are intact"):
            run.save(2, TENSORS, STATE)
    monkeypatch.undo()
    assert run.steps() == [1]
    assert run.load().step == 1
    assert (run.path / "last").read_text() == "1\n"
    assert sorted(os.listdir(run.path / "checkpoints")) == ["00000001"]


def test_loading_takes_the_newest_checkpoint_or_refuses_it(tmp_path):
    run = Run.create(tmp_path / "run", {})
    for step in (1, 2, 3):
        run.save(step, TENSORS, {"step": step})
    assert run.load().state == {"step": 3}
    assert run.load(1).step == 1
    with pytest.raises(RunError, match=r"no checkpoint 7; available: \[1, 2, 3\]"):
        run.load(7)
    (run.path / "checkpoints" / "00000003" / "complete.json").unlink()
    with pytest.raises(CheckpointError, match=r"00000003 is not a complete checkpoint"):
        run.load()
    assert run.load_intact().state == {"step": 2}


def test_the_newest_intact_checkpoint_is_resumed_from_and_others_are_set_aside(tmp_path, capsys):
    run = Run.create(tmp_path / "run", {"x": 1})
    for step in (1, 2, 3):
        run.save(step, TENSORS, {"step": step})
    folder = run.path / "checkpoints"
    (folder / "00000003" / "state.json").write_text("{}")
    marker = json.loads((folder / "00000002" / "complete.json").read_text()) | {"files": {}}
    (folder / "00000002" / "complete.json").write_text(json.dumps(seal_data(marker)))
    with pytest.raises(CheckpointError, match="does not seal"):
        run.load(2)
    found = run.load_intact()
    assert found.step == 1
    said = capsys.readouterr().err
    assert said.count("prism: note:") == 2
    assert "Resuming from checkpoint 1 instead of 3" in said
    run.rewind(found)
    assert run.steps() == [1]
    assert sorted(os.listdir(run.path / "damaged")) == ["00000002", "00000003"]
    (folder / "00000001" / "tensors.safetensors").unlink()
    with pytest.raises(RunError, match=r"no intact checkpoint.*--config .*config\.json"):
        run.load_intact()


def test_settings_that_changed_after_the_start_do_not_belong_to_the_checkpoints(tmp_path):
    run = Run.create(tmp_path / "run", {"x": 1})
    run.save(1, TENSORS, STATE)
    assert run.load().step == 1
    (run.path / "config.json").write_text('{"x": 2}')
    for load in (run.load, run.load_intact):
        with pytest.raises(
            RunError, match=r"changed after the run had begun.*prism train --config"
        ):
            load()


def test_what_a_run_leaves_that_was_cut_at_its_start_is_replaced(tmp_path):
    run = Run.create(tmp_path / "run", {"x": 1})
    run.close()
    (run.path / "checkpoints" / ".00000000.123.tmp").mkdir()
    (run.path / ".config.json.123.tmp").write_text("{")
    again = Run.create(run.path, {"x": 2})
    assert json.loads((run.path / "config.json").read_text()) == {"x": 2}
    assert sorted(os.listdir(run.path)) == [
        ".lock",
        "checkpoints",
        "config.json",
        "provenance.json",
    ]
    assert os.listdir(run.path / "checkpoints") == []
    again.close()
    assert not (run.path / ".lock").exists()
    (run.path / "config.json").unlink()
    with pytest.raises(RunError, match=r"cut before it began: start it again"):
        Run.open(run.path)
    (run.path / "thesis.tex").write_text("")
    with pytest.raises(RunError, match=r"not empty.*not a run"):
        Run.create(run.path, {})


def test_leftovers_of_killed_writes_go_when_the_run_is_owned_again(tmp_path):
    run = Run.create(tmp_path / "run", {})
    run.save(1, TENSORS, STATE)
    run.close()
    (run.path / "checkpoints" / ".00000002.99.tmp").mkdir()
    (run.path / "checkpoints" / ".00000000.old.99.tmp").mkdir()
    (run.path / ".last.99.tmp").write_text("")
    run.own()
    assert os.listdir(run.path / "checkpoints") == ["00000001"]
    assert not (run.path / ".last.99.tmp").exists()


def test_pruning_keeps_the_newest(tmp_path):
    run = Run.create(tmp_path / "run", {})
    for step in range(5):
        run.save(step, TENSORS, {})
    run.prune(keep=2)
    assert run.steps() == [3, 4]


def test_rows_after_the_checkpoint_are_cut_and_the_others_keep_every_byte(tmp_path):
    run = Run.create(tmp_path / "run", {})
    for i in range(1, 5):
        run.log({"update": i, "reward": i / 3})
        if i == 2:
            run.save(2, TENSORS, STATE)
            before = (run.path / "metrics.jsonl").read_bytes()
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 5, "rew')
    assert [row["update"] for row in run.metrics()] == [1, 2, 3, 4]
    run.rewind(run.load())
    assert (run.path / "metrics.jsonl").read_bytes() == before
    run.log({"update": 3, "reward": 9.0})
    assert [row["reward"] for row in Run.open(run.path).metrics()] == [1 / 3, 2 / 3, 9.0]


@pytest.mark.parametrize("sealed", [True, False])
def test_a_damaged_line_of_metrics_costs_no_other_and_is_announced(tmp_path, capsys, sealed):
    run = Run.create(tmp_path / "run", {})
    for i in range(1, 5):
        run.log({"update": i})
    run.save(4, TENSORS, STATE)
    if not sealed:  # as runs of earlier versions
        marker = run.path / "checkpoints/00000004/complete.json"
        marker.write_text(json.dumps(seal_data(json.loads(marker.read_text()) | {"run": {}})))
    file = run.path / "metrics.jsonl"
    file.write_text(file.read_text().replace('{"update": 2}', '{"upd\x00te" 2}'))
    damaged = file.read_bytes()
    run.rewind(run.load())
    assert [row["update"] for row in run.metrics()] == [1, 3, 4]
    assert (run.path / "damaged-00000004.jsonl").read_bytes() == damaged
    assert "prism: note:" in (said := capsys.readouterr().err)
    assert "metrics.jsonl" in said
    assert any("damaged metrics" in problem for problem in verify(run.path).problems)


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
    with pytest.raises(RunError, match=r"not empty.*no complete checkpoint"):
        Run.create(tmp_path, {})  # settings that somebody wrote
    shutil.rmtree(tmp_path)
    run = Run.create(tmp_path, {"x": 1})
    with pytest.raises(RunError, match="no complete checkpoint"):
        run.load()
    with pytest.raises(LockedError, match=rf"being trained by process {os.getpid()} on "):
        Run.create(tmp_path, {})
    run.save(0, TENSORS, STATE)
    run.close()
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


def test_a_run_that_goes_on_on_another_cpu_says_so(tmp_path, monkeypatch, capsys):
    run = Run.create(tmp_path / "run", {})
    run.save(1, {}, {})
    run.load_intact()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("prism_motor.runs.folder.cpu_kind", lambda: "Pentium III")
    run.load_intact()
    assert "goes on here on Pentium III: not bit for bit" in capsys.readouterr().err


def test_provenance_names_code_and_packages():
    provenance = collect_provenance()
    assert provenance["machine"]["cpu"]
    assert provenance["packages"]["torch"] == version("torch")
    assert "prism" in provenance
    json.dumps(provenance)
