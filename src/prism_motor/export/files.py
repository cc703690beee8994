"""Writing TorchScript and ONNX files."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, InputTypeError
from prism_motor._extras import missing_extra
from prism_motor.export.inputs import (
    Batch,
    ExportError,
    check_exportable,
    first_line,
    frozen_copy,
    random_batches,
)
from prism_motor.export.parity import ONNX_SUFFIXES, TORCHSCRIPT_SUFFIXES, check_suffix, compare


def export_torchscript(
    module: nn.Module, path: str | os.PathLike[str], example: Batch, *, tolerance: float = 1e-5
) -> Path:
    """Script ``module`` into ``path`` (``.pt`` or ``.ts``) and check the file against it.

    Args:
        module: A scriptable module.
        path: The file to write; it appears only when the check passed.
        example: Input of any batch size, e.g. ``torch.zeros(1, 705)``; only its shape matters.
        tolerance: Largest allowed difference, see :func:`prism_motor.export.check_parity`.
    """
    target = _checked_target(path, TORCHSCRIPT_SUFFIXES)
    batches = random_batches(example)
    frozen = frozen_copy(module)
    check_exportable(frozen, batches)
    with _quiet():
        try:
            scripted = torch.jit.script(frozen)
        except Exception as error:
            raise ExportError(
                f"{type(module).__name__} is not scriptable: {first_line(error)}. Keep forward "
                "within TorchScript's subset of Python, or use export_onnx, which traces."
            ) from error
        return _write_checked(
            frozen, target, lambda file: torch.jit.save(scripted, str(file)), batches, tolerance
        )


def export_onnx(
    module: nn.Module,
    path: str | os.PathLike[str],
    example: Batch,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    tolerance: float = 1e-5,
) -> Path:
    """Write ``module`` as one ONNX file with a free batch axis and check it in onnxruntime.

    Weights are inside the file; traces of the source code (file names, lines) are not.

    Args:
        module: The module to trace.
        path: The ``.onnx`` file to write; it appears only when the check passed.
        example: Input of any batch size, e.g. ``torch.zeros(1, 705)``; only its shape matters.
        input_names: One name per input.
        output_names: One name per output.
        metadata: Stored as the file's ``metadata_props``: strings as they are, anything else as
            JSON, with floats at full precision.
        tolerance: Largest allowed difference, see :func:`prism_motor.export.check_parity`.
    """
    # Check everything cheap before the slow part.
    target = _checked_target(path, ONNX_SUFFIXES)
    properties = {key: _metadata_string(key, value) for key, value in (metadata or {}).items()}
    try:
        import onnx
        import onnxruntime  # noqa: F401 - needed by the check: fail before the slow part
        import onnxscript  # noqa: F401 - needed by torch.onnx
    except ImportError as error:
        raise missing_extra("export_onnx", "deploy", error) from error
    batches = random_batches(example)
    frozen = frozen_copy(module)
    outputs = check_exportable(frozen, batches)
    inputs = batches[-1]  # above one: torch.export would treat a batch of one as a constant
    _check_names("input_names", input_names, len(inputs))
    _check_names("output_names", output_names, outputs)

    # Trace with a free batch axis.
    batch_axis = torch.export.Dim("batch")
    with _quiet():
        try:
            program = torch.onnx.export(
                frozen,
                inputs,
                dynamo=True,
                dynamic_shapes=tuple({0: batch_axis} for _ in inputs),
                input_names=input_names,
                output_names=output_names,
                verbose=False,
            )
        except Exception as error:
            raise ExportError(
                f"torch.onnx cannot export {type(module).__name__} with a free batch axis: "
                f"{first_line(error)}. Keep the batch size out of Python control flow and shapes."
            ) from error
    # Drop traces of the source code, add the metadata, write.
    assert program is not None
    proto = program.model_proto
    for entry in (proto.graph, *proto.graph.node, *proto.graph.value_info):
        del entry.metadata_props[:]
    onnx.helper.set_model_props(proto, properties)
    return _write_checked(
        frozen, target, lambda file: onnx.save(proto, str(file)), batches, tolerance
    )


def _write_checked(
    frozen: nn.Module,
    target: Path,
    write: Callable[[Path], None],
    batches: list[tuple[Tensor, ...]],
    tolerance: float,
) -> Path:
    """Write beside the target, check, then rename: the target is never a wrong file."""
    temporary = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        write(temporary)
        compare(frozen, temporary, batches, tolerance, name=target.name)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _checked_target(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> Path:
    target = Path(path)
    check_suffix(target, suffixes)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {target.name}: the folder {target.parent} does not exist. "
            "Create it first."
        )
    return target


def _check_names(what: str, names: Sequence[str] | None, count: int) -> None:
    if names is not None and (isinstance(names, str) or len(names) != count):
        raise InputError(f"{what} must be a list of {count} name(s), got {names!r}.")


def _metadata_string(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except TypeError as error:
        raise InputTypeError(
            f"metadata[{key!r}] is a {type(value).__name__}, which JSON cannot represent. Give "
            "strings, numbers, lists or dicts (for a tensor: tensor.tolist())."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' progress and deprecation notes, but not errors."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
