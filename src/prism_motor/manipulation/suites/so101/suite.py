"""The suites of the SO-101 twin: the same tasks with other servos or placements."""

from __future__ import annotations

from functools import partial

from prism_motor._checks import check_choice
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


TWINS = {
    ("soft", "narrow"): "so101",
    ("stiff", "narrow"): "so101_stiff",
    ("soft", "wide"): "so101_wide",
    ("stiff", "wide"): "so101_stiff_wide",
}
"""Names of the suites by servos and placement."""


def suite_of(servos: str, placement: str) -> str:
    """Return the name of the suite with these servos and this placement."""
    for what, given, known in zip(
        ("servos", "placement"), (servos, placement), zip(*TWINS, strict=True), strict=True
    ):
        check_choice(what, given, {*known})
    return TWINS[servos, placement]


def _make_suite(servos: str, placement: str) -> Suite:
    name = TWINS[servos, placement]
    return Suite(
        name=name,
        list_tasks=partial(_list_tasks, name),
        environment=partial(So101Environment, servos=servos, placement=placement),
        expert=So101Expert,
        cameras=CAMERAS,
        options=("stiffness", "drawn_size"),
    )


SO101 = _make_suite("soft", "narrow")
SO101_STIFF = _make_suite("stiff", "narrow")
SO101_WIDE = _make_suite("soft", "wide")
SO101_STIFF_WIDE = _make_suite("stiff", "wide")
