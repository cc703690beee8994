"""The whole study: simulation, learning-rate sweep, reported seeds, figures and page."""

from __future__ import annotations

import math
import multiprocessing
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from prism_motor._checks import InputError
from prism_motor._console import Progress
from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import write_text
from prism_motor.studies.physics.config import TUNING_SEED, PhysicsConfig
from prism_motor.studies.physics.dataset import Dataset, make_dataset
from prism_motor.studies.physics.results import PhysicsResults
from prism_motor.studies.physics.training import (
    FitJob,
    Standardised,
    choose_arms,
    fit,
    overall,
)


def run_physics(config: PhysicsConfig, out: Path, command: str = "prism physics") -> Path:
    """Run the study into ``out`` and return the path of its page.

    Finished jobs of an earlier call with the same settings are reused.

    Args:
        config: What to run.
        out: Output folder: results.json, figure.png and index.html.
        command: The command to show on the page.
    """
    # Find user errors before the simulation starts.
    _check_extra()
    if not any(arm.budget_scale == 1.0 for arm in choose_arms(config.arms)):
        raise InputError(
            f"arms={config.arms} has no arm of the common budget to compare; add e.g. "
            "'mlp-matched'."
        )
    _prepare_folder(out)
    results = PhysicsResults(out, config)
    # Simulate the data, then run all training jobs that are not done yet.
    episodes = config.train_episodes + config.validation_episodes + config.test_episodes
    with Progress("simulating episodes", episodes) as progress:
        dataset = make_dataset(config, progress.step)
    fit_all(config, dataset, results)

    from matplotlib import rc_context

    from prism_motor._figures import STYLE
    from prism_motor.studies.physics.figures import draw_overview
    from prism_motor.studies.physics.page import draw_pictures, render_physics
    from prism_motor.studies.physics.summary import summarise, text_tables, verdict

    # Summarise the results.
    summaries = summarise(config, results)
    with rc_context(STYLE):
        draw_overview(summaries, config.seeds).savefig(out / "figure.png", dpi=160)
        pictures = draw_pictures(config, dataset, results, summaries)
    page = out / "index.html"
    write_text(page, render_physics(config, results, summaries, pictures, command))
    print(f"\n{text_tables(summaries)}\n")
    if config.quick:
        print("--quick only checks that everything works: these numbers mean nothing.")
    else:
        print("\n".join(f"- {subject}{finding}" for subject, finding in verdict(summaries)))
    return page


def _check_extra() -> None:
    """Find a missing package before the simulation starts."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import mujoco  # noqa: F401
        import scipy  # noqa: F401
        import tqdm  # noqa: F401
    except ImportError as error:
        raise missing_extra("prism_motor.studies.physics", "analysis", error) from error


def _prepare_folder(out: Path) -> None:
    """Create the folder and check that it is writable."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(
            f"Cannot write to the output folder {out} ({error.strerror}). "
            "Choose another one with --out."
        ) from error


def fit_all(config: PhysicsConfig, dataset: Dataset, results: PhysicsResults) -> None:
    """Run every job of the configuration that ``results`` does not have yet."""
    arms = [arm.name for arm in choose_arms(config.arms)]
    sweep = [FitJob(arm, TUNING_SEED, rate) for arm in arms for rate in config.learning_rates]
    with _worker_pool(config, dataset) as pool:
        _run_jobs(pool, "learning-rate sweep", sweep, results)
        results.chosen = {arm: choose_rate(arm, config, results) for arm in arms}
        reported = [
            FitJob(arm, seed, results.chosen[arm]) for arm in arms for seed in config.reported_seeds
        ]
        _run_jobs(pool, "reported seeds", reported, results)
    results.save()


def choose_rate(arm: str, config: PhysicsConfig, results: PhysicsResults) -> float:
    """Return the rate with the lowest validation error on the tuning seed."""

    def error(rate: float) -> float:
        share = overall(results.jobs[FitJob(arm, TUNING_SEED, rate).key]["validation"])
        return math.inf if share is None else share

    return min(config.learning_rates, key=error)


def _run_jobs(
    pool: ProcessPoolExecutor, title: str, jobs: Iterable[FitJob], results: PhysicsResults
) -> None:
    missing = [job for job in jobs if not results.has(job)]
    if not missing:
        return
    with _interrupts_held():  # the first submission starts the processes
        futures = {pool.submit(_work, job): job for job in missing}
    with Progress(title, len(missing)) as progress:
        for future in as_completed(futures):
            results.add(futures[future], future.result())
            progress.step(futures[future].key)


@contextmanager
def _worker_pool(config: PhysicsConfig, dataset: Dataset) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes; on any exception, cancel the jobs that have not started."""
    pool = ProcessPoolExecutor(
        config.workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare_worker,
        initargs=(config, dataset),
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Defer Ctrl-C inside the block; processes started there never receive it.

    A terminal sends Ctrl-C to the whole process group; only the parent should handle it, without
    losing one that arrives now.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    resource_tracker.ensure_running()  # unblocks the signal when it starts
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


_worker: dict[str, Any] = {}
"""State of a worker process between jobs."""


def _prepare_worker(config: PhysicsConfig, dataset: Dataset) -> None:
    import torch

    torch.set_num_threads(1)
    _worker["config"] = config
    _worker["data"] = Standardised(dataset)
    _worker["arms"] = {arm.name: arm for arm in choose_arms(config.arms)}


def _work(job: FitJob) -> dict[str, Any]:
    return fit(job, _worker["arms"][job.arm], _worker["config"], _worker["data"])
