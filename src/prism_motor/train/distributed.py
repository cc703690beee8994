"""Data-parallel training over processes: gloo on CPUs, NCCL on GPUs.

Started by ``torchrun`` (``torchrun --nproc-per-node 2 -m prism_motor.cli train locomotion ...``) or by
``prism train locomotion --processes 2``, which does the same on this machine. Every process steps
its own environments; gradients and normaliser statistics are averaged, so that the networks agree.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn


@dataclass(frozen=True)
class Rank:
    """This process among all."""

    index: int = 0
    """0 writes the run folder."""
    world_size: int = 1
    """Number of processes."""

    @property
    def is_main(self) -> bool:
        """Whether this process writes and prints."""
        return self.index == 0


def current_rank() -> Rank:
    """Read what torchrun put into the environment."""
    return Rank(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def connect(rank: Rank) -> None:
    """Join the process group; nothing to do for a single process."""
    if rank.world_size > 1 and not dist.is_initialized():
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, rank=rank.index, world_size=rank.world_size)


def disconnect() -> None:
    """Leave the process group."""
    if dist.is_initialized():
        dist.destroy_process_group()


def check_agreement(models: dict[str, nn.Module]) -> None:
    """Raise if the parameters of the processes have drifted apart."""
    if not dist.is_initialized():
        return
    for title, model in models.items():
        for name, value in model.named_parameters():
            mine = value.detach()
            first = mine.clone()
            dist.broadcast(first, src=0)
            if not torch.equal(mine, first):
                raise RuntimeError(
                    f"Process {dist.get_rank()} disagrees with process 0 on {title}.{name}; "
                    "data-parallel training has broken. Resume from the last checkpoint."
                )


def gather(tensors: dict[str, Tensor], own: tuple[str, ...]) -> dict[str, Tensor]:
    """Collect on process 0 what differs between processes, under ``rank<i>.`` names.

    Args:
        tensors: All tensors of this process.
        own: Prefixes of the names that differ; the rest is the same everywhere.
    """
    if not dist.is_initialized():
        return tensors
    mine = {k: v for k, v in tensors.items() if k.startswith(own)}
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    shared = {k: v for k, v in tensors.items() if not k.startswith(own)}
    return shared | {f"rank{i}.{k}": v for i, part in enumerate(parts) for k, v in part.items()}


def launch(processes: int, work: Callable[..., None], *arguments: Any) -> None:
    """Run ``work(*arguments)`` in several local processes and wait for them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.start_processes(  # type: ignore[attr-defined]
        _child, args=(processes, port, work, arguments), nprocs=processes, start_method="spawn"
    )


def _child(index: int, processes: int, port: int, work: Callable[..., None], args: Any) -> None:
    os.environ |= {
        "RANK": str(index),
        "LOCAL_RANK": str(index),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    work(*args)
