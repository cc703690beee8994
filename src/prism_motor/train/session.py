"""Training sessions: start, interrupt and resume a trainer that writes to a run folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from prism_motor._checks import InputError, PrismError
from prism_motor._console import count
from prism_motor._devices import resolve_device
from prism_motor._processes import Stopped, StopRequests
from prism_motor.domains import Domain, domain_of, open_run
from prism_motor.protocols import Trainer
from prism_motor.runs import (
    Checkpoint,
    Run,
    RunError,
    load_checkpoint,
    save_checkpoint,
    to_dict,
)
from prism_motor.runs.folder import is_unstarted
from prism_motor.runs.layout import CHECKPOINTS, NONFINITE
from prism_motor.train.distributed import ALONE, Rank, agree, check_agreement, connect, gather
from prism_motor.train.finite import NonFiniteTrainingError

if TYPE_CHECKING:
    from prism_motor.train.config import RunConfig

Report = Callable[[dict[str, float]], None]
"""Called with every row of metrics."""


def start(config: RunConfig, path: str | Path, rank: Rank = ALONE) -> tuple[Run, Trainer]:
    """Begin a new run in a new folder, which this process owns until it has trained.

    Args:
        config: The run.
        path: The folder; in data-parallel training, process 0 creates it. What a run left there
            that was cut before its first checkpoint is replaced.
        rank: Rank of this process.
    """
    domain = _domain(config)
    Run.check_new(path)
    # Make the trainer first, so that a bad config leaves no folder behind.
    config = domain.prepare(replace(config, device=resolve_device(config.device)))
    trainer = _join(domain, config, rank)
    settings = to_dict(config)
    run = Run.create(path, settings) if rank.is_main else Run(Path(path), settings)
    try:
        _attach(trainer, run.path)
        _save(run, trainer, domain, rank)
    except BaseException:
        run.close()
        raise
    return run, trainer


def resume(
    path: str | Path,
    updates: int | None = None,
    rank: Rank = ALONE,
    device: str | None = None,
) -> tuple[Run, Trainer]:
    """Resume a run from its newest intact checkpoint; this process owns it until it has trained.

    A run that was cut before its first checkpoint starts from the beginning.

    Args:
        path: The run folder.
        updates: New total number of updates, to train longer than planned.
        rank: Rank of this process; the number of processes must be the same as before.
        device: Another device of the same kind; default: the same one.
    """
    run, domain, config = open_run(path)
    config = replace(config, device=_same_kind(run, config.device, device))
    if updates is not None and updates > config.updates and not domain.can_train_longer:
        raise InputError(
            f"{run.path} cannot be trained for longer than planned: its schedule ends "
            f"after {count(config.updates, 'update')}. Start a new run with --updates {updates}."
        )
    if is_unstarted(run.path):
        return start(config, run.path, rank)
    try:
        if rank.is_main:
            run.own()
        checkpoint = run.load_intact()
        _check_resumable(run, checkpoint, updates, rank)
        trainer = _join(domain, config, rank)
        _attach(trainer, run.path)
        trainer.restore(_own_part(checkpoint.tensors, rank), checkpoint.state)
        if rank.is_main:
            run.rewind(checkpoint)
    except BaseException:
        run.close()
        raise
    return run, trainer


def _join(domain: Domain, config: RunConfig, rank: Rank) -> Trainer:
    """Make the trainer of this process, then join the others.

    In this order: the gpu engine records its graphs when it is made, and the threads of NCCL, which
    begin with the process group, may break a recording on CUDA. The folder is as it was found until
    all processes are here.
    """
    trainer = domain.trainer(config, rank)
    connect(rank)
    return trainer


def _same_kind(run: Run, before: str, wanted: str | None) -> str:
    """Return the device to resume on; on another kind a run would not go on bit for bit."""
    device = resolve_device(before if wanted is None else wanted)
    kinds = [name.partition(":")[0] for name in (before, device)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"{run.path} was trained on {before} and cannot be resumed on {device}, which rounds "
            "and draws random numbers differently. Leave --device out, or start a new run with "
            f"--config {run.config_file} --device {device}."
        )
    return device


def _check_resumable(run: Run, checkpoint: Checkpoint, updates: int | None, rank: Rank) -> None:
    """Raise unless training can go on from a checkpoint, with these processes, to this total."""
    if "param_groups" not in checkpoint.state:
        raise RunError(
            f"{run.path} holds a policy without its training state (optimiser, "
            "environments), as policies that come with prism do. It can be evaluated and exported, "
            "but not trained further: start a new run."
        )
    processes = checkpoint.state.get("world_size", 1)
    if processes != rank.world_size:
        raise RunError(
            f"{run.path} was trained by {count(processes, 'process', 'processes')}; now there are "
            f"{rank.world_size}. Use --processes {processes}."
        )
    if updates is not None and updates < checkpoint.step:
        raise InputError(
            f"{run.path} already has {count(checkpoint.step, 'update')}; --updates {updates} is "
            "the new total and must not be lower."
        )


def train(
    run: Run,
    trainer: Trainer,
    updates: int | None = None,
    report: Report | None = None,
    rank: Rank = ALONE,
) -> None:
    """Train until all updates are done, saving checkpoints along the way.

    A stop signal (Ctrl-C, termination, hang-up) lets the current update finish, saves a checkpoint
    and ends the session; a second Ctrl-C stops at once. A value that is not finite ends it too: the
    state from before the bad update is written to ``nonfinite/``, from where it can be replayed.

    Args:
        run: The run folder.
        trainer: What :func:`start` or :func:`resume` returned with it.
        updates: Total number of updates; default: the run's.
        report: Called with every row of metrics in the main process.
        rank: Rank of this process.
    """
    config: RunConfig = trainer.config
    domain = _domain(config)
    total = config.updates if updates is None else updates
    if rank.is_main:
        run.own()
    try:
        with StopRequests() as requests:
            while trainer.updates < total:
                row = trainer.update()
                if row is not None and rank.is_main:
                    run.log(row)
                    if report is not None:
                        report(row)
                stop = agree(requests.asked)
                due = trainer.updates % config.checkpoint_every == 0
                due |= trainer.updates in (total, config.reported)
                if due or stop:
                    _save(run, trainer, domain, rank)
                if stop:
                    raise Stopped(stop)
    except NonFiniteTrainingError as error:
        raise NonFiniteTrainingError(
            f"Update {trainer.updates + 1} stopped{_in_process(rank)}: {error}. "
            f"{_dump(run, trainer, rank)}; the last good checkpoint is {run.steps()[-1]}."
        ) from error
    finally:
        run.close()


def replay(dump: str | Path) -> dict[str, float] | None:
    """Repeat the failed update of a ``nonfinite/<step>`` dump."""
    folder = Path(dump)
    if not folder.is_dir():
        raise RunError(f"There is no dump {folder}. Give RUN/{NONFINITE}/STEP.")
    # A checkpoint can be repeated, too.
    within = [place for place in folder.resolve().parents if place.name in (NONFINITE, CHECKPOINTS)]
    if not within:
        raise RunError(f"{folder} is not a dump. Give RUN/{NONFINITE}/STEP.")
    _, domain, config = open_run(within[0].parent)
    checkpoint = load_checkpoint(folder)
    processes = checkpoint.state.get("world_size", 1)
    if processes > 1:
        raise RunError(
            f"{folder} is from one of {processes} processes, and an update needs all of them: "
            "only single-process runs can be replayed."
        )
    resolve_device(config.device)  # a device that is missing here is an early, clear error
    trainer = domain.trainer(config, ALONE)
    _attach(trainer, within[0].parent)
    trainer.restore(_own_part(checkpoint.tensors, ALONE), checkpoint.state)
    return trainer.update()


def _attach(trainer: Trainer, folder: Path) -> None:
    """Tell a trainer that keeps files beside its checkpoints where the run is."""
    attach = getattr(trainer, "attach", None)
    if attach is not None:
        attach(folder)


def _domain(config: RunConfig) -> Domain:
    return domain_of({"kind": config.kind, "plugins": config.plugins})


def _in_process(rank: Rank) -> str:
    return f" in process {rank.index} of {rank.world_size}" if rank.world_size > 1 else ""


def _dump(run: Run, trainer: Trainer, rank: Rank) -> str:
    """Write the state before a failed update; return where it is, or why it is not there."""
    folder = run.path / NONFINITE
    if rank.world_size > 1:  # several processes may fail in the same update
        folder /= f"rank{rank.index}"
    try:
        dump = save_checkpoint(folder, trainer.updates, *trainer.state_before())
    except (PrismError, OSError) as error:
        return f"The state before it could not be written: {str(error).rstrip('.')}"
    again = f" (prism replay {dump})" if rank.world_size == 1 else ""
    return f"The state before it is in {dump}{again}"


def _save(run: Run, trainer: Trainer, domain: Domain, rank: Rank) -> None:
    """Write a checkpoint; process 0 writes the state of all processes."""
    tensors, plain = trainer.state()
    check_agreement(trainer.models())
    tensors = gather(tensors, domain.process_tensors)
    if rank.is_main:
        run.save(trainer.updates, tensors, plain)
        run.prune(trainer.config.keep_checkpoints, trainer.config.reported)


def _own_part(tensors: dict[str, Tensor], rank: Rank) -> dict[str, Tensor]:
    """Return this process's tensors from those that :func:`gather` collected."""
    prefix = f"rank{rank.index}."
    own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    return {k: v for k, v in tensors.items() if not k.startswith("rank")} | own
