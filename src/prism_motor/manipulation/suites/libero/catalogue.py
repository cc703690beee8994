"""The tasks of LIBERO's four suites, known without importing LIBERO."""

from __future__ import annotations

import functools
import importlib.util
import re

from prism_motor.manipulation.suites.libero.package import package_folder
from prism_motor.manipulation.tasks import Task

HORIZONS = {"libero_spatial": 280, "libero_object": 280, "libero_goal": 300, "libero_10": 520}
"""Control steps an episode may take, as in LeRobot's wrapper."""


@functools.cache
def list_tasks(suite: str) -> tuple[Task, ...]:
    """Return the tasks of a suite in the order of the benchmark."""
    names = _task_names()[suite]
    return tuple(
        Task(suite, index, name, _instruction(name), HORIZONS[suite])
        for index, name in enumerate(names)
    )


def _task_names() -> dict[str, list[str]]:
    """Read LIBERO's own table; importing its package would want assets and a config file."""
    file = package_folder() / "benchmark" / "libero_suite_task_map.py"
    spec = importlib.util.spec_from_file_location("_libero_task_map", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"Cannot read {file}: is hf-libero installed completely?")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.libero_task_map


def _instruction(name: str) -> str:
    """Make the instruction as LIBERO does: the name's words without those of the scene."""
    return re.sub(r"^[A-Z_]*SCENE\d+_", "", name).replace("_", " ")
