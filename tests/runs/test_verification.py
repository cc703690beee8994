"""Verification: every sealed file counts, and any change of it is named."""

import json

import pytest
import torch

from prism_motor.cli import main
from prism_motor.runs import Run
from prism_motor.runs.records import write_record
from prism_motor.runs.seals import is_intact, seal_data
from prism_motor.runs.verification import verify

TENSORS = {"policy.weight": torch.arange(6.0)}


@pytest.fixture
def folder(tmp_path):
    run = Run.create(tmp_path / "runs" / "one", {"kind": "x", "preset": "a", "arm": "b"})
    for step in (1, 2):
        run.log({"update": step, "loss": 1 / 3})
        run.save(step, TENSORS, {"updates": step})
    run.log({"update": 3})
    run.close()
    episodes = [{"length": 0.1 + 0.2}]
    run.write_evaluation("nominal-101", {"provenance": {"command": []}, "episodes": episodes})
    return run.path


def test_an_intact_run_is_said_to_be(folder, capsys):
    found = verify(folder)
    assert (found.problems, found.unsealed, found.word) == ([], [], "intact")
    main(["verify", str(folder)])
    said = capsys.readouterr().out
    assert "intact" in said
    assert "2 checkpoints, config.json, provenance.json, metrics.jsonl, 1 evaluation" in said


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "provenance.json",
        "metrics.jsonl",
        "checkpoints/00000001/tensors.safetensors",
        "checkpoints/00000002/state.json",
        "checkpoints/00000001/complete.json",
        "evaluations/nominal-101.json",
    ],
)
def test_a_changed_byte_anywhere_is_named(folder, name, capsys):
    file = folder / name
    whole = file.read_bytes()
    for place in (len(whole) // 3, 5):
        byte = bytes([whole[place] ^ 4])
        file.write_bytes(whole[:place] + byte + whole[place + 1 :])
        assert verify(folder).problems
        with pytest.raises(SystemExit) as stopped:
            main(["verify", str(folder.parent)])
        assert stopped.value.code == 2
        said = capsys.readouterr()
        assert f"CHANGED: {name.rpartition('/')[0]}" in said.out or name in said.out
        assert "1 run of 1 not as written" in said.err
    file.write_bytes(whole)
    assert not verify(folder).problems


def test_an_archive_is_sealed_too(folder, tmp_path):
    write_record(Run.open(folder), tmp_path / "record")
    assert verify(tmp_path / "record").word == "intact"
    file = tmp_path / "record" / "metrics.jsonl"
    file.write_text(file.read_text().replace("0.333333", "0.233333"))
    assert verify(tmp_path / "record").problems == ["metrics.jsonl is missing or has changed"]


def test_data_that_seals_itself_notices_every_change():
    data = seal_data({"a": [0.1 + 0.2, None], "b": {"c": "d"}})
    assert is_intact(json.loads(json.dumps(data, indent=1))) is True
    assert is_intact({**data, "a": [0.3, None]}) is False
    assert is_intact({**data, "more": 1}) is False
    assert is_intact({key: value for key, value in data.items() if key != "sha256"}) is None
    assert is_intact([]) is False


def test_nothing_is_archived_if_any_run_has_changed(folder, tmp_path, capsys):
    other = Run.create(folder.parent / "zebra", {"kind": "x"})
    other.save(1, TENSORS, {})
    other.close()
    (other.path / "config.json").write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        main(["archive", str(folder.parent), "--out", str(tmp_path / "records" / "new")])
    assert stopped.value.code == 2
    assert "zebra is not as it was written: config.json" in capsys.readouterr().err
    assert not (tmp_path / "records").exists()


def test_damage_in_the_past_is_part_of_the_record(folder, tmp_path):
    file = folder / "metrics.jsonl"
    file.write_text(file.read_text().replace('"update": 1', '"update": x'))
    run = Run.open(folder)
    run.rewind(run.load())
    run.save(2, TENSORS, {"updates": 2})
    write_record(run, tmp_path / "record")
    kept = json.loads((tmp_path / "record" / "provenance.json").read_text())["kept"]
    assert kept.startswith("1 of 1 rows of metrics; damaged-00000002.jsonl")
