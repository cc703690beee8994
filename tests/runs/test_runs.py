import json
import os
import shutil
from dataclasses import dataclass, field
from importlib.metadata import version

import pytest
import torch

from prism_motor.locomotion.task import TaskConfig
from prism_motor.locomotion.tasks import TASKS
from prism_motor.runs import (
    CheckpointError,
    ConfigError,
    Run,
    RunError,
    collect_provenance,
    from_dict,
    load_checkpoint,
    save_checkpoint,
    to_dict,
)

TENSORS = {"a.weight": torch.randn(3, 4), "count": torch.tensor(7)}
STATE = {"iteration": 3, "rate": 0.1 + 0.2, "names": ["x"]}


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
    (path / "complete.json").write_text(json.dumps(marker | {"schema": 99}))
    with pytest.raises(CheckpointError, match="version 99"):
        load_checkpoint(path)
    (path / "complete.json").write_text("{")
    with pytest.raises(CheckpointError, match="not readable"):
        load_checkpoint(path)
    (path / "complete.json").unlink()
    with pytest.raises(CheckpointError, match="not a complete checkpoint"):
        load_checkpoint(path)


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
    with pytest.raises(RunError, match=r"no checkpoint 7; there are: \[1, 2\]"):
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
        run.log({"iteration": i, "reward": i / 3})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 5, "rew')
    assert [row["iteration"] for row in run.metrics()] == [1, 2, 3, 4]
    run.rewind_metrics(2)
    run.log({"iteration": 3, "reward": 9.0})
    assert [row["reward"] for row in Run.open(run.path).metrics()] == [1 / 3, 2 / 3, 9.0]


def test_folders_that_are_no_runs_are_explained(tmp_path):
    with pytest.raises(RunError, match="no run at"):
        Run.open(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"no config\.json"):
        Run.open(tmp_path)
    (tmp_path / "config.json").write_text("{oops")
    with pytest.raises(RunError, match="not readable"):
        Run.open(tmp_path)
    with pytest.raises(RunError, match="already holds a run"):
        Run.create(tmp_path, {})
    shutil.rmtree(tmp_path)
    run = Run.create(tmp_path, {"x": 1})
    with pytest.raises(RunError, match="no complete checkpoint"):
        run.load()
    with pytest.raises(RunError, match="--resume"):
        Run.create(tmp_path, {})


def test_an_unwritable_place_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="Cannot write to"):
        Run.create(tmp_path / "file" / "run", {})


def test_provenance_names_code_and_packages():
    provenance = collect_provenance()
    assert provenance["packages"]["torch"] == version("torch")
    assert "prism" in provenance
    json.dumps(provenance)


@pytest.mark.parametrize("preset", TASKS)
def test_configs_survive_json(preset):
    data = json.loads(json.dumps(to_dict(TASKS[preset])))
    assert from_dict(TaskConfig, data) == TASKS[preset]


@dataclass(frozen=True)
class Inner:
    size: int = 1
    pair: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    limit: float | None = 2.0
    name: str = "x"
    on: bool = False


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"inner": {"sise": 3}}, r"config\.inner: unknown key 'sise'.*'size'"),
        ({"inner": {"size": 2.5}}, r"config\.inner\.size: expected int, got 2\.5"),
        ({"inner": {"size": True}}, r"expected int, got True"),
        ({"inner": {"pair": [1]}}, r"pair: expected 2 values, got 1"),
        ({"inner": {"pair": 3}}, r"pair: expected a list"),
        ({"inner": 3}, r"config\.inner: expected settings by name"),
        ({"name": 3}, r"config\.name: expected str"),
        ({"limit": "low"}, r"config\.limit: expected float"),
    ],
)
def test_bad_configs_are_explained(data, words):
    with pytest.raises(ConfigError, match=words):
        from_dict(Outer, data)


def test_missing_keys_take_defaults_and_integers_become_floats():
    made = from_dict(Outer, {"limit": 3, "inner": {"pair": [1, 2]}})
    assert made == Outer(inner=Inner(pair=(1.0, 2.0)), limit=3.0)
    assert isinstance(made.limit, float)
    assert from_dict(Outer, {"limit": None}).limit is None
