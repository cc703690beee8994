"""Runs what is missing of a laboratory, cell by cell, in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from prism_motor._checks import BugError
from prism_motor._console import Progress, count
from prism_motor._workers import Job, JobResult, Result, WorkerError, WorkerPool
from prism_motor.studies.lab.arms import choose_arms, find_arm
from prism_motor.studies.lab.cells import (
    CellJob,
    CellKey,
    CellRunner,
    StructureRunner,
    is_finished,
)
from prism_motor.studies.lab.config import FIRST_CONFIRMED, LabConfig
from prism_motor.studies.lab.problems import PROBLEMS, choose_problems
from prism_motor.studies.lab.records import LabError, LabRecords, own_folder


def plan_cells(config: LabConfig) -> list[CellKey]:
    """Return all cells of a config; those of one problem follow each other and share its data.

    Arms that read a history have no cells on problems without one.
    """
    return [
        CellKey(problem.name, arm.name, size, samples)
        for problem in choose_problems(config.problems)
        for samples in config.samples
        for size in config.sizes
        for arm in choose_arms(config.arms)
        if problem.history or not arm.window
    ]


def run_lab(folder: Path, config: LabConfig, plugins: Sequence[str] = ()) -> LabRecords:
    """Do every cell of a config that a folder does not have yet.

    Args:
        folder: A new folder, or one to continue.
        config: What to do.
        plugins: Modules that register problems, for the workers.
    """
    keys = plan_cells(config)
    _check_sizes(keys)
    with own_folder(folder):
        records = LabRecords(folder, config)
        _measure_structures(records, config, plugins)
        _work(records, config, keys, tuple(config.reported), "cells", plugins)
    return records


def confirm_lab(
    folder: Path, arms: Sequence[str] = (), jobs: int = 1, plugins: Sequence[str] = ()
) -> LabRecords:
    """Train finished cells again with fresh seeds: new data, weights and orders, once.

    Rates are those chosen by tuning. The folder records that it was done; it cannot be repeated.

    Args:
        folder: A finished laboratory.
        arms: Which arms to confirm, besides the reference; all by default.
        jobs: Number of worker processes.
        plugins: Modules that register problems, for the workers.
    """
    config = replace(LabRecords(folder).config(), jobs=jobs)
    chosen = replace(config, arms=tuple(arms) or config.arms)
    keys, reported = plan_cells(chosen), tuple(config.reported)
    seeds = tuple(range(FIRST_CONFIRMED, FIRST_CONFIRMED + config.seeds))
    with own_folder(folder):
        records = LabRecords(folder, config)
        if missing := [k for k in keys if not is_finished(records.cell(k), config, reported)]:
            raise LabError(
                f"Not finished in {folder}: {count(len(missing), 'cell')}, the first of them "
                f"{missing[0]}. Finish first: prism lab run {folder}"
            )
        records.begin_confirmation({"cells": [asdict(key) for key in keys], "seeds": list(seeds)})
        _work(records, config, keys, seeds, "confirmation", plugins)
        records.finish_confirmation()
    return records


def _check_sizes(keys: Sequence[CellKey]) -> None:
    """Find sizes that no arm can have before any training starts."""
    for key in keys:
        problem = PROBLEMS[key.problem]
        find_arm(key.arm).widths(*problem.shape, key.size, history=problem.history)


def _measure_structures(records: LabRecords, config: LabConfig, plugins: Sequence[str]) -> None:
    names = [problem.name for problem in choose_problems(config.problems)]
    todo = [name for name in names if name not in records.structures]
    with WorkerPool(StructureRunner, config.jobs, plugins) as pool:
        _do(pool, "structure of problems", todo, len(names), records, records.add_structure)


def _work(
    records: LabRecords,
    config: LabConfig,
    keys: Sequence[CellKey],
    seeds: tuple[int, ...],
    title: str,
    plugins: Sequence[str],
) -> None:
    todo = [key for key in keys if not is_finished(records.cell(key), config, seeds)]
    jobs = [CellJob(key, records.cell(key), seeds) for key in todo]
    with WorkerPool(partial(CellRunner, config), config.jobs, plugins) as pool:
        _do(pool, title, jobs, len(keys), records, lambda job, found: records.add(job.key, found))


def _do(
    pool: WorkerPool[Job, Result],
    title: str,
    jobs: Sequence[Job],
    total: int,
    records: LabRecords,
    keep: Callable[[Job, Result], None],
) -> None:
    """Do jobs and keep each result as it arrives."""
    if not jobs:
        return
    with Progress(title, total, done=total - len(jobs), unit="cell") as progress:

        def note(done: JobResult[Job, Result]) -> None:
            if done.trace:
                raise BugError(done.trace)
            if done.result is None:
                raise WorkerError(
                    f"{done.job}: {done.failure}, twice. Finished cells are kept in "
                    f"{records.folder}; the same command continues."
                )
            keep(done.job, done.result)
            progress.step(str(done.job))

        pool.run(jobs, note)
