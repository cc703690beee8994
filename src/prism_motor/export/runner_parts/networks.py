"""The networks of an export in onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .contracts import is_tracking
from .rules import CONTRACT, RunnerError

POLICY = "policy.onnx"
"""File of the policy in an export."""


def open_policy(path: Path) -> Any:
    """Open an ONNX file in onnxruntime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises its own classes for unreadable files
        reason = str(error).splitlines()[0]
        raise RunnerError(f"onnxruntime cannot read {path}: {reason}.") from error


def check_policy(contract: dict[str, Any], session: Any) -> None:
    """Raise unless a policy takes and returns what the contract says."""
    inputs = {"observation": contract["observation"]["size"]}
    if is_tracking(contract):
        inputs["latent"] = contract["latent"]["size"]
    check_network(POLICY, session, inputs, len(contract["joints"]))


def check_network(name: str, session: Any, inputs: Mapping[str, int], outputs: int) -> None:
    """Raise unless a network takes tensors of these names and sizes, and returns one."""
    for what, found, expected in (
        ("takes", session.get_inputs(), [*inputs.values()]),
        ("returns", session.get_outputs(), [outputs]),
    ):
        shapes = [list(entry.shape) for entry in found]
        fits = len(shapes) == len(expected) and all(
            len(shape) == 2 and shape[1] == size
            for shape, size in zip(shapes, expected, strict=True)
        )
        if not fits:
            words = " and ".join(f"one tensor of [batch, {size}]" for size in expected)
            raise RunnerError(
                f"{name} does not fit {CONTRACT}: it {what} {shapes}, but the contract says "
                f"{words}. Export the run again."
            )
    names = [entry.name for entry in session.get_inputs()]
    if len(inputs) > 1 and names != list(inputs):
        raise RunnerError(
            f"{name} does not fit {CONTRACT}: its inputs are {names}, but the contract says "
            f"{list(inputs)}. Export the run again."
        )
