"""A training session: a trainer that writes to a run folder, is interrupted and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prism_motor.manipulation.config import KIND, ImitationConfig
from prism_motor.manipulation.demonstrations.cache import Demonstrations
from prism_motor.manipulation.diffusion.trainer import Trainer
from prism_motor.runs import Run, RunError, from_dict, save_checkpoint, to_dict
from prism_motor.train.finite import NonFiniteTrainingError
from prism_motor.train.interrupts import Interrupts

Report = Callable[[dict[str, float]], None]
"""Called with every line of metrics."""


def start(
    config: ImitationConfig, demonstrations: Demonstrations, path: str | Path
) -> tuple[Run, Trainer]:
    """Begin a new run in a new folder."""
    trainer = Trainer(config, demonstrations)
    run = Run.create(path, to_dict(config))
    _save(run, trainer)
    return run, trainer


def read_config(path: str | Path) -> ImitationConfig:
    """Read the config of a run that learned from demonstrations."""
    run = Run.open(path)
    if run.config.get("kind") != KIND:
        raise RunError(f"{run.path} is not a run of prism train manipulation.")
    return from_dict(ImitationConfig, run.config, where=f"{run.path / 'config.json'}")


def resume(path: str | Path, demonstrations: Demonstrations) -> tuple[Run, Trainer]:
    """Go on with a run from its newest checkpoint."""
    config = read_config(path)
    run = Run.open(path)
    checkpoint = run.load()
    if "param_groups" not in checkpoint.state:
        raise RunError(
            f"{run.path} holds a policy without the state of its training. It can be evaluated "
            "and exported, but training cannot go on from it: start a new run."
        )
    trainer = Trainer(config, demonstrations)
    trainer.restore(checkpoint.tensors, checkpoint.state)
    run.rewind_metrics(checkpoint.step)
    return run, trainer


def train(run: Run, trainer: Trainer, report: Report | None = None) -> None:
    """Train until all updates are done, with checkpoints on the way.

    Ctrl-C lets the update end and saves a checkpoint before it ends the run. A value that is not
    finite ends it too: the state from before the bad update is written to ``nonfinite/``.
    """
    config = trainer.config
    try:
        with Interrupts() as interrupts:
            while trainer.iteration < config.steps:
                row = trainer.update()
                if row is not None:
                    run.log(row)
                    if report is not None:
                        report(row)
                due = trainer.iteration % config.checkpoint_every == 0
                if due or trainer.iteration == config.steps or interrupts.asked:
                    _save(run, trainer)
                if interrupts.asked:
                    raise KeyboardInterrupt
    except NonFiniteTrainingError as error:
        dump = save_checkpoint(
            run.path / "nonfinite", trainer.iteration, *trainer.state(before_update=True)
        )
        raise NonFiniteTrainingError(
            f"Update {trainer.iteration + 1} stopped: {error}. The state before it is in {dump}; "
            f"the last good checkpoint is {run.steps()[-1]}."
        ) from error
    finally:
        run.close()


def _save(run: Run, trainer: Trainer) -> None:
    run.save(trainer.iteration, *trainer.state())
    run.prune(trainer.config.keep_checkpoints)
