"""The suites of the SO-101 twin: the same tasks with other servos or placements."""

from __future__ import annotations

from functools import partial

from prism_motor.manipulation.suites.so101.environment import So101Environment, So101Expert
from prism_motor.manipulation.tasks import Suite, Task
from prism_motor.sim.so101.scenes import SCENES
from prism_motor.sim.so101.scenes.scene import CAMERAS

HORIZON = 300
"""Control steps per episode: ten seconds at 30 Hz."""


def _list_tasks(suite: str) -> tuple[Task, ...]:
    return tuple(
        Task(suite, index, scene.name, scene.instruction, HORIZON)
        for index, scene in enumerate(SCENES.values())
    )


def _make_suite(name: str, servos: str, placement: str) -> Suite:
    return Suite(
        name=name,
        list_tasks=partial(_list_tasks, name),
        environment=partial(So101Environment, servos=servos, placement=placement),
        expert=So101Expert,
        cameras=CAMERAS,
        options=("stiffness", "drawn_size"),
    )


SO101 = _make_suite("so101", "soft", "narrow")
SO101_STIFF = _make_suite("so101_stiff", "stiff", "narrow")
SO101_WIDE = _make_suite("so101_wide", "soft", "wide")
