"""What can be exported, and the inputs that exports are checked on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, InputTypeError, PrismError

Batch = Tensor | tuple[Tensor, ...]
"""A module's input: one tensor, or a tuple for several inputs; batch axis first."""

_SIZES = (1, 7)


class ExportError(PrismError, RuntimeError):
    """A module cannot be exported as it is."""


def first_line(error: Exception) -> str:
    """Shorten an exporter's page-long message to what a user can act on."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__


def frozen_copy(module: nn.Module) -> nn.Module:
    """Copy a module to the CPU in evaluation mode, without gradients."""
    if not isinstance(module, nn.Module):
        raise InputTypeError(f"Expected an nn.Module to export, got {type(module).__name__}.")
    try:
        copied = copy.deepcopy(module)
    except RuntimeError as error:
        raise ExportError(
            f"{type(module).__name__} cannot be copied because it keeps results of a forward pass. "
            "Export just the network (for an rsl_rl model: model.as_onnx(verbose=False))."
        ) from error
    return copied.to("cpu").eval().requires_grad_(False)


def as_tensors(batch: Batch) -> tuple[Tensor, ...]:
    """Return the inputs as a tuple after checking that they share a batch axis."""
    tensors = (batch,) if isinstance(batch, Tensor) else batch
    if not isinstance(tensors, tuple) or not tensors:
        raise InputTypeError(
            f"Inputs must be a tensor or a tuple of tensors, got {type(batch).__name__}."
        )
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise InputTypeError(f"Every input must be a tensor, got {type(tensor).__name__}.")
        if tensor.ndim < 2 or tensor.shape[0] < 1:
            raise InputError(
                f"Inputs need a batch axis in front, e.g. (1, features), got shape "
                f"{list(tensor.shape)}. Add it with unsqueeze(0)."
            )
    if len({tensor.shape[0] for tensor in tensors}) > 1:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
        raise InputError(f"All inputs must have the same batch size, got shapes {shapes}.")
    return tensors


def random_batches(example: Batch) -> list[tuple[Tensor, ...]]:
    """Draw a single sample and a batch shaped like ``example``, the same ones every time.

    Integers (indices, flags) cannot be drawn blindly: they repeat the example's own rows.
    """
    tensors = as_tensors(example)
    generator = torch.Generator().manual_seed(0)

    def like(tensor: Tensor, size: int) -> Tensor:
        if tensor.is_floating_point():
            return torch.randn(size, *tensor.shape[1:], generator=generator).to(tensor.dtype)
        return tensor.cpu()[torch.arange(size) % tensor.shape[0]]

    return [tuple(like(tensor, size) for tensor in tensors) for size in _SIZES]


def run(module: Callable[..., Any], batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Call a module without gradients and return its outputs as a tuple."""
    with torch.no_grad():
        outputs = module(*(tensor.cpu() for tensor in batch))
    found = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
    for output in found:
        if not isinstance(output, Tensor):
            raise ExportError(
                f"Outputs must be a tensor or a tuple of tensors, got {type(output).__name__}."
            )
    return found


def check_exportable(frozen: nn.Module, batches: list[tuple[Tensor, ...]]) -> int:
    """Raise if no file could reproduce the module; return the number of outputs."""
    name = type(frozen).__name__
    count = 0
    for batch in batches:
        size = batch[0].shape[0]
        outputs = run(frozen, batch)
        count = len(outputs)
        for index, (output, again) in enumerate(zip(outputs, run(frozen, batch), strict=True)):
            if not torch.isfinite(output).all():
                raise ExportError(
                    f"{name}: output {index} is not finite for a batch of {size} random inputs. "
                    "Check the weights for NaN and infinity before exporting."
                )
            if not torch.equal(output, again):
                raise ExportError(
                    f"{name}: two calls in evaluation mode give different values of output "
                    f"{index}, so it samples or keeps state. Export the deterministic part, "
                    "e.g. the action mean."
                )
            if output.ndim == 0 or output.shape[0] != size:
                raise ExportError(
                    f"{name}: output {index} has shape {list(output.shape)} for a batch of "
                    f"{size}; its first axis must be the batch."
                )
    return count
