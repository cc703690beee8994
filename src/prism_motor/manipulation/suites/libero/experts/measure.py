"""Measures the success rates of experts per task.

Run ``python -m prism_motor.manipulation.suites.libero.experts.measure``; other suites work too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prism_motor._console import Progress
from prism_motor.manipulation.environment import Environment, Expert, NoExpertError
from prism_motor.manipulation.tasks import (
    Task,
    find_task,
    list_tasks,
    make_environment,
    make_expert,
)
from prism_motor.runs.atomic import write_text
from prism_motor.statistics.intervals import wilson

GOOD = 0.8
"""Success rate of a good expert."""


def measure(
    suite: str,
    out: Path,
    *,
    tasks: Sequence[str] = (),
    episodes: int = 20,
    first_seed: int = 1000,
) -> None:
    """Run experts from random resets and write every episode; can be stopped and continued.

    Args:
        suite: Which suite.
        out: JSON file of the results, extended if it exists; a table (.md) is written next to it.
        tasks: Names or numbers; default: all of the suite.
        episodes: Random resets per task.
        first_seed: Seed of the first reset; the others count up from it.
    """
    chosen = [find_task(suite, task) for task in tasks] or list_tasks(suite)
    records: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    seeds = range(first_seed, first_seed + episodes)
    for task in chosen:
        record = records.setdefault(task.key, {"name": task.name, "episodes": []})
        done = {episode["seed"] for episode in record["episodes"]}
        _measure_task(task, [seed for seed in seeds if seed not in done], record)
        write_text(out, json.dumps(records, indent=1))
        write_text(out.with_suffix(".md"), markdown(records))
        print(_row(task.key, record), flush=True)


def _measure_task(task: Task, seeds: Sequence[int], record: dict[str, Any]) -> None:
    if not seeds:
        return
    environment = make_environment(task, cameras=())
    try:
        expert = make_expert(environment)
        with Progress(task.key, len(seeds)) as progress:
            for seed in seeds:
                success, steps = try_once(environment, expert, seed)
                record["episodes"].append({"seed": seed, "success": success, "steps": steps})
                progress.step("success" if success else "failure")
    except NoExpertError as error:
        record["problem"] = str(error)
    finally:
        environment.close()


def try_once(environment: Environment, expert: Expert, seed: int) -> tuple[bool, int]:
    """Run one episode from a random reset until success or the horizon; return how it ended."""
    environment.reset(seed=seed, images=False)
    expert.reset()
    for count in range(1, environment.task.horizon + 1):
        if environment.step(expert.act(), images=False).success:
            return True, count
    return False, environment.task.horizon


def markdown(records: dict[str, Any]) -> str:
    """Return the table of success per task, with 95 % Wilson intervals."""
    rates = [_rate(record) for record in records.values()]
    good = sum(rate is not None and rate >= GOOD for rate in rates)
    head = ["| task | success | interval | median steps | name |", "|---|---|---|---|---|"]
    rows = [_row(key, record) for key, record in records.items()]
    return "\n".join(
        [*head, *rows, "", f"{good} of {len(records)} tasks at {GOOD:.0%} or more.", ""]
    )


def _rate(record: dict[str, Any]) -> float | None:
    episodes = record["episodes"]
    return sum(e["success"] for e in episodes) / len(episodes) if episodes else None


def _row(key: str, record: dict[str, Any]) -> str:
    episodes = record["episodes"]
    if not episodes:
        return f"| {key} | no expert | | | {record['name']}: {record.get('problem', '')} |"
    wins = sorted(e["steps"] for e in episodes if e["success"])
    low, high = wilson(len(wins), len(episodes))
    steps = str(wins[len(wins) // 2]) if wins else ""
    rate = f"{len(wins)}/{len(episodes)}"
    return f"| {key} | {rate} | {low:.0%} to {high:.0%} | {steps} | {record['name']} |"


if __name__ == "__main__":
    import tyro

    tyro.cli(measure)
