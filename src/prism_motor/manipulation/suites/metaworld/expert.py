"""The scripted policies that come with Meta-World."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.suites.metaworld.environment import MetaWorldEnvironment


class MetaWorldExpert:
    """Meta-World's own policy for the task of an environment; nothing in it is random.

    Args:
        environment: What it acts in.
    """

    def __init__(self, environment: MetaWorldEnvironment) -> None:
        from metaworld.policies import ENV_POLICY_MAP

        self.environment = environment
        self._policy: Any = ENV_POLICY_MAP[environment.task.name]()

    def reset(self) -> None:
        """Nothing to forget: the policies look at the present alone."""

    def act(self) -> NDArray[np.float32]:
        """Return the next action, in [-1, 1]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it wants to move faster than is possible
            action = self._policy.get_action(self.environment.raw_observation())
        return np.clip(action, -1.0, 1.0).astype(np.float32)
