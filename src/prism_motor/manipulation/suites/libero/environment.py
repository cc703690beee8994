"""One LIBERO task as an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from prism_motor._checks import InputError, check_choice, check_size
from prism_motor.manipulation.arm_physics import read_physics
from prism_motor.manipulation.environment import (
    Array,
    Environment,
    Image,
    Observation,
    Physics,
    Transition,
)
from prism_motor.manipulation.suites.libero.problem import (
    LiberoObjects,
    LiberoProblem,
    LiberoStepper,
)
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.sensing import RENDERERS, CameraRenderer, scale

if TYPE_CHECKING:
    from prism_motor.manipulation.tasks import Task

CAMERAS = ("agentview", "robot0_eye_in_hand")
"""Default cameras of policies: one facing the table, one on the hand."""

STIFFNESS = 150.0
"""Kp of LIBERO's controller, with which the public demonstrations were made."""

SETTLING = 10
"""Control steps without motion after a reset, while objects settle."""

_METRES, _RADIANS = 0.05, 0.5
"""Change of the controller's goal per unit of action and axis."""

_REST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
_HAND = "robot0_right_hand"
_COLLISION = 0
"""Group of the collision geometry, which is not rendered."""


class LiberoEnvironment(Environment):
    """A LIBERO scene: a Panda arm under operational-space control, as in LeRobot's wrapper.

    The state is the position of the end effector, its orientation as axis times angle, and two
    finger positions; the objects are those of :class:`LiberoObjects`. Actions move the goal of the
    controller (up to 5 cm and 0.5 rad per axis and step), the last one closes (1) or opens (-1)
    the fingers.

    As in LeRobot's wrapper, sensors and cameras are read 2 ms before the end of a step, and images
    are mirrored.

    Args:
        task: Which task.
        cameras: Names of cameras of the scene.
        image_size: Side of the square images, pixels.
        seed: Default seed of resets.
        stiffness: Kp of the controller, 1/s^2; its damping ratio is one. The hand moves at up to
            about 0.27 m/s with 150, and 0.17 m/s with 50.
        renderer: ``fast``, or ``stock``: equal to LeRobot's wrapper to the pixel.
        drawn_size: Side of the images as they are drawn, before they are scaled to ``image_size``;
            default: ``image_size``.
    """

    action_names: tuple[str, ...] = ("x", "y", "z", "turn_x", "turn_y", "turn_z", "gripper")
    state_names: tuple[str, ...] = (
        "x",
        "y",
        "z",
        "turn_x",
        "turn_y",
        "turn_z",
        "left_finger",
        "right_finger",
    )
    control_seconds = 0.05

    def __init__(
        self,
        task: Task,
        *,
        cameras: Sequence[str] = CAMERAS,
        image_size: int = 128,
        seed: int = 0,
        stiffness: float = STIFFNESS,
        renderer: str = "fast",
        drawn_size: int | None = None,
    ) -> None:
        if not stiffness > 0:
            raise InputError(
                f"The stiffness of LIBERO's controller must be positive, got {stiffness}."
            )
        self.task = task
        self.stiffness = stiffness
        self.image_size = check_size("LiberoEnvironment", "image_size", image_size)
        self._kind = check_choice("renderer", renderer, RENDERERS)
        self._drawn = check_size("LiberoEnvironment", "drawn_size", drawn_size or image_size)
        self._problem = LiberoProblem(task, stiffness)
        self._model, self._data = self._problem.model, self._problem.data
        known = [self._model.camera(index).name for index in range(self._model.ncam)]
        self.cameras = tuple(check_choice("camera of LIBERO", name, known) for name in cameras)
        self.initial_states = len(self._problem.fixed)
        self._seeds = np.random.default_rng(seed)
        self._stepper = LiberoStepper(self._problem.env)
        self._objects = LiberoObjects(self._problem.env)
        self.object_names = self._objects.names
        robot = self._problem.env.robots[0]
        self._site = robot.eef_site_id
        self._body = self._model.body(_HAND).id
        self._hand = _subtree(self._model.body_parentid, self._body)
        self._fingers = list(robot._ref_gripper_joint_pos_indexes)
        self._joints = list(robot._ref_joint_pos_indexes)
        self._dofs = list(robot._ref_joint_vel_indexes)
        self._renderer: CameraRenderer | None = None
        self._steps = 0

    @property
    def problem(self) -> object:
        """LIBERO's original environment, for experts, which may use privileged state."""
        return self._problem.env

    def reset(
        self, *, seed: int | None = None, initial_state: int | None = None, images: bool = True
    ) -> Observation:
        """Start an episode, at random from ``seed`` or at one of the fixed initial states.

        With a fixed initial state, ``seed`` places the fixtures; default: the state's number.
        """
        self.check_initial_state(initial_state)
        if seed is None:
            seed = int(self._seeds.integers(2**31)) if initial_state is None else initial_state
        self._problem.reset(seed, initial_state)
        for _ in range(SETTLING - 1):
            self._advance(_REST, images=False)
        self._steps = 0
        return self._advance(_REST, images)

    def step(self, action: NDArray[np.floating], *, images: bool = True) -> Transition:
        """Apply one action in [-1, 1]; render images only if requested."""
        action = np.asarray(action)
        self.check_action(action)
        seen = self._advance(action, images)
        self._problem.env._post_process()
        self._steps += 1
        return Transition(seen, self._problem.succeeded(), self._steps >= self.task.horizon)

    def _advance(self, action: NDArray[np.floating], images: bool) -> Observation:
        seen: list[Observation] = []
        self._stepper.step(action, lambda: seen.append(self._observe(images)))
        return seen[-1]

    def _observe(self, images: bool) -> Observation:
        data = self._data
        state = np.concatenate([
            data.site_xpos[self._site],
            _axis_angle(data.xquat[self._body]),
            data.qpos[self._fingers],
        ])  # fmt: skip
        drawn = {
            camera: scale(
                np.ascontiguousarray(self._draw(camera, self._drawn)[:, ::-1]), self.image_size
            )
            for camera in self.cameras * images
        }
        return Observation(state.astype(np.float32), self._objects.read().astype(np.float32), drawn)

    def physics(self) -> Physics:
        """Return the current physical quantities, all at the same instant.

        The end effector is the point between the finger pads; its orientation is the hand's.
        """
        mujoco = import_mujoco()
        model, data = self._model, self._data
        # Update derived quantities; the next step does the same first.
        mujoco.mj_forward(model, data)
        return read_physics(
            model, data, site=self._site, body=self._body, dofs=self._dofs,
            joint_positions=data.qpos[self._joints], hand=self._hand,
        )  # fmt: skip

    def commanded_pose(self, before: Physics, action: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return the controller's goal: the action added to the pose before the step."""
        clipped = np.clip(np.asarray(action, dtype=np.float64), -1, 1)
        position = before.position + _METRES * clipped[:3]
        start = Rotation.from_quat(
            np.roll(before.quaternion, -1)
        )  # scipy expects the real part last
        turned = Rotation.from_rotvec(_RADIANS * clipped[3:6]) * start
        return position, np.roll(turned.as_quat(), 1)

    def frame(self, size: int = 256) -> Image:
        """Render the first camera at ``size``, for videos; not mirrored."""
        camera = self.cameras[0] if self.cameras else CAMERAS[0]
        return np.ascontiguousarray(self._draw(camera, size))

    def _draw(self, camera: str, size: int) -> Image:
        if self._renderer is None:
            largest = max(size, self._drawn)
            self._renderer = CameraRenderer(self._model, largest, [_COLLISION], self._kind)
        return self._renderer.render(self._data, camera, size)

    def close(self) -> None:
        """Free the simulator and its renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._problem.close()


def _axis_angle(quaternion: NDArray[np.float64]) -> NDArray[np.float32]:
    """Turn w x y z into axis times angle, in single precision as LeRobot does.

    scipy's Rotation computes in double precision and takes the shorter way round, so states would
    no longer be bit-identical to LeRobot's.
    """
    w, *vector = quaternion.astype(np.float32)
    w = np.clip(w, np.float32(-1.0), np.float32(1.0))
    sine = np.sqrt(np.maximum(np.float32(1.0) - w * w, np.float32(0.0)))
    if sine <= 1e-10:
        return np.zeros(3, dtype=np.float32)
    return np.asarray(vector, dtype=np.float32) / sine * (np.float32(2.0) * np.arccos(w))


def _subtree(parents: NDArray[np.int32], root: int) -> list[int]:
    """List a body and all its descendants; parents come before their children."""
    members = [root]
    for body in range(root + 1, len(parents)):
        if parents[body] in members:
            members.append(body)
    return members
