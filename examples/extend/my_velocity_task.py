"""A velocity task on a robot of one's own: the hopper goes forward, slowly."""

import my_robot  # noqa: F401 - registers the hopper

from prism_motor.locomotion.task import CommandConfig
from prism_motor.locomotion.tasks import register_task, velocity_task

register_task(
    "hopper-walk",
    velocity_task(
        "hopper",
        commands=CommandConfig(
            forward=(0.0, 0.4), sideways=(0.0, 0.0), heading=(0.0, 0.0), deadband=0.1
        ),
    ),
)
