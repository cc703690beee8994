"""LIBERO's initial states are read without running anything."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from prism_motor.manipulation.suites.libero.states import StatesError, read_states


@pytest.mark.parametrize("zipped", [True, False])
def test_arrays_come_back_as_libero_saves_them(zipped, tmp_path):
    states = np.random.default_rng(0).normal(size=(5, 47))
    torch.save(states, tmp_path / "a", _use_new_zipfile_serialization=zipped)
    np.testing.assert_array_equal(read_states(tmp_path / "a"), states)


@pytest.mark.parametrize("core", ["core", "_core"])
def test_arrays_of_both_numpys_are_read(core, tmp_path):
    """Files written with numpy 1 name a module that numpy 2 has moved, and the reverse."""
    states = np.arange(6.0).reshape(2, 3)
    torch.save(states, tmp_path / "ours")
    with zipfile.ZipFile(tmp_path / "ours") as ours, zipfile.ZipFile(tmp_path / "a", "w") as theirs:
        for name in ours.namelist():
            data = ours.read(name)
            for other in (b"cnumpy.core.multiarray\n", b"cnumpy._core.multiarray\n"):
                data = data.replace(other, f"cnumpy.{core}.multiarray\n".encode())
            theirs.writestr(name, data)
    np.testing.assert_array_equal(read_states(tmp_path / "a"), states)


def test_the_packages_own_files_are_read():
    package = pytest.importorskip("libero", reason="hf-libero is not installed")
    folder = Path(package.__path__[0]) / "libero" / "init_files"
    files = sorted(folder.glob("*/*.pruned_init"))
    assert files
    for file in files[:: max(1, len(files) // 10)]:
        states = read_states(file)
        np.testing.assert_array_equal(states, torch.load(file, weights_only=False))


class Program:
    """Something that runs when it is unpickled."""

    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def test_programs_in_files_are_not_run(tmp_path):
    trace = tmp_path / "trace"
    programs = [
        Program(os.mkdir, str(trace)),
        Program(eval, f"__import__('os').mkdir({str(trace)!r})"),
        Program(np.save, str(trace), np.zeros(1)),
        Program(np.fromfile, str(trace)),
        Program(getattr, np.ndarray, "tofile"),
        [np.zeros((2, 2)), Program(os.mkdir, str(trace))],
    ]
    for index, program in enumerate(programs):
        for zipped in (True, False):
            file = tmp_path / f"{index}-{zipped}"
            torch.save(program, file, _use_new_zipfile_serialization=zipped)
            with pytest.raises(StatesError, match="Nothing in it was run"):
                read_states(file)
        plain = tmp_path / f"{index}-plain"
        plain.write_bytes(pickle.dumps(program))
        with pytest.raises(StatesError):
            read_states(plain)
    assert not list(tmp_path.glob("trace*"))


def test_other_contents_are_named(tmp_path):
    file = tmp_path / "a"
    for contents in (
        {"a": 1}, torch.zeros(2, 2), np.zeros(3), np.zeros((2, 2), dtype=object), "text",
        np.zeros((0, 3)), np.full((2, 2), np.nan), np.zeros((2, 2), dtype=np.float32),
    ):  # fmt: skip
        torch.save(contents, file)
        with pytest.raises(StatesError, match="no table of initial states"):
            read_states(file)
    with pytest.raises(StatesError, match="Cannot read"):
        read_states(tmp_path / "nowhere")
    for data in (b"", b"text", b"\x80\x02."):
        file.write_bytes(data)
        with pytest.raises(StatesError):
            read_states(file)


def test_damaged_files_are_refused(tmp_path):
    stream = io.BytesIO()
    torch.save(np.arange(40.0).reshape(4, 10), stream)
    whole, file = stream.getvalue(), tmp_path / "a"
    for length in range(0, len(whole), 97):
        file.write_bytes(whole[:length])
        with pytest.raises(StatesError):
            read_states(file)
