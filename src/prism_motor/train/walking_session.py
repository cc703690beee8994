"""A training session: a trainer that writes to a run folder, is interrupted and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from prism_motor.locomotion.config import TrainConfig
from prism_motor.locomotion.trainer import Trainer
from prism_motor.runs import Run, RunError, from_dict, load_checkpoint, save_checkpoint, to_dict
from prism_motor.train.distributed import Rank, check_agreement, gather
from prism_motor.train.finite import NonFiniteTrainingError

ALONE = Rank()
"""The only process."""

Report = Callable[[dict[str, float]], None]
"""Called with the metrics of every iteration."""

State = tuple[dict[str, Tensor], dict[str, Any]]
"""Tensors and plain data that training goes on from."""


def start(config: TrainConfig, path: str | Path, rank: Rank = ALONE) -> tuple[Run, Trainer]:
    """Begin a new run in a new folder.

    Args:
        config: The run.
        path: The folder; in data-parallel training process 0 makes it.
        rank: This process among all.
    """
    run = Run.create(path, to_dict(config)) if rank.is_main else Run(Path(path), to_dict(config))
    trainer = Trainer(config, rank=rank.index, world_size=rank.world_size)
    _save(run, trainer, trainer.state())
    return run, trainer


def resume(
    path: str | Path, iterations: int | None = None, rank: Rank = ALONE
) -> tuple[Run, Trainer]:
    """Go on with a run from its newest checkpoint.

    Args:
        path: The run folder.
        iterations: New total of policy updates, to train longer than planned.
        rank: This process among all; there must be as many as before.
    """
    run = Run.open(path)
    config = from_dict(TrainConfig, run.config, where=f"{run.path / 'config.json'}")
    checkpoint = run.load()
    if "param_groups" not in checkpoint.state:
        raise RunError(
            f"{run.path} holds a policy without the state of its training (optimiser, "
            "environments), as policies that come with prism do. It can be evaluated, filmed and "
            "exported, but training cannot go on from it: start a new run."
        )
    if checkpoint.state["world_size"] != rank.world_size:
        raise RunError(
            f"{run.path} was trained by {checkpoint.state['world_size']} processes, now there are "
            f"{rank.world_size}. Start as many: --processes {checkpoint.state['world_size']}."
        )
    if iterations is not None and iterations < checkpoint.step:
        raise RunError(
            f"{run.path} has already had {checkpoint.step} updates; --iterations {iterations} "
            "is the new total and must not be lower."
        )
    trainer = Trainer(config, rank=rank.index, world_size=rank.world_size)
    trainer.restore(_own_part(checkpoint.tensors, rank), checkpoint.state)
    if rank.is_main:
        run.rewind_metrics(checkpoint.step)
    return run, trainer


def train(run: Run, trainer: Trainer, iterations: int, report: Report | None = None) -> None:
    """Train until ``iterations`` updates are done, with checkpoints on the way.

    Ctrl-C saves a checkpoint before it ends the run. A value that is not finite ends it too: the
    state from before the bad iteration is written to ``nonfinite/`` and replays it.
    """
    config = trainer.config
    before = trainer.state()
    try:
        while trainer.iteration < iterations:
            row = trainer.iterate()
            if trainer.rank == 0:
                run.log(row)
            if report is not None:
                report(row)
            before = trainer.state()
            if trainer.iteration % config.checkpoint_every == 0 or trainer.iteration == iterations:
                _save(run, trainer, before)
    except NonFiniteTrainingError as error:
        dump = save_checkpoint(run.path / "nonfinite", before[1]["iteration"], *before)
        raise NonFiniteTrainingError(
            f"Iteration {trainer.iteration + 1} stopped: {error}. The state before it is in "
            f"{dump}; the last good checkpoint is {run.steps()[-1]}."
        ) from error
    except KeyboardInterrupt:
        if trainer.world_size == 1:  # several processes may be an iteration apart
            trainer.restore(*before)
            _save(run, trainer, before)
        run.close()
        raise
    run.close()


def replay(path: str | Path) -> dict[str, Any]:
    """Repeat the iteration that a ``nonfinite/<step>`` dump was written for."""
    dump = Path(path)
    run = Run.open(dump.parents[1])
    config = from_dict(TrainConfig, run.config, where=f"{run.path / 'config.json'}")
    checkpoint = load_checkpoint(dump)
    trainer = Trainer(config)
    trainer.restore(checkpoint.tensors, checkpoint.state)
    return trainer.iterate()


def _save(run: Run, trainer: Trainer, state: State) -> None:
    """Write a checkpoint; with several processes, process 0 writes what all of them hold."""
    tensors, plain = state
    check_agreement({"actor": trainer.ppo.actor, "critic": trainer.ppo.critic})
    tensors = gather(tensors, _OWN)
    if trainer.rank == 0:
        run.save(trainer.iteration, tensors, plain)
        run.prune(trainer.config.keep_checkpoints)


_OWN = ("env.", "torch_rng")
"""What differs between processes: their environments and their random numbers."""


def _own_part(tensors: dict[str, Tensor], rank: Rank) -> dict[str, Tensor]:
    """Pick this process's share out of what :func:`gather` wrote."""
    prefix = f"rank{rank.index}."
    own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    return {k: v for k, v in tensors.items() if not k.startswith("rank")} | own
