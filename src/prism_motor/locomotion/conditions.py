"""The conditions under which policies are evaluated, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from prism_motor._checks import InputError, check_choice
from prism_motor.locomotion.task import LeggedTaskConfig, RandomisationConfig

Task = TypeVar("Task", bound=LeggedTaskConfig)


@dataclass(frozen=True)
class Condition:
    """What an evaluation changes in the task that a policy was trained on.

    Without ``randomised`` there is no noise on observations, no noise or delay on actions and no
    randomised dynamics: no added mass, and the friction in the middle of the training range.
    Initial states and commands stay random in every condition.
    """

    randomised: bool = False
    """Keep all randomisation of training."""
    friction: float | None = None
    """Sliding friction; default: the middle of the training range."""
    mass_scale: float = 1.0
    """Factor on all masses and inertias."""
    pushes: bool = False
    """Keep the pushes of training."""

    def apply(self, task: Task) -> Task:
        """Return the task under this condition."""
        if self.randomised:
            return task
        trained = task.randomisation
        if self.pushes and not trained.push_every:
            raise InputError(
                "The policy was trained without pushes (push_every is 0), so there are none to "
                "evaluate it under. Leave this condition out."
            )
        friction = sum(trained.friction) / 2 if self.friction is None else self.friction
        return replace(
            task,
            observations=replace(task.observations, noise=0.0),
            randomisation=RandomisationConfig(
                friction=(friction, friction),
                mass_scale=self.mass_scale,
                push_every=trained.push_every if self.pushes else 0.0,
                push_velocity=trained.push_velocity,
                push_angular_velocity=trained.push_angular_velocity,
            ),
        )


CONDITIONS: dict[str, Condition] = {
    "nominal": Condition(),
    "low-friction": Condition(friction=0.20),
    "payload": Condition(mass_scale=1.15),
    "pushes": Condition(pushes=True),
    "training": Condition(randomised=True),
}
"""Conditions by name; friction and payload are those of the paper."""


def find_condition(name: str) -> Condition:
    """Return a condition by name."""
    return CONDITIONS[check_choice("condition", name, CONDITIONS)]
