"""Suites and their tasks: one table, which custom suites can join.

A suite is an instance of :class:`Suite`. Those of prism are imported when first requested;
:func:`register_suite` adds one from any module::

    register_suite(Suite("my_suite", list_tasks, MyEnvironment, MyExpert))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prism_motor._checks import InputError, check_choice, check_name
from prism_motor._registry import Registry

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment, Expert


@dataclass(frozen=True)
class Task:
    """One task of a suite."""

    suite: str
    """Name of the suite."""
    index: int
    """Number within the suite."""
    name: str
    """Its name in the benchmark."""
    instruction: str
    """Instruction for language-conditioned policies."""
    horizon: int
    """Control steps after which an episode ends."""

    @property
    def key(self) -> str:
        """Short name, e.g. ``libero_goal/7``."""
        return f"{self.suite}/{self.index}"


@dataclass(frozen=True)
class Suite:
    """A family of tasks that share an arm and a simulator."""

    name: str
    """Its name in options and run folders."""
    list_tasks: Callable[[], Sequence[Task]]
    """Returns its tasks in the order of their numbers, from 0."""
    environment: Callable[..., Environment]
    """Called with a task and the keywords ``cameras``, ``image_size``, ``seed`` and ``options``."""
    expert: Callable[[Any], Expert] | None = None
    """Called with an environment of the suite; ``None`` if there are no scripted experts."""
    cameras: tuple[str, ...] = ()
    """Default cameras of policies."""
    options: tuple[str, ...] = ()
    """Additional keywords that its environments accept, e.g. ``stiffness``."""
    check_ready: Callable[[], None] = lambda: None
    """Raises if its environments cannot be made on this machine."""

    def check_options(self, **options: Any) -> dict[str, Any]:
        """Return the options that are not ``None``; raise for those that the suite lacks."""
        chosen = {name: value for name, value in options.items() if value is not None}
        for name, value in chosen.items():
            if name not in self.options:
                known = f" Its options: {', '.join(self.options)}." if self.options else ""
                raise InputError(
                    f"The suite {self.name} has no option {name}, got {value}; remove it.{known}"
                )
        return chosen


_LIBERO = "prism_motor.manipulation.suites.libero.suite"
_SO101 = "prism_motor.manipulation.suites.so101.suite"

SUITES: Registry[Suite] = Registry(
    "suite",
    {
        "metaworld": "prism_motor.manipulation.suites.metaworld:METAWORLD",
        "libero_spatial": f"{_LIBERO}:LIBERO_SPATIAL",
        "libero_object": f"{_LIBERO}:LIBERO_OBJECT",
        "libero_goal": f"{_LIBERO}:LIBERO_GOAL",
        "libero_10": f"{_LIBERO}:LIBERO_10",
        "so101": f"{_SO101}:SO101",
        "so101_stiff": f"{_SO101}:SO101_STIFF",
        "so101_wide": f"{_SO101}:SO101_WIDE",
        "so101_stiff_wide": f"{_SO101}:SO101_STIFF_WIDE",
    },
)
"""All suites by name."""

GROUPS = {"libero": ("libero_spatial", "libero_object", "libero_goal", "libero_10")}
"""Suites that one policy may learn together, by the name of the group."""

ALL, AND = "all", "+"
"""Every task of a suite, and what separates several of them: ``7+8``."""


def register_suite(suite: Suite) -> Suite:
    """Add a custom suite to the table."""
    return SUITES.register(suite.name, suite)


def registered_modules() -> tuple[str, ...]:
    """Return the modules that registered suites come from; other processes import them."""
    added = (SUITES[name] for name in SUITES if name not in SUITES.own)
    return tuple({suite.environment.__module__: None for suite in added})


def find_suite(name: str) -> Suite:
    """Return a suite by name."""
    return SUITES[name]


def list_tasks(suite: str) -> tuple[Task, ...]:
    """Return the tasks of a suite, in the order of their numbers."""
    return tuple(find_suite(suite).list_tasks())


def find_task(suite: str, task: str | int) -> Task:
    """Return a task by its name or its number within the suite."""
    tasks = list_tasks(suite)
    if str(task).isdecimal():
        if int(task) < len(tasks):
            return tasks[int(task)]
        raise InputError(f"{suite} has tasks 0 to {len(tasks) - 1}, got {task}.")
    names = [one.name for one in tasks]
    return tasks[names.index(check_choice(f"task of {suite}", task, names))]


def find_tasks(suite: str, name: str) -> tuple[Task, ...]:
    """Return all tasks that a run learns.

    Args:
        suite: A suite, or one of :data:`GROUPS`.
        name: A task's name or number, several of them (``7+8``) or ``all``; of a group only that.
    """
    if suite in GROUPS:
        if name != ALL:
            raise InputError(
                f"{suite} stands for {', '.join(GROUPS[suite])} and has no task {name!r}: write "
                f"{ALL}, or choose one of these suites."
            )
        return tuple(task for one in GROUPS[suite] for task in list_tasks(one))
    if name == ALL:
        return list_tasks(suite)
    found = tuple(find_task(suite, part) for part in str(name).split(AND))
    if len({*found}) < len(found):
        raise InputError(f"task.name: {name} has a task of {suite} twice; give each once.")
    return found


def tasks_name(suite: str, name: str) -> str:
    """Return the one way to write what :func:`find_tasks` takes: a name, numbers or ``all``."""
    found = find_tasks(suite, name)
    if len(found) == 1:
        return found[0].name
    return ALL if name == ALL else AND.join(str(task.index) for task in found)


def dataset_name(suite: str, task: str) -> str:
    """Return the name of the folder of a task's demonstrations."""
    return check_name("dataset", f"{suite}-{task}", longest=200)


def make_environment(
    task: Task,
    *,
    cameras: Sequence[str] | None = None,
    image_size: int = 128,
    seed: int = 0,
    **options: Any,
) -> Environment:
    """Build the environment of a task.

    Args:
        task: Which task, from :func:`find_task`.
        cameras: Which cameras to render; default: the suite's.
        image_size: Side of the square images, pixels.
        seed: Default seed of resets.
        **options: Options of some suites, e.g. ``stiffness``: Kp of the arm's controller. ``None``
            means the suite's default; options that a suite lacks are errors.
    """
    suite = find_suite(task.suite)
    return suite.environment(
        task,
        cameras=suite.cameras if cameras is None else tuple(cameras),
        image_size=image_size,
        seed=seed,
        **suite.check_options(**options),
    )


def make_expert(environment: Environment) -> Expert:
    """Build the scripted expert of an environment."""
    suite = find_suite(environment.task.suite)
    if suite.expert is None:
        from prism_motor.manipulation.environment import NoExpertError

        raise NoExpertError(
            f"The suite {suite.name} has no scripted experts, so it cannot record demonstrations."
        )
    return suite.expert(environment)
