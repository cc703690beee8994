"""Reading arrays from .npz files of strangers, without unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from prism_motor._checks import InputError

_LARGEST = 2**31
"""Bytes that the arrays of one file may have when unpacked."""


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name."""
    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > _LARGEST:
            raise InputError(f"{file} would unpack to {size / 2**30:.1f} GB; that is no motion.")
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except InputError:
        raise
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"{file} cannot be read as an .npz file of plain arrays: {error} (pickled objects are "
            "refused, because reading them can run any code)."
        ) from error
