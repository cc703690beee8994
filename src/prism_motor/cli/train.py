"""``prism train locomotion``: PPO on the velocity task, in a run folder that can be trusted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import UseAppendAction, arg

from prism_motor._errors import InputError


def train_locomotion(
    preset: Literal["laptop", "g1", "paper", "quadruped"] = "laptop",
    actor: Literal["mlp", "mlp-larger", "gated", "residual"] = "gated",
    degree: int | None = None,
    seed: int = 1,
    out: Path | None = None,
    resume: Path | None = None,
    envs: int | None = None,
    iterations: int | None = None,
    threads: int | None = None,
    processes: int = 1,
    video_every: int | None = None,
    arm: str | None = None,
    settings: Annotated[
        UseAppendAction[tuple[str, ...]], arg(name="set", metavar="KEY=VALUE")
    ] = (),
) -> None:
    """Train a policy that follows velocity commands.

    Args:
        preset: Task and learner: laptop (two cores), g1 (corrected task, paper-size networks),
            paper (the authors' settings to the letter), quadruped (another robot).
        actor: The arm: a plain MLP, one as large as gated, PRISM, or the paper's residual actor.
        degree: Polynomial degree of the gated and residual actors; default 2.
        seed: Training seed.
        out: Run folder; default runs/PRESET-ACTOR-SEED.
        resume: Go on with this run instead; only --iterations, --processes and --video-every may
            be given too.
        envs: Environments of all processes together; default: the preset's.
        iterations: Policy updates in all; default: the preset's.
        threads: Threads per process; default: the cores divided by the processes.
        processes: Data-parallel processes on this machine (or use torchrun). They share the
            environments, so the learning problem stays the same.
        video_every: Film the policy every so many updates, as RUN/videos/UPDATE.mp4.
        arm: What the run is called in tables; default: the actor.
        settings: Any other setting of the run, e.g. --set ppo.learning_rate=5e-4 or
            --set task.observations.actor_frames=15; config.json of a run shows all of them.
    """
    from prism_motor.train.distributed import current_rank, launch

    if processes < 1:
        raise InputError(f"--processes must be at least 1, got {processes}.")
    if video_every is not None and video_every < 1:
        raise InputError(f"--video-every must be at least 1, got {video_every}.")
    if resume is not None:
        given = {
            "--envs": envs,
            "--threads": threads,
            "--degree": degree,
            "--out": out,
            "--arm": arm,
            "--set": settings or None,
        }
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} cannot be changed on --resume: the run keeps its own.")
        work = (None, resume, iterations, video_every)
    else:
        given = {
            "actor.degree": degree,
            "envs": envs,
            "iterations": iterations,
            "threads": threads,
        }
        config = _make_config(preset, actor, seed, arm, settings, given, processes)
        name = f"{preset}-{arm or actor}" + (f"{degree}" if degree else "") + f"-{seed}"
        work = (config, out or Path("runs") / name, None, video_every)
    if video_every is not None and current_rank().is_main:
        from prism_motor.locomotion.films import check_films

        check_films()
    if processes > 1:
        launch(processes, run_training, *work)
    else:
        run_training(*work)


def _make_config(
    preset: str,
    actor: str,
    seed: int,
    arm: str | None,
    settings: tuple[str, ...],
    given: dict[str, Any],
    processes: int,
) -> object:
    """Put presets, options and ``--set`` together; a setting given twice is an error."""
    from prism_motor.locomotion.presets import make_config
    from prism_motor.runs.configs import parse_assignments
    from prism_motor.train.distributed import current_rank

    overrides = parse_assignments(settings)
    for key, value in given.items():
        if value is None:
            continue
        option = key.rpartition(".")[2]
        if key in overrides:
            raise InputError(f"Give either --{option} or --set {key}=..., not both.")
        if key == "actor.degree" and actor == "mlp":
            raise InputError("--degree applies to gated, mlp-larger and residual, not to mlp.")
        overrides[key] = value
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    overrides.setdefault("threads", max(1, cores // max(processes, current_rank().world_size)))
    return make_config(preset, actor, seed=seed, name=arm, overrides=overrides)


def run_training(
    config: object, path: Path, iterations: int | None, video_every: int | None = None
) -> None:
    """Train in this process: a new run, or without a config go on with the one at ``path``."""
    from prism_motor.locomotion.config import TrainConfig
    from prism_motor.locomotion.progress import describe
    from prism_motor.train import walking_session as session
    from prism_motor.train.distributed import connect, current_rank, disconnect
    from prism_motor.train.progress import Progress
    from prism_motor.train.tensorboard import TensorBoard

    rank = current_rank()
    connect(rank)
    try:
        if isinstance(config, TrainConfig):
            run, trainer = session.start(config, path, rank)
        else:
            run, trainer = session.resume(path, iterations, rank)
        total = iterations or trainer.config.iterations
        if not rank.is_main:
            session.train(run, trainer, total)
            return
        made = trainer.config
        print(
            f"{path}: {made.arm} on {made.preset}, {made.envs} environments, "
            f"{rank.world_size} processes x {made.threads} threads"
        )
        board = TensorBoard(run.path / "tensorboard", trainer.iteration)
        try:
            with Progress(trainer.iteration, total, describe) as progress:
                listeners = [board, progress]
                if video_every is not None:
                    from prism_motor.locomotion.films import Films

                    folder = run.path / "videos"
                    listeners.append(Films(folder, trainer, video_every, progress.say))

                def report(row: dict[str, float]) -> None:
                    for listener in listeners:
                        listener(row)

                session.train(run, trainer, total, report)
        except KeyboardInterrupt:
            more = f" --processes {rank.world_size}" if rank.world_size > 1 else ""
            more += f" --video-every {video_every}" if video_every else ""
            print(
                f"\nInterrupted after {trainer.iteration} updates; go on with: "
                f"prism train locomotion --resume {path}{more}",
                file=sys.stderr,
            )
            raise
        finally:
            board.close()
        print(
            f"Done: {trainer.iteration} updates in {trainer.seconds:.0f} s. Next: prism eval {path}"
        )
    finally:
        disconnect()
