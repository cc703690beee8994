"""The whole study: simulation, learning-rate sweep, reported seeds, figures and page."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from prism_motor._checks import BugError, InputError
from prism_motor._console import Progress
from prism_motor._extras import missing_extra
from prism_motor._workers import JobResult, WorkerError, WorkerPool
from prism_motor.runs.atomic import write_text
from prism_motor.studies.fitting import Standardised, overall
from prism_motor.studies.physics.config import TUNING_SEED, PhysicsConfig
from prism_motor.studies.physics.dataset import Dataset, make_dataset
from prism_motor.studies.physics.results import PhysicsResults
from prism_motor.studies.physics.training import FitJob, choose_arms, fit


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
    with WorkerPool(partial(_Fitter, config, dataset), config.workers) as pool:
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
    pool: WorkerPool[FitJob, dict[str, Any]],
    title: str,
    jobs: Iterable[FitJob],
    results: PhysicsResults,
) -> None:
    missing = [job for job in jobs if not results.has(job)]
    if not missing:
        return
    with Progress(title, len(missing)) as progress:

        def note(done: JobResult[FitJob, dict[str, Any]]) -> None:
            if done.trace:
                raise BugError(done.trace)
            if done.result is None:
                raise WorkerError(
                    f"{done.job}: {done.failure}, twice. Finished runs are kept in "
                    f"{results.path.parent}; the same command continues."
                )
            results.add(done.job, done.result)
            progress.step(done.job.key)

        pool.run(missing, note)


class _Fitter:
    """Trains networks on the data of a study, in a worker process."""

    def __init__(self, config: PhysicsConfig, dataset: Dataset) -> None:
        import torch

        torch.set_num_threads(1)
        self._config, self._data = config, Standardised(dataset)
        self._arms = {arm.name: arm for arm in choose_arms(config.arms)}

    def __call__(self, job: FitJob) -> dict[str, Any]:
        return fit(job, self._arms[job.arm], self._config, self._data)
