"""SmolVLA acting in an environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from prism_motor._devices import keep_random_state
from prism_motor.manipulation.demonstrations.dataset import STATE, image_key

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Observation
    from prism_motor.manipulation.policy import HandlingPolicy
    from prism_motor.manipulation.tasks import Task


class SmolVLAActor:
    """An acting policy, which plans chunks of actions and returns one action at a time.

    Equivalent to LeRobot's ``select_action``, but looks only at the observation that a chunk is
    planned from, so the others need no images.

    Args:
        policy: The policy.
        task: What it is told to do.
    """

    def __init__(self, policy: HandlingPolicy, task: Task) -> None:
        self.policy, self.instruction = policy, task.instruction
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start an episode; the noise that is denoised to actions depends only on ``seed``."""
        self._seed, self._step = seed, 0
        self._planned: deque[NDArray[np.float32]] = deque()

    def wants_images(self) -> bool:
        """Return whether the images of the next observation will be used."""
        return not self._planned

    @torch.inference_mode()
    def act(self, observation: Observation) -> NDArray[np.float32]:
        """Return the next action."""
        if not self._planned:
            self._planned.extend(self._plan(observation))
        self._step += 1
        return self._planned.popleft()

    def _plan(self, observation: Observation) -> Iterable[NDArray[np.float32]]:
        """Denoise the next chunk of actions and return those that are executed."""
        batch: dict[str, Any] = {
            STATE: torch.from_numpy(observation.state),
            "task": self.instruction,
        }
        for camera in self.policy.config.task.cameras:
            image = torch.from_numpy(np.ascontiguousarray(observation.images[camera]))
            batch[image_key(camera)] = image.permute(2, 0, 1).float() / 255
        ready = self.policy.normalise(batch)
        device = self.policy.device
        inputs = {k: v.to(device) for k, v in ready.items() if isinstance(v, torch.Tensor)}
        # Every chunk has its own noise, independent of other random numbers.
        with keep_random_state(device):
            torch.manual_seed(1_000_003 * self._seed + self._step)
            chunk = self.policy.network.predict_action_chunk(inputs)
        steps = self.policy.config.network.action_steps
        return self.policy.denormalise(chunk)[0, :steps].numpy()
