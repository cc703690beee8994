"""Around any policy: the executed translation yields to the force at the hand."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.compliance.config import ComplianceConfig, find_compliance
from prism_motor.manipulation.compliance.force import check_joints, contact_force, estimated_force
from prism_motor.manipulation.environment import Array, Environment, Physics


class ComplianceCorrector:
    """``a[:3] - clip(k_f f_{t-d})``, where f is what the hand exerts on the world.

    Pressing on a table, f points down and the action is raised. Every step the force is measured,
    noise is added, and the moving average goes on; what is used is the average of d steps ago, and
    nothing in the first d steps. Call :meth:`reset` before every episode.

    Args:
        config: The baseline.

    Attributes:
        force: The force behind the last correction, N (3).
    """

    def __init__(self, config: ComplianceConfig) -> None:
        self.config = config
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forget the past; the noise of the episode follows from ``seed``."""
        self._rng = np.random.default_rng(seed)
        self._average: Array = np.zeros(3)
        self._late: deque[Array] = deque([np.zeros(3)] * self.config.delay)
        self.force: Array = np.zeros(3)

    def correct(self, action: NDArray[np.floating], physics: Physics) -> NDArray[np.floating]:
        """Return the action to execute; only its first three components change.

        Args:
            action: What the policy wants; the first three components move the end effector along
                the axes of the world.
            physics: Measured now, before the action.
        """
        config = self.config
        if config.source == "actuators":
            force = estimated_force(physics, config.damping)
        else:
            force = contact_force(physics)
        force = force + config.noise * self._rng.standard_normal(3)
        self._average = config.smoothing * self._average + (1 - config.smoothing) * force
        self._late.append(self._average)
        self.force = self._late.popleft()
        change = np.clip(config.gain * self.force, -config.clip, config.clip)
        executed = np.array(action)
        # Clipped before as well: an action beyond the range must not swallow the change.
        executed[:3] = np.clip(np.clip(executed[:3], -1, 1) - change, -1, 1)
        return executed


def make_corrector(name: str, environment: Environment) -> ComplianceCorrector:
    """Return a baseline by name, or say why it cannot work in an environment.

    Args:
        name: One of :data:`prism_motor.manipulation.compliance.COMPLIANCE`.
        environment: Where it will act; it is reset.
    """
    config = find_compliance(name)
    if config.source == "actuators":
        environment.reset(seed=0, images=False)
        check_joints(environment.physics().jacobian)
    return ComplianceCorrector(config)
