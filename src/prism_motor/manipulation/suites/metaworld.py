"""Meta-World 3: fifty tasks for one arm, with scripted policies and no downloads."""

from __future__ import annotations

import functools
import importlib.util
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import check_choice, check_size
from prism_motor._extras import missing_extra
from prism_motor.manipulation.environment import (
    Array,
    BasicEnvironment,
    Expert,
    Image,
    Observation,
    Physics,
)
from prism_motor.manipulation.tasks import Suite, Task
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.sensing import RENDERERS, CameraRenderer, contact_forces, scale

HORIZON = 500
"""Control steps per episode, for every task."""

CAMERAS = ("corner2", "gripperPOV")
"""Default cameras of policies: one facing the table, one on the hand."""

_JOINTS = tuple(f"right_j{number}" for number in range(7))
_HAND = ("hand", "rightclaw", "rightpad", "leftclaw", "leftpad")
_CORNER = (0.75, 0.075, 0.7)
"""Position of corner2 in LeRobot and earlier work, nearer to the table."""
_UPSIDE_DOWN = ("corner", "corner2", "corner3")


@functools.cache
def list_tasks() -> tuple[Task, ...]:
    """Return all tasks, with LeRobot's numbers and instructions."""
    # Read the file without importing LeRobot, which takes seconds.
    package = importlib.util.find_spec("lerobot")
    if package is None or package.origin is None:
        cause = ImportError("No module named 'lerobot'", name="lerobot")
        raise missing_extra("Meta-World", "manipulation", cause)
    file = Path(package.origin).parent / "envs" / "metaworld_config.json"
    known = json.loads(file.read_text())
    instructions = known["TASK_DESCRIPTIONS"]
    return tuple(
        Task("metaworld", index, name, instructions[name], HORIZON)
        for name, index in sorted(known["TASK_NAME_TO_ID"].items(), key=lambda item: item[1])
    )


