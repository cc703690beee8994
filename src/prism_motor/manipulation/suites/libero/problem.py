"""LIBERO's own environment of a task: building it once, resetting it quickly and repeatably."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._extras import missing_extra
from prism_motor.manipulation.environment import Array
from prism_motor.manipulation.suites.libero.package import import_libero
from prism_motor.manipulation.suites.libero.preparation import ensure_prepared
from prism_motor.manipulation.tasks import Task

NEAR = 1e-3
"""A random reset whose objects all lie this near (m) to a fixed initial state is drawn again."""


class Problem:
    """A LIBERO problem without its renderer.

    The model is compiled once. LIBERO compiles it anew at every reset, which takes longer than
    many an episode; here everything that a reset changes in it is put back instead.

    Args:
        task: Which task.
        stiffness: Kp of the controller.
    """

    def __init__(self, task: Task, stiffness: float) -> None:
        ensure_prepared()
        try:
            libero = import_libero()
            wrapper = import_libero("libero.libero.envs.env_wrapper")
        except ImportError as error:
            raise missing_extra("LIBERO", "manipulation", error) from error
        folder = Path(libero.get_libero_path("bddl_files")) / task.suite
        self.fixed = load_states(task)
        with _random_numbers([0]), contextlib.redirect_stdout(io.StringIO()):
            self.env: Any = wrapper.ControlEnv(
                bddl_file_name=str(folder / f"{task.name}.bddl"),
                use_camera_obs=False,
                has_offscreen_renderer=False,
                ignore_done=True,
                hard_reset=False,
            ).env
        # Read at every reset, when robosuite makes the controller anew.
        self.env.robots[0].controller_config.update(kp=stiffness, damping_ratio=1.0)
        self.model, self.data = self.env.sim.model._model, self.env.sim.data._data
        self._fixtures = [
            self.model.body(fixture.root_body).id for fixture in self.env.fixtures_dict.values()
        ]
        self._movable = np.array([
            self.model.joint(thing.joints[-1]).qposadr[0]
            for thing in self.env.objects_dict.values()
        ])  # fmt: skip

    def reset(self, seed: int, initial_state: int | None = None) -> None:
        """Place everything at random, then at a fixed initial state if one is given.

        Fixtures such as cabinets are no part of the fixed states: they follow ``seed``.
        """
        for attempt in range(100):
            # The first draw is LIBERO's for that seed; others must not be those of other seeds.
            self._place([seed] if attempt == 0 else [seed, attempt])
            if initial_state is not None or not self._is_fixed():
                break
        if initial_state is not None:
            self.env.sim.set_state_from_flattened(self.fixed[initial_state])
        self.env.sim.forward()
        self.env._post_process()

    def _place(self, seed: list[int]) -> None:
        self.model.body_pos[self._fixtures] = 0.0
        self.model.body_quat[self._fixtures] = (1.0, 0.0, 0.0, 0.0)
        gripper = self.env.robots[0].gripper
        gripper.current_action = np.zeros(gripper.dof)
        randomization_error = import_libero("robosuite.utils.errors").RandomizationError
        with _random_numbers(seed):
            while True:
                with contextlib.suppress(randomization_error):
                    self.env.reset()
                    return

    def _is_fixed(self) -> bool:
        """Whether the objects lie where they lie in one of the fixed initial states."""
        columns = 1 + self._movable[:, None] + np.arange(2)
        now = self.data.qpos[columns - 1]
        away = np.linalg.norm(self.fixed[:, columns] - now, axis=-1)
        return bool((away.max(1) < NEAR).any())

    def succeeded(self) -> bool:
        """Whether the goal of the task is reached now."""
        return bool(self.env._check_success())

    def close(self) -> None:
        """Free the simulation."""
        self.env.close()


def load_states(task: Task) -> Array:
    """Return the fixed initial states of a task (states x values): time, positions, velocities."""
    import torch

    libero = import_libero()
    file = Path(libero.get_libero_path("init_states")) / task.suite / f"{task.name}.pruned_init"
    return np.asarray(torch.load(file, weights_only=False))


@contextlib.contextmanager
def _random_numbers(seed: list[int]) -> Iterator[None]:
    """Seed the global random numbers, which LIBERO draws from, and put them back afterwards."""
    before = np.random.get_state()
    plain = len(seed) == 1 and seed[0] < 2**32
    np.random.seed(seed[0] if plain else np.random.SeedSequence(seed).generate_state(4))
    try:
        yield
    finally:
        np.random.set_state(before)
