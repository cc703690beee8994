"""Data-parallel training across processes: gloo on CPUs, NCCL on GPUs.

Started by ``torchrun --nproc-per-node 2 -m prism_motor.cli train locomotion ...`` or by ``prism
train locomotion --processes 2``, which does the same on this machine. Every process steps its own
environments; gradients and normaliser statistics are averaged, so the networks stay identical.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn

from prism_motor._checks import BugError, PrismError, find_mistake
from prism_motor._processes import (
    Stopped,
    end_with_parent,
    exit_code,
    hold_signals,
    on_stop,
    raise_stopped,
    release_signals,
)
from prism_motor._workers import describe_exit


@dataclass(frozen=True)
class Rank:
    """Position of this process among all processes."""

    index: int = 0
    """0 writes the run folder."""
    world_size: int = 1
    """Number of processes."""
    local: int = 0
    """Position among the processes of this machine."""

    @property
    def is_main(self) -> bool:
        """Whether this process writes and prints."""
        return self.index == 0


ALONE = Rank()
"""The only process."""

_joined = threading.Event()
"""Whether this process has ever been in a process group."""


def current_rank() -> Rank:
    """Read the rank from the environment variables set by torchrun."""
    names = ("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)
    return Rank(*(int(os.environ.get(name, default)) for name, default in names))


def connect(rank: Rank) -> None:
    """Join the process group; a no-op for a single process.

    NCCL moves tensors on GPUs, gloo those on the CPU, of which every run has some. Returns once all
    processes have joined.
    """
    if rank.world_size > 1 and not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        with _without_greetings():
            dist.init_process_group(backend, rank=rank.index, world_size=rank.world_size)
        agree(0)  # gloo lets go of who has reached the others, before all of them have reached it
        _joined.set()


@contextlib.contextmanager
def _without_greetings() -> Iterator[None]:
    """Drop what libraries write to the output below Python, as gloo does about its peers."""
    try:
        before = os.dup(1)
    except OSError:  # closed
        yield
        return
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


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


_PATIENCE = {"stop": 120.0, "mistake": 15.0, "bug": 15.0, "": 5.0}
"""Seconds that the others have to end after the first process that did, by what it reported; the
last is also for those that ended before training began, when others have nothing to save."""


def launch(processes: int, work: Callable[..., None], *arguments: Any) -> None:
    """Run ``work(*arguments)`` in several local processes and wait for them to finish.

    Stop signals are passed on, so that all of them stop at the same update. What went wrong first
    in any of them is raised here: a user's mistake, a bug, or that one was killed.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    team: list[_Child] = []
    asked = 0

    def pass_on(number: int) -> None:
        nonlocal asked
        asked = asked or number
        for child in team:
            child.send_signal(number)

    with on_stop(pass_on):
        started = [_Child(rank, processes, port, work, arguments) for rank in range(processes)]
        team.extend(started)
        if asked:  # before they could be told
            pass_on(asked)
        _wait(team)
        for child in team:
            child.end()
    reports = sorted((child.report for child in team if child.report), key=lambda one: one.time)
    for report in reports:
        if report.kind == "mistake":
            raise PrismError(report.text)
    stops = [int(report.text) for report in reports if report.kind == "stop"]
    if stops:
        raise Stopped(asked or stops[0])
    for child in team:
        if child.code and not child.report and not child.ended_here:
            raise PrismError(
                f"Process {child.rank} of {processes} ended with {describe_exit(child.code)}, so "
                "the others ended, too. Resume from the last checkpoint: prism train --resume RUN "
                f"--processes {processes}"
            )
    for report in reports:
        raise BugError(report.text)


@dataclass(frozen=True)
class _Report:
    """How a process failed."""

    kind: str
    """``mistake``, ``bug`` or ``stop``."""
    text: str
    """The message, the traceback or the signal."""
    time: float
    """When, by a clock that all processes share."""
    joined: bool
    """Whether the process had joined the others."""


class _Child:
    """One of the processes, and what it reported."""

    def __init__(
        self, rank: int, processes: int, port: int, work: Callable[..., None], arguments: Any
    ) -> None:
        self.rank = rank
        self.report: _Report | None = None
        self.ended_here = False
        context = mp.get_context("spawn")
        self.connection, other = context.Pipe(duplex=False)
        given = (rank, processes, port, other, os.getpid(), work, arguments)
        self._process = context.Process(target=_child, args=given, daemon=True)
        with hold_signals():
            self._process.start()
        other.close()

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.pid is not None and self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def hear(self) -> None:
        """Receive the report, or learn that there is none, and wait for the end."""
        with contextlib.suppress(EOFError, ConnectionError):
            self.report = self.connection.recv()
        self.connection.close()
        self._process.join()

    def end(self) -> None:
        if self.code is None:
            self.ended_here = True
            self._process.kill()
            self._process.join()


def _wait(team: list[_Child]) -> None:
    """Wait until all have ended, or for a few seconds after one has failed."""
    running = {child.connection: child for child in team}
    deadline = math.inf
    while running and time.monotonic() < deadline:
        for connection in wait(list(running), timeout=0.5):
            child = running.pop(connection)  # type: ignore[call-overload]
            child.hear()
            if child.code:  # alone, none of the others can go on
                report = child.report
                kind = report.kind if report and report.joined else ""
                deadline = min(deadline, time.monotonic() + _PATIENCE[kind])


def _child(
    rank: int,
    processes: int,
    port: int,
    connection: Connection,
    parent: int,
    work: Callable[..., None],
    arguments: Any,
) -> None:
    end_with_parent(parent)
    os.setpgrp()  # Ctrl-C goes to the parent, which passes it on
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    kind, text, code = "", "", 0
    try:
        with on_stop(raise_stopped):
            release_signals()
            work(*arguments)
    except KeyboardInterrupt as stop:
        code = exit_code(stop)
        kind, text = "stop", str(code - 128)
    except Exception as error:
        mistake = find_mistake(error)
        kind, text = ("bug", traceback.format_exc()) if mistake is None else ("mistake", mistake)
        code = 1 if mistake is None else 2
    if code:
        with contextlib.suppress(ConnectionError):
            connection.send(_Report(kind, text, time.monotonic(), _joined.is_set()))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # without waiting for other processes, as the end of a group would
