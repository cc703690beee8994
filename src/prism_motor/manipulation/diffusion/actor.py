"""Diffusion Policy acting in an environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prism_motor._devices import keep_random_state
from prism_motor.manipulation.demonstrations.dataset import OBJECTS, STATE, image_key

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Observation
    from prism_motor.manipulation.policy import HandlingPolicy


class DiffusionActor:
    """An acting policy, which plans chunks of actions and returns one action at a time.

    Equivalent to LeRobot's ``select_action``, but processes only the observations that it needs, so
    the others need no images.

    Args:
        policy: The policy.
    """

    def __init__(self, policy: HandlingPolicy) -> None:
        self.policy = policy
        network = policy.config.network
        self._every, self._history = network.action_steps, network.observation_steps
        self._sees_images = network.inputs == "images"
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start an episode; the noise that is denoised to actions depends only on ``seed``."""
        self._seed, self._step = seed, 0
        self._seen: deque[dict[str, Tensor]] = deque(maxlen=self._history)
        self._planned: deque[NDArray[np.float32]] = deque()

    def wants_images(self) -> bool:
        """Return whether the images of the next observation will be used."""
        return self._sees_images and self._matters(self._step)

    def _matters(self, step: int) -> bool:
        return -step % self._every < self._history

    @torch.inference_mode()
    def act(self, observation: Observation) -> NDArray[np.float32]:
        """Return the next action."""
        if self._matters(self._step):
            self._seen.append(self._prepare(observation))
        if self._step % self._every == 0:
            self._planned = deque(self._plan())
        self._step += 1
        return self._planned.popleft()

    def _prepare(self, observation: Observation) -> dict[str, Tensor]:
        batch: dict[str, Any] = {STATE: torch.from_numpy(observation.state)}
        if self._sees_images:
            for camera in self.policy.config.task.cameras:
                image = torch.from_numpy(np.ascontiguousarray(observation.images[camera]))
                batch[image_key(camera)] = image.permute(2, 0, 1).float() / 255
        else:
            batch[OBJECTS] = torch.from_numpy(observation.objects)
        ready = self.policy.normalise(batch)
        features = self.policy.network.config.image_features
        inputs = {key: ready[key] for key in batch if key not in features}
        if self._sees_images:
            inputs["observation.images"] = torch.stack([ready[key] for key in features], dim=-4)
        return {key: values.to(self.policy.device) for key, values in inputs.items()}

    def _plan(self) -> Iterable[NDArray[np.float32]]:
        """Denoise the next chunk of actions."""
        missing = self._history - len(self._seen)
        seen = [self._seen[0]] * missing + list(self._seen)
        stacked = {key: torch.stack([one[key] for one in seen], dim=1) for key in seen[0]}
        # Every chunk has its own noise, independent of other random numbers.
        with keep_random_state(self.policy.device):
            torch.manual_seed(1_000_003 * self._seed + self._step)
            chunk = self.policy.network.diffusion.generate_actions(stacked)
        return self.policy.denormalise(chunk)[0].numpy()
