"""LIBERO's four suites; their tasks are known without importing LIBERO."""

from __future__ import annotations

import functools
import importlib.util
import re
from typing import TYPE_CHECKING

from prism_motor.manipulation.suites.libero.environment import CAMERAS, LiberoEnvironment
from prism_motor.manipulation.suites.libero.package import package_folder
from prism_motor.manipulation.suites.libero.preparation import ensure_prepared
from prism_motor.manipulation.tasks import Suite, Task

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Expert


@functools.cache
def _list_tasks(suite: str, horizon: int) -> tuple[Task, ...]:
    """Return the tasks of a suite in the order of the benchmark."""
    return tuple(
        Task(suite, index, name, _instruction(name), horizon)
        for index, name in enumerate(_task_names()[suite])
    )


def _task_names() -> dict[str, list[str]]:
    """Read LIBERO's table without importing its package, which needs assets and a config."""
    file = package_folder() / "benchmark" / "libero_suite_task_map.py"
    spec = importlib.util.spec_from_file_location("_libero_task_map", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"Cannot read {file}: is hf-libero installed completely?")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.libero_task_map


def _instruction(name: str) -> str:
    """Return the instruction as LIBERO does: the name without the scene."""
    return re.sub(r"^[A-Z_]*SCENE\d+_", "", name).replace("_", " ")


def _make_expert(environment: LiberoEnvironment) -> Expert:
    from prism_motor.manipulation.suites.libero.experts import LiberoExpert

    return LiberoExpert(environment)


def _make_suite(name: str, horizon: int) -> Suite:
    return Suite(
        name=name,
        list_tasks=functools.partial(_list_tasks, name, horizon),
        environment=LiberoEnvironment,
        expert=_make_expert,
        cameras=CAMERAS,
        options=("stiffness", "renderer", "drawn_size"),
        check_ready=ensure_prepared,
    )


# The horizons are those of LeRobot's wrapper.
LIBERO_SPATIAL = _make_suite("libero_spatial", 280)
LIBERO_OBJECT = _make_suite("libero_object", 280)
LIBERO_GOAL = _make_suite("libero_goal", 300)
LIBERO_10 = _make_suite("libero_10", 520)
