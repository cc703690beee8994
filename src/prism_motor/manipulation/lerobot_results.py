"""Results of ``lerobot-eval``, stored beside our own evaluations of the same policy.

Its ``eval_info.json`` (LeRobot 0.4 to 0.6) says for every task which episodes were successful, but
not of which policy, and has none of our other measures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._checks import InputError

if TYPE_CHECKING:
    from prism_motor.manipulation.tasks import Task

EVALUATOR = "lerobot-eval"
"""What evaluated, in stored evaluations and in tables."""


def read_eval_info(file: Path, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Return the episodes of an ``eval_info.json`` as rows of a stored evaluation.

    Args:
        file: The file.
        tasks: The tasks of the policy.
    """
    known = {(task.suite, task.index): task for task in tasks}
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    for place, successes in _successes(file):
        if place not in known:
            suite, number = place
            raise InputError(
                f"{file} has episodes of {suite}/{number}, which the policy did not learn: it is "
                "of another policy."
            )
        task = known[place]
        for number, success in enumerate(successes):
            if (key := (task.suite, task.name, number)) in rows:
                raise InputError(f"{file} has {task.key} twice.")
            # Measures that LeRobot does not record have no value; none of them counts as zero.
            rows[key] = {
                "success": success, "steps": None, "smoothness": None, "position_error": None,
                "orientation_error": None, "suite": task.suite, "task": task.name,
                "initial_state": number,
            }  # fmt: skip
    return [rows[key] for key in sorted(rows)]


def _successes(file: Path) -> list[tuple[tuple[str, int], list[bool]]]:
    """Return suite and number of every task, with the successes of its episodes."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error}.") from error
    try:
        found = [
            ((str(one["task_group"]), int(one["task_id"])), list(one["metrics"]["successes"]))
            for one in data["per_task"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{file} is not what lerobot-eval writes: it should list task_group, task_id and "
            "metrics.successes of every task under per_task."
        ) from error
    if not found or not all(one and all(type(s) is bool for s in one) for _, one in found):
        raise InputError(f"{file} has tasks without episodes, or successes that are not booleans.")
    return found
