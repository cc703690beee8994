"""An expert for any LIBERO task whose goal its skills can reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.suites.libero.environment import LiberoEnvironment
from prism_motor.manipulation.suites.libero.experts.articulated import is_shut
from prism_motor.manipulation.suites.libero.experts.controller import OPEN, Command, Gains, act
from prism_motor.manipulation.suites.libero.experts.programs import (
    check_program,
    derive_program,
    perform,
)
from prism_motor.manipulation.suites.libero.experts.scene import Scene
from prism_motor.manipulation.suites.libero.experts.skills import Skill


class LiberoExpert:
    """Works on the goals that are not met yet until all are; tries again what failed.

    Args:
        environment: What it acts in and looks into.
        gains: Of the proportional control.
    """

    def __init__(self, environment: LiberoEnvironment, *, gains: Gains | None = None) -> None:
        self.environment = environment
        self.gains = gains or Gains()
        self._scene: Scene | None = None
        self._commands: Skill = iter(())

    def reset(self) -> None:
        """Look at the scene afresh; call it after every reset of the environment."""
        scene = Scene(self.environment.problem)
        check_program(scene, derive_program(scene.goals))
        self._scene = scene
        self._commands = work(scene)

    def act(self) -> NDArray[np.float32]:
        """Return the next action, in [-1, 1], for the state the environment is in now."""
        if self._scene is None:
            self.reset()
        assert self._scene is not None
        action = act(self._scene.hand(), next(self._commands), self.gains)
        return np.clip(action, -1.0, 1.0).astype(np.float32)


def work(scene: Scene) -> Skill:
    """Yield commands without end: the first step of what is left to do, again and again."""
    # Some of LIBERO's scenes start with things in the air.
    for _ in range(20):
        if scene.still():
            break
        yield Command(scene.hand(), OPEN)
    while True:
        left = [goal for goal in scene.goals if not scene.holds(goal)]
        closed = [goal[-1] for goal in left if is_shut(scene, goal[-1])]
        if left:
            yield from perform(scene, derive_program(left, closed)[0])
        yield Command(scene.hand(), OPEN)
