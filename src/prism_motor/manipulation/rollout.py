"""One episode of a policy in an environment, measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.contact.traces import ContactTrace, TraceRecorder
from prism_motor.manipulation.corrector import Corrector
from prism_motor.manipulation.environment import Environment, Image, Observation
from prism_motor.manipulation.perturbations import Disturber, Perturbation
from prism_motor.manipulation.tracking import commanded_pose, orientation_error, position_error


class Actor(Protocol):
    """A policy while it acts in one episode."""

    def reset(self, seed: int) -> None:
        """Begin an episode; whatever is random in it follows from ``seed``."""
        ...

    def wants_images(self) -> bool:
        """Say whether the images of the next observation will be looked at."""
        ...

    def act(self, observation: Observation) -> NDArray[np.floating]:
        """Return the next action."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What is measured of an episode, up to success or the horizon."""

    success: bool
    """Whether the task was solved within the horizon."""
    steps: int
    """Control steps until success, or the horizon."""
    smoothness: float
    """Mean squared difference between consecutive executed actions, over steps and components."""
    position_error: float
    """Mean distance between commanded and reached position of the hand, m."""
    orientation_error: float
    """Mean angle between commanded and reached orientation of the hand, rad."""


def smoothness(actions: NDArray[np.floating]) -> float:
    """Return the mean squared difference between consecutive actions (steps x components)."""
    return float(np.square(np.diff(actions, axis=0)).mean()) if len(actions) > 1 else 0.0


def run_episode(
    environment: Environment,
    actor: Actor,
    *,
    initial_state: int | None = None,
    reset_seed: int | None = None,
    seed: int = 0,
    perturbation: Perturbation | None = None,
    corrector: Corrector | None = None,
    linger: int = 0,
    film: Callable[[Image], None] | None = None,
) -> tuple[Outcome, ContactTrace]:
    """Run a policy from one initial state.

    Args:
        environment: Where.
        actor: Who.
        initial_state: Which of the fixed initial states; none for a random reset.
        reset_seed: Seed of a random reset, when there is no ``initial_state``.
        seed: Seed of the policy's and the perturbation's noise.
        perturbation: How the episode is disturbed.
        corrector: What changes actions at execution time.
        linger: Steps to go on after success; they count in the trace alone.
        film: Given a picture at the beginning and after every step.
    """
    disturber = Disturber(perturbation or Perturbation(), seed)
    actor.reset(seed)
    if corrector is not None:
        corrector.reset(seed)
    observation = environment.reset(
        seed=reset_seed, initial_state=initial_state, images=actor.wants_images()
    )
    before = environment.physics()
    recorder = TraceRecorder(environment.control_seconds, before)
    actions: list[NDArray[np.floating]] = []
    errors: list[tuple[float, float]] = []
    solved_at, timeout = None, False
    while not (timeout if solved_at is None else len(actions) >= solved_at + linger):
        if film is not None:
            film(environment.frame())
        wanted = np.clip(actor.act(disturber.observe(observation)), -1.0, 1.0)
        action = disturber.execute(wanted)
        if corrector is not None:
            action = corrector.correct(action, before)
        step = environment.step(action, images=actor.wants_images())
        after = environment.physics()
        position, quaternion = commanded_pose(environment, before, action)
        errors.append(
            (
                position_error(after.position, position),
                orientation_error(after.quaternion, quaternion),
            )
        )
        recorder.add(action, after)
        actions.append(action)
        observation, before, timeout = step.observation, after, step.timeout
        if step.success and solved_at is None:
            solved_at = len(actions)
    if film is not None:
        film(environment.frame())
    counted = len(actions) if solved_at is None else solved_at
    means = np.mean(errors[:counted], axis=0)
    outcome = Outcome(
        success=solved_at is not None,
        steps=counted,
        smoothness=smoothness(np.stack(actions[:counted])),
        position_error=float(means[0]),
        orientation_error=float(means[1]),
    )
    return outcome, recorder.finish()
