"""One control step of LIBERO: robosuite's own controller, without what it computes in vain.

robosuite runs the whole forward dynamics three times a physics step and looks everything up by
name. Here the controller is given the same numbers from one pass between ``mj_step1`` and
``mj_step2``, so that states stay equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.sim.scene import import_mujoco

SUBSTEPS = 25
"""Physics steps of 2 ms in a control step of 50 ms."""
SAMPLED = 23
"""The physics step after which robosuite reads its sensors, once a fixed initial state was set."""


class Stepper:
    """Applies actions to a LIBERO problem.

    Args:
        problem: LIBERO's own environment; it may be reset without telling, but not reloaded.
    """

    def __init__(self, problem: Any) -> None:
        self._robot = problem.robots[0]
        self._model, self._data = problem.sim.model._model, problem.sim.data._data
        self._site = self._robot.eef_site_id
        # Arrays, because numpy takes several times as long to index by a list.
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
                # MuJoCo has set everything to its origin and would go on from there.
                raise FloatingPointError("The simulation of LIBERO diverged; reset it.")

    def _inform(self, controller: Any) -> None:
        """Give the controller what its own ``update`` would look up, when it would."""
        if not controller.new_update:  # the first time after a reset, it acts on what it knows
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
