"""One task of the SO-101 twin as an environment, and its scripted leader as an expert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import check_size
from prism_motor.manipulation.arm_physics import read_physics
from prism_motor.manipulation.environment import (
    Array,
    BasicEnvironment,
    Expert,
    Image,
    Observation,
    Physics,
)
from prism_motor.sim.sensing import scale
from prism_motor.sim.so101.kinematics import forward
from prism_motor.sim.so101.leaders import make_leader
from prism_motor.sim.so101.placement import EVALUATION_POSES
from prism_motor.sim.so101.scenes.scene import CAMERAS
from prism_motor.sim.so101.twin import FRAME, Twin
from prism_motor.sim.so101.units import (
    ACTION_HIGH,
    ACTION_LOW,
    FEATURES,
    HIGH,
    JOINTS,
    LOW,
    to_radians,
)

if TYPE_CHECKING:
    from prism_motor.manipulation.tasks import Task

_HAND = ("gripper", "jaw")
_ARM = len(JOINTS) - 1
_LARGEST_SEED = 2**62


class So101Environment(BasicEnvironment):
    """The twin: state and action are joint positions and their targets, in LeRobot's units.

    The objects are the pose of the thing on the table and the place to touch or to bring it to.
    Initial states are the twin's fixed poses; other resets put the thing at random.

    Args:
        task: Which task.
        cameras: ``agent``, ``wrist``.
        image_size: Side of the square images, pixels.
        seed: Default seed of resets.
        servos: ``soft`` or ``stiff``.
        placement: ``narrow`` or ``wide``.
        stiffness: Another stiffness of the servos, N m/rad; default: that of ``servos``.
        drawn_size: Side of the images as they are drawn, before they are scaled to ``image_size``;
            default: ``image_size``.
    """

    state_names: tuple[str, ...] = FEATURES
    action_names: tuple[str, ...] = FEATURES
    object_names: tuple[str, ...] = (
        "thing_x", "thing_y", "thing_z", "thing_qw", "thing_qx", "thing_qy", "thing_qz",
        "target_x", "target_y", "target_z",
    )  # fmt: skip
    control_seconds = FRAME
    initial_states = EVALUATION_POSES
    joint_targets = True
    noise_unit = 50.0  # noise of 0.01 is half a degree, about that of play in the gears
    smallest_range = 2.0  # a tick is 0.09 degrees

    def __init__(
        self,
        task: Task,
        *,
        cameras: Sequence[str] = CAMERAS,
        image_size: int = 128,
        seed: int = 0,
        servos: str = "soft",
        placement: str = "narrow",
        stiffness: float | None = None,
        drawn_size: int | None = None,
    ) -> None:
        super().__init__(task, cameras=cameras, image_size=image_size, seed=seed)
        drawn = check_size("So101Environment", "drawn_size", drawn_size or image_size)
        self.twin = Twin(
            task.name,
            servos=servos,
            kp=stiffness,
            placement=placement,
            cameras=cameras,
            camera_size=drawn,
        )
        model = self.twin.model
        self._hand = [model.body(name).id for name in _HAND]
        self._tip, self._gripper = model.site("tip").id, model.body("gripper").id
        self._dofs = np.array([model.joint(name).dofadr[0] for name in JOINTS[:_ARM]])

    @property
    def action_low(self) -> NDArray[np.float32]:
        """Lowest targets: degrees, and 0 % of the gripper."""
        return ACTION_LOW.astype(np.float32)

    @property
    def action_high(self) -> NDArray[np.float32]:
        """Highest targets: degrees, and 100 % of the gripper."""
        return ACTION_HIGH.astype(np.float32)

    def holding_action(self) -> NDArray[np.float32]:
        """Return the targets that the servos hold already."""
        return self.twin.targets.astype(np.float32)

    def reset(
        self, *, seed: int | None = None, initial_state: int | None = None, images: bool = True
    ) -> Observation:
        """Start an episode, at random from ``seed`` or at one of the fixed poses."""
        self.check_initial_state(initial_state)
        if initial_state is not None:
            self.twin.reset(pose=self.twin.evaluation_poses[initial_state])
        else:
            chosen = int(self._seeds.integers(_LARGEST_SEED)) if seed is None else seed
            self.twin.reset(seed=chosen)
        self._steps = 0
        return self.observe(images)

    def place(self, random: np.random.Generator) -> None:
        """Put the thing somewhere at random."""
        self.twin.reset(seed=int(random.integers(_LARGEST_SEED)))

    def advance(self, action: NDArray[np.float32]) -> bool:
        """Simulate one frame; return whether the strict criterion is met."""
        self.twin.step(action)
        return self.twin.outcome.success

    def observe(self, images: bool) -> Observation:
        """Return joint positions, object poses and, if requested, images."""
        drawn = self.twin.images() if images else {}
        return Observation(
            self.twin.positions().astype(np.float32),
            np.concatenate([self.twin.thing, self.twin.target]).astype(np.float32),
            {camera: scale(image, self.image_size) for camera, image in drawn.items()},
        )

    def physics(self) -> Physics:
        """Return the current physical quantities; forces are those of the last physics step."""
        model, data = self.twin.model, self.twin.data
        return read_physics(
            model, data, site=self._tip, body=self._gripper, dofs=self._dofs,
            joint_positions=self.twin.angles[:_ARM], hand=self._hand,
        )  # fmt: skip

    def commanded_pose(self, before: Physics, action: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return where the tip would be if every joint were at its target."""
        return forward(np.clip(to_radians(action), LOW, HIGH))

    def frame(self, size: int = 256) -> Image:
        """Render the first camera at ``size``, for videos."""
        return self.twin.draw(self.cameras[0] if self.cameras else CAMERAS[0], size)

    def close(self) -> None:
        """Free the renderer."""
        self.twin.close()


class So101Expert(Expert):
    """The scripted leader of a task.

    Args:
        environment: The environment it acts in.
    """

    def __init__(self, environment: So101Environment) -> None:
        super().__init__(environment)
        self._leader = make_leader(environment.twin)

    def reset(self) -> None:
        """Begin an episode; speed, aim and lag follow from its seed."""
        self._leader.reset()

    def act(self) -> NDArray[np.float32]:
        """Return the next targets in LeRobot's units."""
        return self._leader.act().astype(np.float32)
