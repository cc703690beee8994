"""A velocity task on your own robot: the hopper moves forward, slowly."""

import my_robot  # noqa: F401 - registers the hopper

from prism_motor.locomotion import CommandConfig, register_task, velocity_task

register_task(
    "hopper-walk",
    velocity_task(
        "hopper",
        commands=CommandConfig(
            forward=(0.0, 0.4), sideways=(0.0, 0.0), heading=(0.0, 0.0), deadband=0.1
        ),
    ),
)
