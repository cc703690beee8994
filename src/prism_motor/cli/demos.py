"""``prism demos``: demonstrations of a scripted expert, as a LeRobotDataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal


def demos(
    suite: Literal[
        "metaworld", "libero_spatial", "libero_object", "libero_goal", "libero_10"
    ] = "metaworld",
    task: str = "reach-v3",
    episodes: int = 50,
    out: Path | None = None,
    image_size: int = 64,
    seed: int = 1,
    hold: int = 8,
    noise: float = 0.0,
    workers: int = 0,
) -> None:
    """Record demonstrations of a scripted expert from random resets.

    Only episodes that solve the task are kept; resets never meet the fixed initial states that
    policies are evaluated from. Interrupted, the same command goes on where it was.

    Args:
        suite: The benchmark; metaworld needs no downloads.
        task: Name or number of the task.
        episodes: How many demonstrations.
        out: Folder of the dataset; default demos/SUITE-TASK.
        image_size: Side of the images, pixels; 0 records none, which is quicker and enough for the
            preset state.
        seed: Seed of resets and experts.
        hold: Steps recorded after success.
        noise: Standard deviation of noise on the hand's actions as they are executed; the actions
            without it are recorded, so that demonstrations show how to recover.
        workers: Processes that record; 0: this one.
    """
    from prism_motor._progress import Progress
    from prism_motor.manipulation.demonstrations.collection import (
        CollectionConfig,
        DemonstrationCollection,
    )
    from prism_motor.manipulation.tasks import find_task

    chosen = find_task(suite, task)
    folder = out or Path("demos") / f"{suite}-{chosen.name}"
    config = CollectionConfig(suite, chosen.name, episodes, image_size, seed, hold, noise)
    collection = DemonstrationCollection(config, folder, workers)
    print(f"{folder}: {episodes} demonstrations of {suite} {chosen.name}, '{chosen.instruction}'")
    missing = episodes - len(collection.done)
    if missing < episodes:
        print(f"{episodes - missing} are there already.")
    failed = 0
    try:
        with Progress("Demonstrations", missing) as progress:

            def report(success: bool) -> None:
                nonlocal failed
                failed += not success
                if success:
                    progress.step(f"{failed} failed attempts")

            collection.collect(report)
        with Progress("Writing", episodes) as progress:
            origin = collection.finish(progress.step)
    except KeyboardInterrupt:
        print(
            f"\nInterrupted with {len(collection.done)} of {episodes} demonstrations; the same "
            "command goes on.",
            file=sys.stderr,
        )
        raise
    failures = len(origin["failed_attempts"])
    print(
        f"{folder}: {episodes} demonstrations from {origin['attempts']} attempts "
        f"({failures} failed). Next: prism train manipulation --suite {suite} "
        f"--task {chosen.name} --demos {folder}"
    )
