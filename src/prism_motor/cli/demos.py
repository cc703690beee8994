"""``prism record``: demonstrations of a scripted expert, as a LeRobotDataset."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from prism_motor._ranges import between
from prism_motor.manipulation.demonstrations.collection import (
    CollectionConfig,
    DemonstrationCollection,
    demonstrations,
)


def demos(
    config: Annotated[CollectionConfig, arg(name="")],
    out: Path | None = None,
    workers: Annotated[int, between(0, 1024)] = 0,
) -> None:
    """Record demonstrations of a scripted expert from random resets.

    Only episodes that solve the task are kept; resets never coincide with the initial states that
    policies are evaluated from. After an interruption, the same command continues.

    Args:
        config: What to record.
        out: Folder of the dataset; default: demos/SUITE-TASK.
        workers: Number of processes that record; 0: this one.
    """
    from prism_motor._console import Progress
    from prism_motor.manipulation.tasks import dataset_name, find_task

    # Resolve the task, and find what an earlier call has recorded.
    task = find_task(config.suite, config.task)
    config = replace(config, task=task.name)
    folder = out or Path("demos") / dataset_name(config.suite, task.name)
    collection = DemonstrationCollection(config, folder, workers)
    wanted = demonstrations(config.episodes)
    print(f"{folder}: {wanted} of {config.suite} {task.name}, '{task.instruction}'")
    there = len(collection.done)
    if there:
        print(f"{there} of them {'is' if there == 1 else 'are'} already recorded.")
    # Record, then write the dataset; Ctrl-C keeps the attempts.
    failed = 0
    try:
        with Progress("Demonstrations", config.episodes - there) as progress:

            def report(success: bool) -> None:
                nonlocal failed
                failed += not success
                if success:
                    progress.step(f"{failed} failed attempt{'' if failed == 1 else 's'}")

            collection.collect(report)
        with Progress("Writing", config.episodes) as progress:
            origin = collection.finish(progress.step)
    except KeyboardInterrupt:
        print(
            f"\nInterrupted with {len(collection.done)} of {wanted}; the same command continues.",
            file=sys.stderr,
        )
        raise
    attempts, failures = origin["attempts"], len(origin["failed_attempts"])
    print(
        f"{folder}: {wanted} from {attempts} attempt{'' if attempts == 1 else 's'} ({failures} "
        f"failed). Next: prism train manipulation --suite {config.suite} --task {task.name} "
        f"--demos {folder}"
    )
