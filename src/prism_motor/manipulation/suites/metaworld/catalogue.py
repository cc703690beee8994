"""The fifty tasks of Meta-World."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path

from prism_motor._extras import missing_extra
from prism_motor.manipulation.tasks import Task

SUITE = "metaworld"

HORIZON = 500
"""Control steps of an episode, for every task."""


@functools.cache
def list_tasks() -> tuple[Task, ...]:
    """Return all tasks, numbered and instructed as in LeRobot."""
    # The file is read without importing LeRobot, which takes seconds.
    package = importlib.util.find_spec("lerobot")
    if package is None or package.origin is None:
        cause = ImportError("No module named 'lerobot'", name="lerobot")
        raise missing_extra("Meta-World", "manipulation", cause)
    file = Path(package.origin).parent / "envs" / "metaworld_config.json"
    known = json.loads(file.read_text())
    instructions = known["TASK_DESCRIPTIONS"]
    return tuple(
        Task(SUITE, index, name, instructions[name], HORIZON)
        for name, index in sorted(known["TASK_NAME_TO_ID"].items(), key=lambda item: item[1])
    )
