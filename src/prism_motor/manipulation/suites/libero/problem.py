"""LIBERO's environment of a task: built once, then reset, stepped and read quickly.

robosuite runs the whole forward dynamics three times per physics step and looks everything up by
name. Here its controller gets the same numbers from one pass between ``mj_step1`` and ``mj_step2``,
so that states stay bit-identical.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._extras import missing_extra
from prism_motor.manipulation.suites.libero.package import import_libero
from prism_motor.manipulation.suites.libero.preparation import ensure_prepared
from prism_motor.manipulation.suites.libero.states import read_states
from prism_motor.sim.scene import import_mujoco

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Array
    from prism_motor.manipulation.tasks import Task

NEAR = 1e-3
"""Random resets with all objects this close (m) to a fixed initial state are redrawn."""

SUBSTEPS = 25
"""Physics steps (2 ms) per control step (50 ms)."""
SAMPLED = 23
"""The physics step after which robosuite reads its sensors, once an initial state is set."""

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


class LiberoProblem:
    """A LIBERO problem without its renderer.

    The model is compiled once. LIBERO recompiles it at every reset, which takes longer than many
    episodes; here everything that a reset changes in it is restored instead.

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
        # Read at every reset, when robosuite recreates the controller.
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

        Fixtures such as cabinets are not part of the fixed states: they follow ``seed``.
        """
        for attempt in range(100):
            # The first draw equals LIBERO's for that seed; redraws must differ from other seeds'.
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
        """Return whether the objects are placed as in one of the fixed initial states."""
        columns = 1 + self._movable[:, None] + np.arange(2)
        now = self.data.qpos[columns - 1]
        away = np.linalg.norm(self.fixed[:, columns] - now, axis=-1)
        return bool((away.max(1) < NEAR).any())

    def succeeded(self) -> bool:
        """Return whether the goal of the task is reached now."""
        return bool(self.env._check_success())

    def close(self) -> None:
        """Free the simulation."""
        self.env.close()


def load_states(task: Task) -> Array:
    """Return the fixed initial states of a task (states x values): time, positions, velocities."""
    libero = import_libero()
    file = Path(libero.get_libero_path("init_states")) / task.suite / f"{task.name}.pruned_init"
    return read_states(file)


@contextlib.contextmanager
def _random_numbers(seed: list[int]) -> Iterator[None]:
    """Seed the global random numbers, which LIBERO draws from, and restore them afterwards."""
    before = np.random.get_state()
    plain = len(seed) == 1 and seed[0] < 2**32
    np.random.seed(seed[0] if plain else np.random.SeedSequence(seed).generate_state(4))
    try:
        yield
    finally:
        np.random.set_state(before)


class LiberoStepper:
    """Applies actions to a LIBERO problem.

    Args:
        problem: LIBERO's original environment; it may be reset at any time, but not reloaded.
    """

    def __init__(self, problem: Any) -> None:
        self._robot = problem.robots[0]
        self._model, self._data = problem.sim.model._model, problem.sim.data._data
        self._site = self._robot.eef_site_id
        # Arrays, because indexing by a list is several times slower in numpy.
        self._dofs = np.array(self._robot._ref_joint_vel_indexes)
        self._joints = np.array(self._robot._ref_joint_pos_indexes)
        self._arm = np.array(self._robot._ref_joint_actuator_indexes)
        self._fingers = np.array(self._robot._ref_joint_gripper_actuator_indexes)
        self._low, self._high = self._robot.torque_limits
        reach = self._model.actuator_ctrlrange[self._fingers]
        self._middle, self._half = reach.mean(1), 0.5 * (reach[:, 1] - reach[:, 0])
        self._linear = np.zeros((3, self._model.nv))
        self._angular = np.zeros((3, self._model.nv))
        self._mass = np.zeros((self._model.nv, self._model.nv))

    def step(self, action: NDArray[np.floating], sample: Callable[[], None]) -> None:
        """Apply one action for a control step; ``sample`` is called when sensors are read."""
        mujoco = import_mujoco()
        model, data, controller = self._model, self._data, self._robot.controller
        for substep in range(SUBSTEPS):
            mujoco.mj_step1(model, data)
            self._inform(controller)
            if substep == 0:
                controller.set_goal(action[:6])
            data.ctrl[self._arm] = np.clip(controller.run_controller(), self._low, self._high)
            opening = self._robot.gripper.format_action(action[6:])
            data.ctrl[self._fingers] = self._middle + self._half * opening
            mujoco.mj_step2(model, data)
            if substep == SAMPLED:
                sample()
        bad = mujoco.mjtWarning
        for kind in (bad.mjWARN_BADQPOS, bad.mjWARN_BADQVEL, bad.mjWARN_BADQACC):
            if data.warning[kind.value].number:
                # MuJoCo has reset the state and would continue from there.
                raise FloatingPointError("The simulation of LIBERO diverged; reset it.")

    def _inform(self, controller: Any) -> None:
        """Give the controller the values that its ``update`` would look up."""
        if not controller.new_update:  # right after a reset, it uses its old values
            return
        mujoco = import_mujoco()
        model, data, site, dofs = self._model, self._data, self._site, self._dofs
        mujoco.mj_jacSite(model, data, self._linear, self._angular, site)
        mujoco.mj_fullM(model, self._mass, data.qM)
        controller.ee_pos = np.array(data.site_xpos[site])
        controller.ee_ori_mat = np.array(data.site_xmat[site].reshape(3, 3))
        controller.ee_pos_vel = np.dot(self._linear, data.qvel)
        controller.ee_ori_vel = np.dot(self._angular, data.qvel)
        controller.joint_pos = data.qpos[self._joints]
        controller.joint_vel = data.qvel[dofs]
        controller.J_pos = self._linear[:, dofs]
        controller.J_ori = self._angular[:, dofs]
        controller.J_full = np.vstack([controller.J_pos, controller.J_ori])
        controller.mass_matrix = self._mass[dofs, :][:, dofs]
        controller.new_update = False


class LiberoObjects:
    """Reads the objects that a task's goal and instruction name, in a fixed order.

    Each object gives its position and quaternion, then the positions of its joints (drawers,
    doors, knobs).

    Args:
        problem: LIBERO's original environment.
    """

    def __init__(self, problem: Any) -> None:
        model = problem.sim.model._model
        self._data = problem.sim.data._data
        self._bodies: list[int] = []
        self._joints: list[list[int]] = []
        names: list[str] = []
        for thing in _things_of_interest(problem):
            joints = [model.joint(name) for name in _own_joints(problem, thing)]
            self._bodies.append(problem.obj_body_id[thing])
            self._joints.append([int(joint.qposadr[0]) for joint in joints])
            names += [f"{thing}_{axis}" for axis in _POSE]
            names += [joint.name for joint in joints]
        self.names = tuple(names)

    def read(self) -> Array:
        """Return the current values, in the order of ``names``."""
        data = self._data
        parts: list[Array] = []
        for body, joints in zip(self._bodies, self._joints, strict=True):
            parts += [data.xpos[body], data.xquat[body], data.qpos[joints]]
        return np.concatenate(parts)


def _things_of_interest(problem: Any) -> list[str]:
    """List the objects and fixtures of interest; a region counts as its parent."""
    goal = [name for predicate in problem.parsed_problem["goal_state"] for name in predicate[1:]]
    things: list[str] = []
    for name in [*problem.obj_of_interest, *goal]:
        region = problem.object_sites_dict.get(name)
        thing = name if region is None else region.parent_name
        if thing in problem.obj_body_id and thing not in things:
            things.append(thing)
    return things


def _own_joints(problem: Any, thing: str) -> list[str]:
    """List the hinges and slides of an object, without its free joint."""
    model = problem.sim.model._model
    free = 0
    return [name for name in problem.get_object(thing).joints if model.joint(name).type[0] != free]
