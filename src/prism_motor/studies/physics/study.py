"""All training runs of the study: a learning-rate sweep, then the reported seeds."""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from prism_motor._progress import Progress
from prism_motor.studies.physics.config import TUNING_SEED, PhysicsConfig
from prism_motor.studies.physics.contenders import choose_contenders
from prism_motor.studies.physics.dataset import Dataset
from prism_motor.studies.physics.fit import Job, Standardised, fit, overall
from prism_motor.studies.physics.results import Results


def run_study(config: PhysicsConfig, dataset: Dataset, results: Results) -> None:
    """Fill ``results`` with every job of the configuration that it does not hold yet."""
    arms = [contender.name for contender in choose_contenders(config.arms)]
    sweep = [Job(arm, TUNING_SEED, rate) for arm in arms for rate in config.learning_rates]
    with _worker_pool(config, dataset) as pool:
        _run_jobs(pool, "learning-rate sweep", sweep, results)
        results.chosen = {arm: choose_rate(arm, config, results) for arm in arms}
        reported = [
            Job(arm, seed, results.chosen[arm]) for arm in arms for seed in config.reported_seeds
        ]
        _run_jobs(pool, "reported seeds", reported, results)
    results.save()


def choose_rate(arm: str, config: PhysicsConfig, results: Results) -> float:
    """Return the rate with the lowest validation error of the tuning seed."""

    def error(rate: float) -> float:
        share = overall(results.jobs[Job(arm, TUNING_SEED, rate).key]["validation"])
        return math.inf if share is None else share

    return min(config.learning_rates, key=error)


def _run_jobs(pool: ProcessPoolExecutor, title: str, jobs: Iterable[Job], results: Results) -> None:
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
    """Start worker processes; on any exception, drop the jobs that have not started."""
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
    """Hold Ctrl-C back in here; processes started meanwhile never see it.

    A terminal sends Ctrl-C to the whole group; only the parent shall answer it, and not lose one
    that comes just now.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "pthread_sigmask"):  # Windows has none
        yield
        return
    resource_tracker.ensure_running()  # when it starts, it lets the signal through again
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


_worker: dict[str, Any] = {}
"""What a worker process keeps between jobs."""


def _prepare_worker(config: PhysicsConfig, dataset: Dataset) -> None:
    import torch

    torch.set_num_threads(1)
    _worker["config"] = config
    _worker["data"] = Standardised(dataset)
    _worker["arms"] = {contender.name: contender for contender in choose_contenders(config.arms)}


def _work(job: Job) -> dict[str, Any]:
    return fit(job, _worker["arms"][job.arm], _worker["config"], _worker["data"])
