"""Perturbations of an evaluation: late actions, noisy proprioception, noisy images."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.environment import Image, Observation
from prism_motor.nn.checks import check_choice


@dataclass(frozen=True)
class Perturbation:
    """How an evaluation is disturbed; noise is Gaussian and drawn anew at every step."""

    delay: int = 0
    """Control steps that actions come late; until the first arrives, zeros are executed."""
    state_noise: float = 0.0
    """Standard deviation on every value of proprioception, in its own unit (m, rad)."""
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
    """

    def __init__(self, perturbation: Perturbation, seed: int) -> None:
        self.perturbation = perturbation
        # A stream for each kind of noise: drawing images or not leaves the other as it is.
        self._state, self._image = (np.random.default_rng([seed, kind]) for kind in range(2))
        self._late: deque[NDArray[np.floating]] = deque()

    def observe(self, observation: Observation) -> Observation:
        """Return what the policy gets to see."""
        noise, state = self.perturbation.state_noise, observation.state
        if noise:
            drawn = self._state.standard_normal(state.shape)
            state = (state + noise * drawn).astype(np.float32)
        images = {camera: self._blur(image) for camera, image in observation.images.items()}
        return replace(observation, state=state, images=images)

    def execute(self, action: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return what is executed now that the policy wants ``action``."""
        self._late.append(action)
        if len(self._late) <= self.perturbation.delay:
            return np.zeros_like(action)
        return self._late.popleft()

    def _blur(self, image: Image) -> Image:
        noise = self.perturbation.image_noise
        if not noise:
            return image
        noisy = image / 255 + noise * self._image.standard_normal(image.shape)
        return np.rint(255 * np.clip(noisy, 0, 1)).astype(np.uint8)
