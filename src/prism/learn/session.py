"""A training session: a trainer that writes to a run folder, is interrupted and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prism.learn.config import TrainConfig
from prism.learn.guard import NonFiniteTrainingError
from prism.learn.trainer import Trainer
from prism.runs import Run, RunError, from_dict, save_checkpoint, to_dict

Report = Callable[[dict[str, float]], None]
"""Called with the metrics of every iteration."""


def start(config: TrainConfig, path: str | Path) -> tuple[Run, Trainer]:
    """Begin a new run in a new folder."""
    run = Run.create(path, to_dict(config))
    trainer = Trainer(config)
    _save(run, trainer)
    return run, trainer


def resume(path: str | Path, iterations: int | None = None) -> tuple[Run, Trainer]:
    """Go on with a run from its newest checkpoint.

    Args:
        path: The run folder.
        iterations: New total of policy updates, to train longer than planned.
    """
    run = Run.open(path)
    config = from_dict(TrainConfig, run.config, where=f"{run.path / 'config.json'}")
    checkpoint = run.load()
    if iterations is not None and iterations < checkpoint.step:
        raise RunError(
            f"{run.path} has already had {checkpoint.step} updates; --iterations {iterations} "
            "is the new total and must not be lower."
        )
    trainer = Trainer(config)
    trainer.restore(checkpoint.tensors, checkpoint.state)
    run.rewind_metrics(checkpoint.step)
    return run, trainer


def train(run: Run, trainer: Trainer, iterations: int, report: Report | None = None) -> None:
    """Train until ``iterations`` updates are done, with checkpoints on the way.

    Ctrl-C saves a checkpoint before it ends the run. A value that is not finite ends it too: the
    state from before the bad iteration is written to ``nonfinite/`` and replays it.
    """
    config = trainer.config
    while trainer.iteration < iterations:
        before = trainer.state()
        try:
            row = trainer.iterate()
        except NonFiniteTrainingError as error:
            dump = save_checkpoint(run.path / "nonfinite", before[1]["iteration"], *before)
            raise NonFiniteTrainingError(
                f"Iteration {trainer.iteration + 1} stopped: {error}. The state before it is in "
                f"{dump}; the last good checkpoint is {run.steps()[-1]}."
            ) from error
        except KeyboardInterrupt:
            trainer.restore(*before)
            _save(run, trainer)
            run.close()
            raise
        run.log(row)
        if report is not None:
            report(row)
        if trainer.iteration % config.checkpoint_every == 0 or trainer.iteration == iterations:
            _save(run, trainer)
    run.close()


def replay(path: str | Path) -> dict[str, Any]:
    """Repeat the iteration that a ``nonfinite/<step>`` dump was written for."""
    from prism.runs import load_checkpoint

    dump = Path(path)
    run = Run.open(dump.parents[1])
    config = from_dict(TrainConfig, run.config, where=f"{run.path / 'config.json'}")
    checkpoint = load_checkpoint(dump)
    trainer = Trainer(config)
    trainer.restore(checkpoint.tensors, checkpoint.state)
    return trainer.iterate()


def _save(run: Run, trainer: Trainer) -> None:
    run.save(trainer.iteration, *trainer.state())
    run.prune(trainer.config.keep_checkpoints)
