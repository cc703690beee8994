"""Does the file compute what the module computes?"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.export.inputs import Batch, ExportError, as_tensors, first_line, frozen_copy, run

TORCHSCRIPT_SUFFIXES = (".pt", ".ts")
ONNX_SUFFIXES = (".onnx",)


class ParityError(ExportError):
    """An exported file does not compute what its module computes."""


def check_parity(
    module: nn.Module,
    path: str | os.PathLike[str],
    inputs: Batch | list[Batch],
    tolerance: float = 1e-5,
) -> float:
    """Compare an exported file with its module; return the largest difference found.

    Args:
        module: The module, evaluated as it would be deployed (a copy on the CPU, in eval mode).
        path: A TorchScript (``.pt``, ``.ts``) or ONNX (``.onnx``) file.
        inputs: One batch, or a list of batches.
        tolerance: Largest allowed absolute difference. Float32 carries seven digits: raise it for
            modules whose outputs are far above one.

    Raises:
        ParityError: If an output differs by more, has another shape or is not finite.
    """
    file = Path(path)
    check_suffix(file, (*TORCHSCRIPT_SUFFIXES, *ONNX_SUFFIXES))
    if not file.is_file():
        raise FileNotFoundError(f"No exported file at {file}.")
    batches = [as_tensors(batch) for batch in (inputs if isinstance(inputs, list) else [inputs])]
    return compare(frozen_copy(module), file, batches, tolerance)


def check_suffix(path: Path, allowed: tuple[str, ...]) -> None:
    """Raise unless a file name has one of the allowed suffixes."""
    if path.suffix not in allowed:
        raise InputError(f"The file name must end in {' or '.join(allowed)}, got {path.name!r}.")


def compare(
    frozen: nn.Module,
    file: Path,
    batches: list[tuple[Tensor, ...]],
    tolerance: float,
    name: str | None = None,
) -> float:
    """Compare a file with a frozen module; ``name`` identifies it in errors."""
    name = name or file.name
    run_file = _load_onnx(file) if file.suffix in ONNX_SUFFIXES else _load_torchscript(file)
    largest = 0.0
    for batch in batches:
        where = f"{name}, batch of {batch[0].shape[0]}"
        expected = run(frozen, batch)
        try:
            found = run_file(batch)
        except Exception as error:
            raise ParityError(f"{where}: the file cannot run it: {first_line(error)}") from error
        if len(expected) != len(found):
            raise ParityError(
                f"{where}: {len(found)} outputs in the file, {len(expected)} in the module."
            )
        for index, (ours, theirs) in enumerate(zip(expected, found, strict=True)):
            if ours.shape != theirs.shape:
                raise ParityError(
                    f"{where}, output {index}: shape {list(theirs.shape)} in the file, "
                    f"{list(ours.shape)} in the module."
                )
            if ours.numel() == 0:
                continue
            difference = float((ours.double() - theirs.double()).abs().max())
            if not difference <= tolerance:  # written so that NaN fails too
                raise ParityError(
                    f"{where}, output {index}: the file differs from the module by up to "
                    f"{difference:.3g}, more than the allowed {tolerance:.3g}."
                )
            largest = max(largest, difference)
    return largest


def _load_torchscript(file: Path) -> Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]:
    loaded = torch.jit.load(str(file), map_location="cpu")
    return lambda batch: run(loaded, batch)


def _load_onnx(file: Path) -> Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]:
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_extra("Checking an ONNX file", "deploy", error) from error
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]

    def run_session(batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if len(names) != len(batch):
            raise InputError(f"it takes {len(names)} inputs ({', '.join(names)}), not {len(batch)}")
        feed = {name: tensor.cpu().numpy() for name, tensor in zip(names, batch, strict=True)}
        return tuple(torch.as_tensor(output) for output in session.run(None, feed))

    return run_session
