"""One episode of a policy in an environment, with perturbations and measurements.

The paper reports position and orientation errors without saying relative to what. Here both are
tracking errors: at the end of every control step, the distance between the pose that the executed
action commanded and the pose that was reached. They grow when the arm is pushed away, stopped by
contact or driven by jerky actions, whatever the task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import EvaluationError, check_choice
from prism_motor.manipulation.contact import ContactTrace, TraceRecorder

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import (
        Array,
        Corrector,
        Environment,
        HandlingActor,
        Image,
        Observation,
    )


@dataclass(frozen=True)
class Perturbation:
    """A perturbation of an evaluation; noise is Gaussian and drawn at every step."""

    delay: int = 0
    """Delay of actions in control steps; until the first arrives, nothing changes: the hand is not
    moved, or joints keep their targets."""
    state_noise: float = 0.0
    """Standard deviation on every value of proprioception, in its own unit (m, rad); environments
    with other units have a factor for it."""
    image_noise: float = 0.0
    """Standard deviation on every pixel and channel, whose range is 0 to 1."""


PERTURBATIONS: dict[str, Perturbation] = {
    "none": Perturbation(),
    "delay": Perturbation(delay=1),
    "proprioception": Perturbation(state_noise=0.01),
    "image": Perturbation(image_noise=0.05),
    "combined": Perturbation(delay=1, state_noise=0.01, image_noise=0.03),
}
"""The conditions of the paper by name."""


def find_perturbation(name: str) -> Perturbation:
    """Return a perturbation by name."""
    return PERTURBATIONS[check_choice("condition", name, PERTURBATIONS)]


class Disturber:
    """Applies a perturbation to one episode; the same seed gives every policy the same noise.

    Args:
        perturbation: What to apply.
        seed: Seed of the episode's noise.
        noise_unit: Factor of the noise on proprioception, by the environment.
    """

    def __init__(self, perturbation: Perturbation, seed: int, noise_unit: float = 1.0) -> None:
        self.perturbation, self._unit = perturbation, noise_unit
        # One stream per kind of noise: rendering images must not change the noise on the state.
        self._state, self._image = (np.random.default_rng([seed, kind]) for kind in range(2))
        self._late: deque[NDArray[np.floating]] = deque()

    def observe(self, observation: Observation) -> Observation:
        """Return the observation with noise, as the policy gets it."""
        noise, state = self._unit * self.perturbation.state_noise, observation.state
        if noise:
            drawn = self._state.standard_normal(state.shape)
            state = (state + noise * drawn).astype(np.float32)
        images = {camera: self._add_noise(image) for camera, image in observation.images.items()}
        return replace(observation, state=state, images=images)

    def execute(
        self, action: NDArray[np.floating], holding: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return the action to execute now.

        Args:
            action: The policy's latest.
            holding: What is executed until the first arrives.
        """
        self._late.append(action)
        if len(self._late) <= self.perturbation.delay:
            return holding.astype(action.dtype)
        return self._late.popleft()

    def _add_noise(self, image: Image) -> Image:
        noise = self.perturbation.image_noise
        if not noise:
            return image
        noisy = image / 255 + noise * self._image.standard_normal(image.shape)
        return np.rint(255 * np.clip(noisy, 0, 1)).astype(np.uint8)


@dataclass(frozen=True)
class HandlingOutcome:
    """Measures of an episode, up to success or the horizon."""

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


def position_error(one: Array, other: Array) -> float:
    """Return the Euclidean distance, m."""
    return float(np.linalg.norm(one - other))


def orientation_error(one: Array, other: Array) -> float:
    """Return the angle of the rotation between two unit quaternions (w x y z), rad."""
    from scipy.spatial.transform import Rotation

    # scipy expects the real part last.
    first, second = (Rotation.from_quat(np.roll(turn, -1)) for turn in (one, other))
    return float((first * second.inv()).magnitude())


def run_episode(
    environment: Environment,
    actor: HandlingActor,
    *,
    initial_state: int | None = None,
    reset_seed: int | None = None,
    seed: int = 0,
    perturbation: Perturbation | None = None,
    corrector: Corrector | None = None,
    linger: int = 0,
    on_frame: Callable[[Image], None] | None = None,
) -> tuple[HandlingOutcome, ContactTrace]:
    """Run a policy from one initial state.

    Args:
        environment: The environment.
        actor: The policy.
        initial_state: Number of a fixed initial state; ``None`` for a random reset.
        reset_seed: Seed of a random reset, without ``initial_state``.
        seed: Seed of the policy's and the perturbation's noise.
        perturbation: The perturbation to apply.
        corrector: Changes actions at execution time.
        linger: Steps to continue after success; only the trace includes them.
        on_frame: Called with an image at the start and after every step.
    """
    # Reset everything; the episode's randomness depends only on its seeds.
    disturber = Disturber(perturbation or Perturbation(), seed, environment.noise_unit)
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
        if on_frame is not None:
            on_frame(environment.frame())
        # Get the policy's action for the noisy observation, then delay and correct it.
        planned = actor.act(disturber.observe(observation))
        if not np.isfinite(planned).all():
            raise EvaluationError(
                f"In step {len(actions) + 1} of {environment.task.name} the action is "
                f"{planned.tolist()}. The policy's weights diverged; evaluate another checkpoint."
            )
        wanted = np.clip(planned, environment.action_low, environment.action_high)
        action = disturber.execute(wanted, environment.holding_action())
        if corrector is not None:
            action = corrector.correct(action, before)
        step = environment.step(action, images=actor.wants_images())
        # Measure how far from the commanded pose the hand ended up.
        after = environment.physics()
        position, quaternion = environment.commanded_pose(before, action)
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
    if on_frame is not None:
        on_frame(environment.frame())
    # Steps after success are part of the trace, but of no measure.
    counted = len(actions) if solved_at is None else solved_at
    means = np.mean(errors[:counted], axis=0)
    outcome = HandlingOutcome(
        success=solved_at is not None,
        steps=counted,
        smoothness=smoothness(np.stack(actions[:counted])),
        position_error=float(means[0]),
        orientation_error=float(means[1]),
    )
    return outcome, recorder.finish()