class MetaWorldEnvironment(BasicEnvironment):
    """A Meta-World scene: a Sawyer arm whose hand is moved by a mocap body.

    The state is the hand's position, the opening of the gripper (0 to 1) and seven joint angles;
    the objects are poses of one or two things (a position, and a quaternion in the order that the
    task gives it) and the goal. Actions move the hand (up to 1 cm per axis and step) and close
    the fingers.

    Args:
        task: Which task.
        cameras: Names of cameras of the scene.
        image_size: Side of the square images, pixels.
        seed: Default seed of resets.
        renderer: ``fast``, or ``stock``: as MuJoCo draws by default.
        drawn_size: Side of the images as they are drawn, before they are scaled to ``image_size``;
            default: ``image_size``.
    """

    action_names: tuple[str, ...] = ("x", "y", "z", "gripper")
    state_names: tuple[str, ...] = ("hand_x", "hand_y", "hand_z", "gripper_opening", *_JOINTS)

    def __init__(
        self,
        task: Task,
        *,
        cameras: Sequence[str] = CAMERAS,
        image_size: int = 128,
        seed: int = 0,
        renderer: str = "fast",
        drawn_size: int | None = None,
    ) -> None:
        try:
            from metaworld.env_dict import ALL_V3_ENVIRONMENTS
        except ImportError as error:
            raise missing_extra("Meta-World", "manipulation", error) from error
        super().__init__(task, cameras=cameras, image_size=image_size, seed=seed)
        self._kind = check_choice("renderer", renderer, RENDERERS)
        self._drawn = check_size("MetaWorldEnvironment", "drawn_size", drawn_size or image_size)
        self._env: Any = ALL_V3_ENVIRONMENTS[task.name]()
        self._env.max_path_length = np.inf  # the horizon is enforced here, softly
        self._env._set_task_called = True
        self._env._partially_observable = False  # the experts read the goal,
        vars(self._env).pop("sawyer_observation_space", None)  # so it must not be clipped to zero
        self._env.seeded_rand_vec = True
        model = self._env.model
        known = [model.camera(index).name for index in range(model.ncam)]
        for camera in self.cameras:
            check_choice("camera of Meta-World", camera, known)
        model.camera("corner2").pos[:] = _CORNER
        self.control_seconds = float(self._env.dt)
        self._hand = [model.body(name).id for name in _HAND]
        self._qpos = np.array([model.joint(name).qposadr[0] for name in _JOINTS])
        self._dofs = np.array([model.joint(name).dofadr[0] for name in _JOINTS])
        self._renderer: CameraRenderer | None = None
        self.reset(seed=0, images=False)  # needed to know how many objects there are
        objects = (len(self._objects()) - 3) // 7
        pose = ("x", "y", "z", "q0", "q1", "q2", "q3")
        self.object_names = (
            *(f"object{number}_{axis}" for number in range(1, objects + 1) for axis in pose),
            "goal_x", "goal_y", "goal_z",
        )  # fmt: skip

    def place(self, random: np.random.Generator) -> None:
        """Put everything in place for the start of an episode."""
        self._env.np_random = random
        # Meta-World's reset places objects twice, and some tasks draw until a position is valid, so
        # draw first and reuse the result in the reset.
        self._env._freeze_rand_vec = False
        self._env.reset_model()
        self._env._freeze_rand_vec = True
        self._raw, _ = self._env.reset()

    def advance(self, action: NDArray[np.float32]) -> bool:
        """Simulate one control step; return whether the task is solved now."""
        self._raw, _, _, _, info = self._env.step(action)
        return bool(info["success"])

    def commanded_pose(self, before: Physics, action: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return the position and quaternion (w x y z) of the mocap body, which pulls the hand."""
        data = self._env.data
        turn = data.mocap_quat[0]
        return data.mocap_pos[0].copy(), turn / np.linalg.norm(turn)

    def raw_observation(self) -> Array:
        """Return the input of Meta-World's scripted policies (39 values, with the goal)."""
        return self._raw

    def observe(self, images: bool) -> Observation:
        """Return the current observation, with images if requested."""
        data = self._env.data
        state = np.concatenate([self._raw[:4], data.qpos[self._qpos]]).astype(np.float32)
        drawn = {
            camera: scale(self._draw(camera, self._drawn), self.image_size)
            for camera in self.cameras * images
        }
        return Observation(state, self._objects().astype(np.float32), drawn)

    def _objects(self) -> Array:
        places = self._env._get_pos_objects().reshape(-1, 3)
        turns = self._env._get_quat_objects().reshape(-1, 4)
        count = min(len(places), len(turns))
        poses = np.hstack([places[:count], turns[:count]])
        return np.concatenate([poses.ravel(), self._env._get_pos_goal()])

    def physics(self) -> Physics:
        """Return the current physical quantities."""
        mujoco = import_mujoco()
        model, data = self._env.model, self._env.data
        hand = data.body("hand")
        twist = np.zeros(6)  # angular, then linear
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY.value, hand.id, twist, 0)
        forces = contact_forces(model, data, self._hand)
        return Physics(
            position=hand.xpos.copy(),
            quaternion=hand.xquat.copy(),
            velocity=np.concatenate([twist[3:], twist[:3]]),
            jacobian=np.zeros((6, 0)),
            joint_positions=data.qpos[self._qpos].copy(),
            joint_velocities=data.qvel[self._dofs].copy(),
            joint_torques=data.qfrc_actuator[self._dofs].copy(),
            bias_torques=data.qfrc_bias[self._dofs].copy(),
            contact_force=forces.sum(0),
            largest_force=float(np.linalg.norm(forces, axis=1).max()),
        )

    def frame(self, size: int = 256) -> Image:
        """Render the first camera at ``size``, for videos."""
        return self._draw(self.cameras[0] if self.cameras else CAMERAS[0], size)

    def _draw(self, camera: str, size: int) -> Image:
        if self._renderer is None:
            largest = max(size, self._drawn)
            self._renderer = CameraRenderer(self._env.model, largest, renderer=self._kind)
        image = self._renderer.render(self._env.data, camera, size)
        return np.ascontiguousarray(image[::-1, ::-1] if camera in _UPSIDE_DOWN else image)

    def close(self) -> None:
        """Free the simulator and its renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._env.close()


class MetaWorldExpert(Expert):
    """Meta-World's scripted policy for the task of an environment; it has no memory.

    Args:
        environment: The environment it acts in.
    """

    def __init__(self, environment: MetaWorldEnvironment) -> None:
        from metaworld.policies import ENV_POLICY_MAP

        super().__init__(environment)
        self._policy: Any = ENV_POLICY_MAP[environment.task.name]()

    def act(self) -> NDArray[np.float32]:
        """Return the next action, in [-1, 1]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about actions beyond the limits
            action = self._policy.get_action(self.environment.raw_observation())
        return np.clip(action, -1.0, 1.0).astype(np.float32)


METAWORLD = Suite(
    name="metaworld",
    list_tasks=list_tasks,
    environment=MetaWorldEnvironment,
    expert=MetaWorldExpert,
    cameras=CAMERAS,
    options=("renderer", "drawn_size"),
)
"""The suite; its arm is moved by a mocap body, so it has no stiffness."""
