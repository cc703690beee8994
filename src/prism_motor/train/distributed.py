"""Data-parallel training across processes: gloo on CPUs, NCCL on GPUs.

Started by ``torchrun --nproc-per-node 2 -m prism_motor.cli train locomotion ...`` or by ``prism
train locomotion --processes 2``, which does the same on this machine. Every process steps its own
environments; gradients and normaliser statistics are averaged, so the networks stay identical.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.multiprocessing.spawn import ProcessExitedException, start_processes

from prism_motor._checks import PrismError


@dataclass(frozen=True)
class Rank:
    """Position of this process among all processes."""

    index: int = 0
    """0 writes the run folder."""
    world_size: int = 1
    """Number of processes."""

    @property
    def is_main(self) -> bool:
        """Whether this process writes and prints."""
        return self.index == 0


ALONE = Rank()
"""The only process."""


def current_rank() -> Rank:
    """Read the rank from the environment variables set by torchrun."""
    return Rank(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def connect(rank: Rank) -> None:
    """Join the process group; a no-op for a single process."""
    if rank.world_size > 1 and not dist.is_initialized():
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, rank=rank.index, world_size=rank.world_size)


def disconnect() -> None:
    """Leave the process group."""
    if dist.is_initialized():
        dist.destroy_process_group()


def check_agreement(models: dict[str, nn.Module]) -> None:
    """Raise if the processes no longer have the same parameters."""
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
                    "data-parallel training is broken. Resume from the last checkpoint."
                )


def agree(asked: int) -> int:
    """Return the largest of the signals that ask the processes to stop, in all of them; 0: none."""
    if not dist.is_initialized():
        return asked
    flag = torch.tensor(asked)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return int(flag)


def gather(tensors: dict[str, Tensor], own: tuple[str, ...]) -> dict[str, Tensor]:
    """Collect on process 0 the tensors that differ between processes, named ``rank<i>.*``.

    Args:
        tensors: All tensors of this process.
        own: Name prefixes of the tensors that differ; the rest are the same everywhere.
    """
    if not dist.is_initialized():
        return tensors
    mine = {k: v for k, v in tensors.items() if k.startswith(own)}
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    shared = {k: v for k, v in tensors.items() if not k.startswith(own)}
    return shared | {f"rank{i}.{k}": v for i, part in enumerate(parts) for k, v in part.items()}


def launch(processes: int, work: Callable[..., None], *arguments: Any) -> None:
    """Run ``work(*arguments)`` in several local processes and wait for them to finish.

    Only this process receives Ctrl-C; it forwards it, so that all of them stop at the same update.
    A user error found by any process is raised here.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mistakes = mp.get_context("spawn").SimpleQueue()
    children: Any = start_processes(
        _child,
        args=(processes, port, mistakes, work, arguments),
        nprocs=processes,
        join=False,
        start_method="spawn",
    )
    # It would announce every process that ends with the first one that failed.
    logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)
    interrupted = False

    def pass_on(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        for pid in children.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    before = signal.signal(signal.SIGINT, pass_on)
    try:
        while not children.join(timeout=1.0):
            pass
    except ProcessExitedException as error:
        if mistakes.empty():
            raise
        raise PrismError(mistakes.get()) from error
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def _child(
    index: int, processes: int, port: int, mistakes: Any, work: Callable[..., None], args: Any
) -> None:
    os.setpgrp()  # Ctrl-C goes to the parent, which forwards it
    os.environ |= {
        "RANK": str(index),
        "LOCAL_RANK": str(index),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    try:
        work(*args)
    except PrismError as error:
        mistakes.put(str(error))
        sys.exit(2)
