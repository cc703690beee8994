"""Files that are either complete or absent."""

import json
import os

import pytest

from prism_motor.runs.atomic import write_json, write_text


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path, monkeypatch):
    file = tmp_path / "x.json"
    write_json(file, {"a": 0.1 + 0.2})
    assert json.loads(file.read_text()) == {"a": 0.1 + 0.2}
    with pytest.raises(ValueError, match="Out of range"):
        write_json(file, {"a": float("nan")})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(file, "half")
    assert json.loads(file.read_text()) == {"a": 0.1 + 0.2}
    assert os.listdir(tmp_path) == ["x.json"]
