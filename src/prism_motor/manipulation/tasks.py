"""Which tasks there are: suites, names, instructions, horizons."""

from __future__ import annotations

from dataclasses import dataclass

from prism_motor._errors import InputError
from prism_motor.nn.checks import check_choice

SUITES = ("metaworld", "libero_spatial", "libero_object", "libero_goal", "libero_10")
"""All suites; the four of LIBERO have ten tasks each, Meta-World fifty."""


@dataclass(frozen=True)
class Task:
    """One task of a suite."""

    suite: str
    """libero_spatial, libero_object, libero_goal, libero_10 or metaworld."""
    index: int
    """Number within the suite."""
    name: str
    """Its name in the benchmark."""
    instruction: str
    """What a language-conditioned policy is told."""
    horizon: int
    """Control steps after which an episode ends."""

    @property
    def key(self) -> str:
        """Short name, e.g. ``libero_goal/7``."""
        return f"{self.suite}/{self.index}"


def list_tasks(suite: str) -> tuple[Task, ...]:
    """Return the tasks of a suite, in the order of their numbers."""
    check_choice("suite", suite, SUITES)
    if suite == "metaworld":
        from prism_motor.manipulation.suites.metaworld.catalogue import list_tasks as listed

        return listed()
    from prism_motor.manipulation.suites.libero.catalogue import list_tasks as listed_libero

    return listed_libero(suite)


def find_task(suite: str, task: str | int) -> Task:
    """Return a task by its name or its number within the suite."""
    tasks = list_tasks(suite)
    if str(task).isdigit():
        if int(task) < len(tasks):
            return tasks[int(task)]
        raise InputError(f"{suite} has tasks 0 to {len(tasks) - 1}, got {task}.")
    names = [one.name for one in tasks]
    return tasks[names.index(check_choice(f"task of {suite}", task, names))]
