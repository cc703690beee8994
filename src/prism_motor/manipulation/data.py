"""The tasks, the environments and the demonstrations of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._checks import InputError, check_choice
from prism_motor.manipulation.backbones import BACKBONES
from prism_motor.manipulation.demonstrations.cache import (
    Demonstrations,
    DemonstrationsError,
    join_demonstrations,
    open_demonstrations,
    read_drawing,
)
from prism_motor.manipulation.tasks import (
    Task,
    dataset_name,
    find_suite,
    find_tasks,
    make_environment,
)

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.environment import Environment


def tasks_of(config: ManipulationConfig, only: Sequence[str] = ()) -> tuple[Task, ...]:
    """Return the tasks of a run, or some of them.

    Args:
        config: The run.
        only: Short names of the wanted tasks, e.g. ``libero_goal/7``; default: all.
    """
    every = {task.key: task for task in find_tasks(config.task.suite, config.task.name)}
    return tuple(every[check_choice("task of the policy", key, every)] for key in only or every)


def environment_of(
    config: ManipulationConfig, stiffness: float | None = None, task: Task | str = ""
) -> Environment:
    """Build the environment of a run's task, with the cameras of its policy.

    Args:
        config: The run.
        stiffness: Kp of the arm's controller; default: the suite's.
        task: Which one of its tasks, or its short name; default: the first.
    """
    chosen, network = task, config.network
    if isinstance(chosen, str):
        chosen = tasks_of(config, [chosen] if chosen else ())[0]
    drawing = {"renderer": network.renderer, "drawn_size": network.drawn_size or None}
    known = find_suite(chosen.suite).options
    drawing = {name: value for name, value in drawing.items() if name in known}
    return make_environment(
        chosen,
        cameras=config.task.cameras,
        image_size=network.image_size,
        stiffness=stiffness,
        **drawing,
    )


def has_renderers(suite: str) -> bool:
    """Return whether a suite can draw in more than one way."""
    return "renderer" in find_suite(suite).options


def drawn_as(config: ManipulationConfig) -> int:
    """Return ``network.drawn_size`` for a run's demonstrations; raise if they were drawn otherwise.

    Args:
        config: The run, with the name of its demonstrations and its cameras.
    """
    network, tasks = config.network, tasks_of(config)
    suite = tasks[0].suite
    scales = "drawn_size" in find_suite(suite).options
    if network.inputs != "images" or not scales or not config.task.cameras:
        return 0
    sizes = set()
    for source in _sources(config.demos, tasks):
        try:
            drawing = read_drawing(source, config.task.cameras)
        except DemonstrationsError:
            drawing = None
        if drawing is None:  # the trainer, which reads them, says what is wrong
            return 0
        if has_renderers(suite) and drawing.renderer != network.renderer:
            who = "prism's" if drawing.renderer == "fast" else f"{suite}'s own"
            raise DemonstrationsError(
                f"The images of {source} were drawn by {who} renderer ({drawing.renderer}), but "
                f"this run would be evaluated with network.renderer {network.renderer}. Add "
                f"--network.renderer {drawing.renderer}, or record others: prism record --renderer "
                f"{network.renderer}."
            )
        sizes.add(drawing.size)
    if len(sizes) > 1:
        raise DemonstrationsError(
            f"The images of {config.demos} were drawn at different sizes ({sorted(sizes)}): record "
            "those of all tasks alike."
        )
    size = sizes.pop()
    return 0 if size == network.image_size else size


def load_for(config: ManipulationConfig) -> Demonstrations:
    """Check the settings of a run and read its demonstrations into memory."""
    BACKBONES[config.backbone].check(config)  # first: reading may take minutes
    environment = environment_of(config)
    images = config.network.inputs == "images"
    try:
        opened = [
            open_demonstrations(source, environment, tasks, images, not images, config.episodes)
            for source, tasks in _sources(config.demos, tasks_of(config)).items()
        ]
    finally:
        environment.close()
    return join_demonstrations([one.read() for one in opened])


def _sources(demos: str, tasks: Sequence[Task]) -> dict[Path | str, Sequence[Task]]:
    """Return which dataset has the demonstrations of which tasks."""
    folder = Path(demos)
    if not folder.is_dir() or (folder / "meta").is_dir():
        return {demos: tasks}
    found = {task: folder / dataset_name(task.suite, task.name) for task in tasks}
    if len(tasks) == 1 and not found[tasks[0]].is_dir():
        return {demos: tasks}  # reading it says that it is no dataset
    lacking = [path.name for path in found.values() if not path.is_dir()]
    if lacking:
        raise InputError(
            f"{folder} has no demonstrations of {len(lacking)} of {len(tasks)} tasks: "
            f"{', '.join(lacking[:4])}{' and more' if len(lacking) > 4 else ''}. Record them with "
            "prism record, or give a dataset of all tasks."
        )
    return {path: (task,) for task, path in found.items()}
