"""The twin: an SO-101 over a table, driven in LeRobot's units and in simulated time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism_motor._checks import InputError, check_choice, check_size
from prism_motor.sim.scene import import_mujoco
from prism_motor.sim.sensing import CameraRenderer
from prism_motor.sim.so101.arm import find_servos
from prism_motor.sim.so101.outcome import TwinOutcome
from prism_motor.sim.so101.placement import Placement, evaluation_poses, random_pose
from prism_motor.sim.so101.scenes import SCENES, Scene
from prism_motor.sim.so101.scenes.scene import CAMERAS, TIMESTEP
from prism_motor.sim.so101.units import HIGH, JOINTS, LOW, check_targets, to_lerobot, to_radians

Array = NDArray[np.float64]
Image = NDArray[np.uint8]

HOME = np.array([0.0, -64.0, 27.0, 88.0, 0.0, 0.0])
"""Targets at the start of an episode, in LeRobot's units: the tip is over the table's middle."""

FRAME = 1 / 30
"""Time between two targets, s."""

_SETTLING = 1.5
_LONGEST = 60.0


class Twin:
    """A simulated SO-101 with one thing on the table.

    Equal seeds and targets give equal bits. Images are drawn only by :meth:`images`.

    Args:
        task: ``mouse-click-v0``, ``press-key-v0`` or ``push-cube-v0``; or a scene of your own.
        servos: ``soft`` or ``stiff``.
        kp: Another stiffness of the servos, N m/rad; default: that of ``servos``.
        placement: Where things are put by a seed: ``narrow`` or ``wide``.
        cameras: Which cameras to draw: ``agent``, ``wrist``.
        camera_size: Side of the square images, pixels.

    Attributes:
        model: The compiled ``mjModel``.
        data: Its ``MjData``.
        pose: Where the thing was put.
        seed: Seed of the last reset; 0 if a pose was given.
        targets: What the servos hold, in LeRobot's units.
    """

    def __init__(
        self,
        task: str | Scene = "mouse-click-v0",
        *,
        servos: str = "soft",
        kp: float | None = None,
        placement: str = "narrow",
        cameras: Sequence[str] = CAMERAS,
        camera_size: int = 96,
    ) -> None:
        mujoco = import_mujoco("The SO-101 twin", "so101")
        if isinstance(task, str):
            task = SCENES[check_choice("task of the SO-101", task, SCENES)]
        self.scene: Scene = task
        self.servos = find_servos(servos, kp)
        self.placement = self.scene.placements(placement)
        self.cameras = tuple(
            check_choice("camera of the SO-101", name, CAMERAS) for name in cameras
        )
        self.camera_size = check_size("Twin", "camera_size", camera_size)
        self.model: Any = self.scene.build(self.servos)
        self.data: Any = mujoco.MjData(self.model)
        self._joints = np.array([self.model.joint(name).qposadr[0] for name in JOINTS])
        self._dofs = np.array([self.model.joint(name).dofadr[0] for name in JOINTS])
        thing = self.model.joint(self.scene.body)
        self._thing = int(thing.qposadr[0])
        self._watcher = self.scene.watcher(self.model)
        self._renderer: CameraRenderer | None = None
        self._at_rest = self._settle()
        self.reset(pose=self.placement.middle)

    def _settle(self) -> Array:
        """Return the state in which arm and thing are at rest, with the thing in the middle."""
        mujoco = import_mujoco()
        self.data.qpos[self._joints] = to_radians(HOME)
        self._put(self.placement.middle, np.array([self.scene.height, 1.0, 0.0, 0.0, 0.0]))
        self.data.ctrl[:] = to_radians(HOME)
        self.model.opt.timestep = TIMESTEP
        for _ in range(round(_SETTLING / TIMESTEP)):
            mujoco.mj_step(self.model, self.data)
        return self.data.qpos.copy()

    def _put(self, pose: Placement, lying: Array) -> None:
        """Put the thing somewhere, given its height and how it lies there when it is not turned."""
        turned, yaw = np.zeros(4), (math.cos(pose.yaw / 2), 0.0, 0.0, math.sin(pose.yaw / 2))
        import_mujoco().mju_mulQuat(turned, np.array(yaw), lying[1:])
        self.data.qpos[self._thing : self._thing + 7] = [pose.x, pose.y, lying[0], *turned]

    @property
    def evaluation_poses(self) -> tuple[Placement, ...]:
        """The fixed poses of the task and the twin's range."""
        return evaluation_poses(self.scene.name, self.placement)

    def reset(self, *, seed: int | None = None, pose: Placement | None = None) -> None:
        """Start an episode at rest: the thing at a pose, or at random from a seed.

        Args:
            seed: Seed of a pose that is none of the fixed ones.
            pose: Where to put the thing; in the wide range of the task.
        """
        if (seed is None) == (pose is None):
            raise InputError("Give reset either a seed or a pose.")
        if seed is not None:
            if isinstance(seed, bool) or seed < 0:
                raise InputError(f"A seed is a whole number from 0, got {seed!r}.")
            pose = random_pose(self.scene.name, self.placement, seed)
        assert pose is not None
        self.pose, self.seed = self.scene.wide.check(pose), seed or 0
        mujoco = import_mujoco()
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self._at_rest
        self._put(self.pose, self._at_rest[self._thing + 2 : self._thing + 7])
        self.targets = HOME.copy()
        self.data.ctrl[:] = to_radians(HOME)
        self._place_everything()
        self._watcher.reset(self.data)

    def step(self, targets: ArrayLike, seconds: float = FRAME) -> None:
        """Give the servos targets and simulate for exactly that long.

        Args:
            targets: Six values in LeRobot's units; the servos stop at the ends of their ranges.
            seconds: Simulated time.
        """
        self.targets = check_targets(targets)
        if not 0 < seconds <= _LONGEST:
            raise InputError(
                f"A step takes more than 0 and at most {_LONGEST:g} s of simulated time, got "
                f"{seconds}."
            )
        mujoco = import_mujoco()
        self.data.ctrl[:] = np.clip(to_radians(self.targets), LOW, HIGH)
        steps = math.ceil(seconds / TIMESTEP - 1e-9)
        self.model.opt.timestep = seconds / steps
        for _ in range(steps):
            mujoco.mj_step(self.model, self.data)
            self._watcher.watch(self.data)
        self._place_everything()

    def _place_everything(self) -> None:
        """Bring the places of bodies and cameras up to date, without touching the dynamics."""
        mujoco = import_mujoco()
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)

    @property
    def time(self) -> float:
        """Simulated time since the reset, s."""
        return float(self.data.time)

    @property
    def outcome(self) -> TwinOutcome:
        """What happened since the reset."""
        return self._watcher.outcome

    @property
    def target(self) -> Array:
        """Where the tip shall touch the thing, or bring it, m (3)."""
        return self.scene.target(self.data)

    @property
    def tip(self) -> Array:
        """Tip of the fixed jaw, m (3)."""
        return self.data.site("tip").xpos.copy()

    @property
    def thing(self) -> Array:
        """Position and quaternion (w x y z) of the thing (7)."""
        return self.data.qpos[self._thing : self._thing + 7].copy()

    @property
    def angles(self) -> Array:
        """Joint angles, rad (6)."""
        return self.data.qpos[self._joints].copy()

    def positions(self) -> Array:
        """Return the joint positions in LeRobot's units (6)."""
        return to_lerobot(self.angles)

    def images(self) -> dict[str, Image]:
        """Draw the cameras: height x width x 3 by name."""
        return {camera: self.draw(camera, self.camera_size) for camera in self.cameras}

    def draw(self, camera: str, size: int) -> Image:
        """Draw one camera at any size."""
        if self._renderer is None:
            largest = max(size, self.camera_size)
            self._renderer = CameraRenderer(self.model, largest)
        return np.ascontiguousarray(self._renderer.render(self.data, camera, size))

    def close(self) -> None:
        """Free the renderer; the twin draws again if it is asked to."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def __enter__(self) -> Twin:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
