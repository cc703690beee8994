"""Devices that networks compute on: how they are named, and which this machine has.

A device is one setting everywhere: ``cpu``, ``cuda``, ``cuda:1``, ``mps`` or ``auto``. A run
records what ``auto`` stood for. ``cuda`` without a number is the process's own: the first one, or
that of its local rank in data-parallel training.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

from prism_motor._checks import InputError
from prism_motor._console import note
from prism_motor._ranges import form

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Device = Annotated[
    str, form(r"(cpu|cuda|mps|xpu)(:[0-9]{1,3})?|auto", "cpu, cuda, cuda:1, mps or auto")
]
"""Name of a device."""


def resolve_device(name: str) -> str:
    """Return the device that a name stands for, after checking that this machine has it.

    ``auto`` is the first of cuda, mps and cpu that there is.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    if not _exists(name):
        raise InputError(
            f"device: {name} cannot be used on this machine, which has "
            f"{', '.join(list_devices())}{_why_no_cuda(name)}. Give one of these, or auto."
        )
    return name


def _why_no_cuda(name: str) -> str:
    """Return why torch sees no GPU, which another torch or a driver may change."""
    import torch

    if not name.startswith("cuda") or torch.cuda.device_count():
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return f" (torch {torch.__version__} is built without CUDA)"
    return f" (torch {torch.__version__} finds no GPU or no driver)"


def _exists(name: str) -> bool:
    """Return whether this machine has a device, without occupying memory on it."""
    import torch

    kind, _, index = name.partition(":")
    if kind == "cuda":
        return int(index or 0) < torch.cuda.device_count()
    if kind == "mps":
        return torch.backends.mps.is_available()
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError):
        return False
    return True


def choose_device(wanted: str | None, trained: str) -> str:
    """Return the device to use a trained policy on.

    Args:
        wanted: What was asked for; ``None``: that of the training, or the CPU where it is missing.
        trained: The device of the training.
    """
    if wanted is not None:
        return resolve_device(wanted)
    try:
        return resolve_device(trained)
    except InputError:
        note(f"The policy was trained on {trained}, which is missing here: the CPU is used.")
        return "cpu"


def list_devices() -> dict[str, str]:
    """Return the devices of this machine, with a description of each."""
    import platform

    import torch

    found = {"cpu": platform.processor() or platform.machine()}
    for index in range(torch.cuda.device_count()):
        found[f"cuda:{index}"] = torch.cuda.get_device_name(index)
    if torch.backends.mps.is_available():
        found["mps"] = "available"
    return found


def own_device(name: str, local_rank: int = 0, processes: int = 1) -> str:
    """Return the device of one of several processes on a machine.

    Args:
        name: The run's device.
        local_rank: Number of the process on its machine.
        processes: Number of processes.
    """
    kind, _, index = name.partition(":")
    if kind == "cpu" or (kind != "cuda" and processes == 1):
        return name
    if kind != "cuda":
        raise InputError(f"device: {name} trains in a single process; remove --processes.")
    if index and processes > 1:
        raise InputError(
            f"device: {name} is a single device, but {processes} processes need one each. Give "
            "--device cuda: every process takes that of its number."
        )
    return resolve_device(f"cuda:{index or local_rank}")


def make_generator(device: str | torch.device) -> torch.Generator:
    """Make a source of random numbers on a device."""
    import torch

    return torch.Generator(device)


RANDOM_TENSORS = ("torch_rng", "cuda_rng", "mps_rng")
"""Names of the tensors that :func:`random_state` returns."""


def random_state(device: str | torch.device) -> dict[str, Tensor]:
    """Return the state of all random numbers drawn on the CPU and on a device."""
    import torch

    state = {"torch_rng": torch.get_rng_state()}
    device = torch.device(device)
    if device.type == "cuda":
        state["cuda_rng"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["mps_rng"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: dict[str, Tensor], device: str | torch.device) -> None:
    """Continue from what :func:`random_state` returned on a device of the same kind."""
    import torch

    torch.set_rng_state(state["torch_rng"])
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda_rng"], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state["mps_rng"])


def autocast(device: str | torch.device, precision: str) -> AbstractContextManager[Any]:
    """Return the context in which networks compute with a precision, ``fp32`` or ``bf16``."""
    import torch

    if precision == "fp32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


@contextmanager
def keep_random_state(device: str | torch.device) -> Iterator[None]:
    """Restore the random numbers of the CPU and of a device after this context."""
    state = random_state(device)
    try:
        yield
    finally:
        set_random_state(state, device)
