"""``prism eval``: how a trained policy does, by a protocol that is the same for all."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from prism_motor._errors import InputError

WALKING_SEEDS, MANIPULATION_SEEDS = (101, 102, 103), (101,)
"""Evaluation seeds, unless others are given."""


def eval_(
    run: Positional[Path],
    conditions: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (),
    envs: int | None = None,
    episodes: int | None = None,
    threads: int = 1,
    checkpoint: int | None = None,
    again: bool = False,
    corrector: str = "none",
    videos: int = 0,
    traces: bool = False,
    linger: int = 0,
    stiffness: float | None = None,
    workers: int = 0,
) -> None:
    """Evaluate a trained policy and write every episode to RUN/evaluations.

    A walking policy acts by its mean; the first episodes of every environment count, no matter how
    long they last. A manipulation policy begins from the task's fixed initial states, one episode
    each, and ends with success or the horizon. A second call with the same checkpoint only does
    what is missing.

    Args:
        run: The run folder, or the name of a policy that comes with prism.
        conditions: Walking: any of nominal (default), low-friction, payload, pushes, training.
            Manipulation: any of none (default), delay, proprioception, image, combined.
        seeds: Evaluation seeds; default: 101 102 103, for manipulation 101.
        envs: Environments per seed, for walking; default 100.
        episodes: Episodes per environment, default 2; for manipulation per seed, default 20.
        threads: Threads of the simulation, or of a manipulation policy.
        checkpoint: Which checkpoint; default: the newest.
        again: Repeat what is done already.
        corrector: Manipulation: what changes actions at execution time, a baseline of the paper:
            mcc-sensorless, mcc-oracle, or a compliance.json of prism compliance.
        videos: Manipulation: how many of the first episodes to film, as RUN/videos/*.mp4.
        traces: Manipulation: keep force, motion and action of every step, as .npz files.
        linger: Manipulation: steps to go on after success; they count in traces alone.
        stiffness: Manipulation: Kp of LIBERO's controller; the paper's comparison has 50 for all
            arms. Default: LIBERO's own, 150.
        workers: Manipulation: processes that run episodes; 0: this one. One that crashes costs its
            episode a second try, no more.
    """
    from prism_motor.cli._shipped import writable
    from prism_motor.nn.checks import check_size
    from prism_motor.runs import Run

    check_size("prism eval", "--threads", threads)
    run = writable(run)
    if Run.open(run).config.get("kind") == "manipulation":
        from prism_motor.cli.evaluate_manipulation import evaluate_manipulation

        if envs is not None:
            raise InputError("--envs is for walking; manipulation has --episodes and --seeds.")
        evaluate_manipulation(
            run,
            conditions or ("none",),
            seeds or MANIPULATION_SEEDS,
            20 if episodes is None else episodes,
            threads,
            checkpoint,
            again,
            corrector,
            videos,
            traces,
            linger,
            stiffness,
            workers,
        )
        return
    if corrector != "none" or videos or traces or linger or stiffness is not None or workers:
        raise InputError(
            "--corrector, --videos, --traces, --linger, --stiffness and --workers are for "
            f"manipulation, and {run} walks: use prism video and prism traces."
        )
    _evaluate_walking(
        run,
        conditions or ("nominal",),
        seeds or WALKING_SEEDS,
        envs,
        episodes,
        threads,
        checkpoint,
        again,
    )


def _evaluate_walking(
    run: Path,
    conditions: tuple[str, ...],
    seeds: tuple[int, ...],
    envs: int | None,
    episodes: int | None,
    threads: int,
    checkpoint: int | None,
    again: bool,
) -> None:
    from prism_motor.locomotion.evaluation import Protocol
    from prism_motor.locomotion.summary import summarise, table
    from prism_motor.train.walking_evaluations import Evaluations

    given = {"envs": envs, "episodes": episodes}
    protocol = Protocol(**{name: value for name, value in given.items() if value is not None})
    evaluations = Evaluations(run, protocol, checkpoint)
    todo = evaluations.plan(conditions, seeds, again)
    skipped = len(conditions) * len(seeds) - len(todo)
    if skipped:
        print(f"{skipped} evaluations are done already (--again repeats them).")
    policy = evaluations.policy
    found: dict[str, list] = {condition: [] for condition in conditions}
    with _Progress(
        len(todo), protocol.episodes * (policy.config.task.episode_steps + 1)
    ) as progress:
        for condition in conditions:
            for seed in seeds:
                if (condition, seed) in todo:
                    progress.begin(f"{condition}, seed {seed}")
                    rows = evaluations.measure(
                        condition, seed, threads=threads, report=progress.step
                    )
                    alive = sum(row.survived for row in rows)
                    progress.end(f"{alive} of {len(rows)} episodes survived")
                else:
                    rows = evaluations.read(condition, seed) or []
                found[condition] += rows
    config = policy.config
    print(
        f"\n{run}: {config.arm} on {config.preset}, training seed {config.seed}, checkpoint "
        f"{policy.step}\n"
    )
    print(table({condition: summarise(rows) for condition, rows in found.items()}))
    print(
        "\nMean ± SD over episodes, survival with its 95 % Wilson interval. All episodes are of "
        "one trained\npolicy: none of this says how training seeds differ."
    )


class _Progress:
    """A bar over all evaluations on a terminal, plain lines elsewhere."""

    def __init__(self, evaluations: int, steps: int, every: float = 10.0) -> None:
        self.steps, self.every = steps, every
        self.bar: Any = None
        if evaluations and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=evaluations * steps, unit="step", dynamic_ncols=True)

    def begin(self, title: str) -> None:
        """Start an evaluation."""
        self.title, self.done = title, 0
        self.began = self.shown = time.monotonic()
        if self.bar is not None:
            self.bar.set_description_str(title)

    def step(self) -> None:
        """Count one control step; an evaluation takes at most ``steps`` of them."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        elif time.monotonic() - self.shown > self.every:
            self.shown = time.monotonic()
            print(f"{self.title}: {100 * self.done / self.steps:.0f} %", flush=True)

    def end(self, result: str) -> None:
        """Finish an evaluation."""
        line = f"{self.title}: {result} ({time.monotonic() - self.began:.0f} s)"
        if self.bar is not None:
            self.bar.update(self.steps - self.done)
            self.bar.write(line)
        else:
            print(line, flush=True)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
