"""``prism train manipulation``: Diffusion Policy on demonstrations, in a run folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import UseAppendAction, arg

from prism_motor._errors import InputError

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ImitationConfig
    from prism_motor.manipulation.diffusion.trainer import Trainer
    from prism_motor.runs import Run


def train_manipulation(
    suite: Literal[
        "metaworld", "libero_spatial", "libero_object", "libero_goal", "libero_10"
    ] = "metaworld",
    task: str = "reach-v3",
    conditioner: Literal["prism", "linear", "mlp"] = "prism",
    preset: Literal["state", "laptop", "paper"] = "state",
    demos: str | None = None,
    seed: int = 1,
    steps: int | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    threads: int | None = None,
    arm: str | None = None,
    settings: Annotated[
        UseAppendAction[tuple[str, ...]], arg(name="set", metavar="KEY=VALUE")
    ] = (),
) -> None:
    """Train LeRobot's Diffusion Policy on demonstrations of one task.

    All arms have the same data, batches, updates and noise; only the conditioner differs.

    Args:
        suite: The benchmark.
        task: Name or number of the task.
        conditioner: What the state history passes: prism, linear (LeRobot's own policy), or mlp
            (as many parameters as prism; --set conditioner.mlp_size=larger for more).
        preset: state (object poses instead of images, minutes), laptop (64-pixel images and a
            small encoder, about an hour on two cores), paper (the authors' settings, a GPU).
        demos: Demonstrations: a folder of prism demos or a dataset on the hub, e.g.
            HuggingFaceVLA/libero; default demos/SUITE-TASK.
        seed: Training seed.
        steps: Updates; default: the preset's.
        out: Run folder; default runs/SUITE-TASK-PRESET-CONDITIONER-SEED.
        resume: Go on with this run instead; nothing else may be given.
        threads: Threads of torch; default: all cores.
        arm: What the run is called in tables; default: the conditioner.
        settings: Any other setting of the run, e.g. --set optimiser.learning_rate=3e-4 or
            --set device=cuda; config.json of a run shows all of them.
    """
    from prism_motor.manipulation.data import load_for
    from prism_motor.runs.configs import parse_assignments
    from prism_motor.train import handling_session as session

    if resume is not None:
        given = {"--steps": steps, "--out": out, "--threads": threads, "--arm": arm}
        given |= {"--set": settings or None, "--demos": demos}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} cannot be changed on --resume: the run keeps its own.")
        config = session.read_config(resume)
        demonstrations = load_for(config)
        run, trainer = session.resume(resume, demonstrations)
    else:
        overrides = parse_assignments(settings)
        for key, value in (("steps", steps), ("threads", threads)):
            if value is not None and key in overrides:
                raise InputError(f"Give either --{key} or --set {key}=..., not both.")
            if value is not None:
                overrides[key] = value
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        overrides.setdefault("threads", cores)
        config = _make_config(suite, task, conditioner, preset, demos, seed, arm, overrides)
        name = f"{suite}-{config.task.name}-{preset}-{config.arm}-{seed}"
        path = out or Path("runs") / name
        demonstrations = load_for(config)
        run, trainer = session.start(config, demonstrations, path)
    _train(run, trainer)


def _make_config(
    suite: str,
    task: str,
    conditioner: str,
    preset: str,
    demos: str | None,
    seed: int,
    arm: str | None,
    overrides: dict[str, Any],
) -> ImitationConfig:
    from prism_motor.manipulation.presets import make_config
    from prism_motor.manipulation.tasks import find_task, make_environment

    chosen = find_task(suite, task)
    environment = make_environment(chosen)
    try:
        source = demos or str(Path("demos") / f"{suite}-{chosen.name}")
        return make_config(
            preset, conditioner, environment, source, seed=seed, name=arm, overrides=overrides
        )
    finally:
        environment.close()


def _train(run: Run, trainer: Trainer) -> None:
    from prism_motor.manipulation.diffusion.policy import export_policy, load_policy
    from prism_motor.train import handling_session as session
    from prism_motor.train.progress import Progress
    from prism_motor.train.tensorboard import TensorBoard

    config = trainer.config
    size = sum(parameter.numel() for parameter in trainer.policy.parameters())
    print(
        f"{run.path}: {config.arm} on {config.task.suite} {config.task.name}, preset "
        f"{config.preset}, {size:,} parameters, {len(trainer.windows):,} samples"
    )
    board = TensorBoard(run.path / "tensorboard", trainer.iteration)
    try:
        with Progress(trainer.iteration, config.steps, _describe) as progress:

            def report(row: dict[str, float]) -> None:
                board(row)
                progress(row)

            session.train(run, trainer, report)
    except KeyboardInterrupt:
        print(
            f"\nInterrupted after {trainer.iteration} updates; go on with: "
            f"prism train manipulation --resume {run.path}",
            file=sys.stderr,
        )
        raise
    finally:
        board.close()
    folder = export_policy(load_policy(run.path), run.path / "pretrained")
    print(
        f"Done: {trainer.iteration} updates in {trainer.seconds:.0f} s. For LeRobot: {folder}. "
        f"Next: prism eval {run.path}"
    )


def _describe(row: dict[str, float]) -> str:
    """Say in one line how training does."""
    return (
        f"loss {row['loss']:.4f}  gradient {row['gradient_norm']:.2f}  "
        f"{row['updates_per_second']:.1f} updates/s"
    )
