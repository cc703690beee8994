"""A training session: a trainer that writes to a run folder, is interrupted and goes on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from torch import Tensor

from prism_motor._checks import InputError
from prism_motor._console import count
from prism_motor.domains import Domain, Trainer, domain_of, open_run
from prism_motor.runs import Run, RunError, load_checkpoint, save_checkpoint, to_dict
from prism_motor.runs.layout import NONFINITE
from prism_motor.train.distributed import ALONE, Rank, agree, check_agreement, gather
from prism_motor.train.finite import NonFiniteTrainingError

if TYPE_CHECKING:
    from prism_motor.train.config import RunConfig

Report = Callable[[dict[str, float]], None]
"""Called with every row of metrics."""


def start(config: RunConfig, path: str | Path, rank: Rank = ALONE) -> tuple[Run, Trainer]:
    """Begin a new run in a new folder.

    Args:
        config: The run.
        path: The folder; in data-parallel training process 0 makes it.
        rank: This process among all.
    """
    domain = _domain(config)
    if rank.is_main:
        Run.check_new(path)
    # What cannot be trained is refused before there is a folder.
    config = domain.prepare(config)
    trainer = domain.trainer(config, rank)
    settings = to_dict(config)
    run = Run.create(path, settings) if rank.is_main else Run(Path(path), settings)
    _save(run, trainer, domain, rank)
    return run, trainer


def resume(path: str | Path, updates: int | None = None, rank: Rank = ALONE) -> tuple[Run, Trainer]:
    """Go on with a run from its newest checkpoint.

    Args:
        path: The run folder.
        updates: New total of updates, to train longer than planned.
        rank: This process among all; there must be as many as before.
    """
    run, domain, config = open_run(path)
    checkpoint = run.load()
    if "param_groups" not in checkpoint.state:
        raise RunError(
            f"{run.path} holds a policy without the state of its training (optimiser, "
            "environments), as policies that come with prism do. It can be evaluated and exported, "
            "but training cannot go on from it: start a new run."
        )
    processes = checkpoint.state.get("world_size", 1)
    if processes != rank.world_size:
        raise RunError(
            f"{run.path} was trained by {count(processes, 'process', 'processes')}, now there are "
            f"{rank.world_size}. Start as many: --processes {processes}."
        )
    if updates is not None and updates < checkpoint.step:
        raise InputError(
            f"{run.path} has already had {checkpoint.step} updates; --updates {updates} is the new "
            "total and must not be lower."
        )
    if updates is not None and updates > config.updates and not domain.can_train_longer:
        raise InputError(
            f"{run.path} cannot have more updates than planned: its learning rate ends with them, "
            f"and {count(config.updates, 'update')} are part of its settings. Start a new run with "
            f"--updates {updates}."
        )
    trainer = domain.trainer(config, rank)
    trainer.restore(_own_part(checkpoint.tensors, rank), checkpoint.state)
    if rank.is_main:
        run.rewind_metrics(checkpoint.step)
    return run, trainer


def train(
    run: Run,
    trainer: Trainer,
    updates: int | None = None,
    report: Report | None = None,
    rank: Rank = ALONE,
) -> None:
    """Train until all updates are done, with checkpoints on the way.

    Ctrl-C lets the update end and saves a checkpoint before it ends the session; a second one ends
    it at once. A value that is not finite ends it too: the state from before the bad update is
    written to ``nonfinite/`` and replays it.

    Args:
        run: The run folder.
        trainer: What :func:`start` or :func:`resume` returned with it.
        updates: Updates in all; default: the run's own number.
        report: Called with every row of metrics, in the main process.
        rank: This process among all.
    """
    config: RunConfig = trainer.config
    domain = _domain(config)
    total = config.updates if updates is None else updates
    try:
        with Interrupts() as interrupts:
            while trainer.updates < total:
                row = trainer.update()
                if row is not None and rank.is_main:
                    run.log(row)
                    if report is not None:
                        report(row)
                stop = agree(interrupts.asked)
                due = trainer.updates % config.checkpoint_every == 0 or trainer.updates == total
                if due or stop:
                    _save(run, trainer, domain, rank)
                if stop:
                    raise KeyboardInterrupt
    except NonFiniteTrainingError as error:
        dump = save_checkpoint(run.path / NONFINITE, trainer.updates, *trainer.state_before())
        raise NonFiniteTrainingError(
            f"Update {trainer.updates + 1} stopped: {error}. The state before it is in {dump} "
            f"(prism replay {dump}); the last good checkpoint is {run.steps()[-1]}."
        ) from error
    finally:
        run.close()


def replay(dump: str | Path) -> dict[str, float] | None:
    """Repeat the update that a ``nonfinite/<step>`` dump was written for."""
    folder = Path(dump)
    _, domain, config = open_run(folder.resolve().parents[1])
    checkpoint = load_checkpoint(folder)
    processes = checkpoint.state.get("world_size", 1)
    if processes > 1:
        raise RunError(
            f"{folder} is the share of one of {processes} processes, and an update needs them all: "
            "only runs of one process can be replayed."
        )
    trainer = domain.trainer(config, ALONE)
    trainer.restore(_own_part(checkpoint.tensors, ALONE), checkpoint.state)
    return trainer.update()


class Interrupts:
    """Holds back the first Ctrl-C while used as a context manager; a second one comes through.

    Attributes:
        asked: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupts:
        self._changed = threading.current_thread() is threading.main_thread()
        if self._changed:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._changed:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _domain(config: RunConfig) -> Domain:
    return domain_of({"kind": config.kind, "plugins": config.plugins})


def _save(run: Run, trainer: Trainer, domain: Domain, rank: Rank) -> None:
    """Write a checkpoint; with several processes, process 0 writes what all of them hold."""
    tensors, plain = trainer.state()
    check_agreement(trainer.models())
    tensors = gather(tensors, domain.process_tensors)
    if rank.is_main:
        run.save(trainer.updates, tensors, plain)
        run.prune(trainer.config.keep_checkpoints)


def _own_part(tensors: dict[str, Tensor], rank: Rank) -> dict[str, Tensor]:
    """Pick this process's share out of what :func:`gather` wrote."""
    prefix = f"rank{rank.index}."
    own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    return {k: v for k, v in tensors.items() if not k.startswith("rank")} | own
