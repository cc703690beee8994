"""Trained policies: loading them from run folders, acting, and exporting them to LeRobot."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.domains import open_run, require_domain
from prism_motor.manipulation.config import ManipulationConfig
from prism_motor.manipulation.demonstrations.dataset import OBJECTS, STATE, image_key
from prism_motor.manipulation.diffusion.network import make_policy, make_processors
from prism_motor.runs import RunError
from prism_motor.runs.atomic import atomic_folder
from prism_motor.runs.checkpoints import select

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment, Observation


@dataclass(frozen=True)
class HandlingPolicy:
    """A trained policy."""

    config: ManipulationConfig
    """How it was trained."""
    step: int
    """Number of updates it was trained for."""
    network: Any
    """LeRobot's policy, in evaluation mode."""
    normalise: Any
    """LeRobot's pipeline from observations to inputs of the network."""
    denormalise: Any
    """LeRobot's pipeline from outputs of the network to actions."""


def load_policy(path: str | Path, step: int | None = None) -> HandlingPolicy:
    """Load a policy from a run folder.

    Args:
        path: The run folder.
        step: Which checkpoint; the newest by default.
    """
    require_domain(path, "manipulation", "this")
    run, _, config = open_run(path)
    checkpoint = run.load(step)
    network = make_policy(config)
    try:
        network.load_state_dict(select(checkpoint.tensors, "policy."))
    except RuntimeError as error:
        raise RunError(
            f"The checkpoint {checkpoint.step} of {run.path} does not fit the policy that its "
            f"config.json describes: {error}"
        ) from error
    statistics: dict[str, dict[str, Tensor]] = {}
    for name, value in select(checkpoint.tensors, "statistics/").items():
        key, entry = name.split("/")
        statistics.setdefault(key, {})[entry] = value
    network.eval()
    return HandlingPolicy(config, checkpoint.step, network, *make_processors(network, statistics))


def check_fit(policy: HandlingPolicy, environment: Environment) -> None:
    """Raise unless a policy was trained for an environment's task."""
    trained, task = policy.config.task, environment.task
    if (trained.suite, trained.name) != (task.suite, task.name):
        raise InputError(
            f"The policy was trained on {trained.suite} {trained.name} and cannot be evaluated on "
            f"{task.suite} {task.name}: give a run that was trained there."
        )
    sizes = (trained.state, trained.objects, trained.action)
    names = (environment.state_names, environment.object_names, environment.action_names)
    found = tuple(len(entry) for entry in names)
    if sizes != found:
        raise InputError(
            f"The policy expects state, object and action sizes {sizes}, but {task.name} now has "
            f"{found}: it was trained with another version of the environment."
        )


class PolicyActor:
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
        return inputs

    def _plan(self) -> Iterable[NDArray[np.float32]]:
        """Denoise the next chunk of actions."""
        missing = self._history - len(self._seen)
        seen = [self._seen[0]] * missing + list(self._seen)
        stacked = {key: torch.stack([one[key] for one in seen], dim=1) for key in seen[0]}
        # Every chunk has its own noise, independent of other random numbers.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1_000_003 * self._seed + self._step)
            chunk = self.policy.network.diffusion.generate_actions(stacked)
        return self.policy.denormalise(chunk)[0].numpy()


def export_policy(policy: HandlingPolicy, folder: Path) -> Path:
    """Write a policy as a LeRobot pretrained folder, for ``--policy.path``.

    Args:
        policy: The policy.
        folder: Output folder; an existing one is replaced.
    """
    with atomic_folder(folder) as temporary:
        policy.network.save_pretrained(temporary)
        policy.normalise.save_pretrained(temporary)
        policy.denormalise.save_pretrained(temporary)
    return folder
