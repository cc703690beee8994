"""The twin as a Gymnasium environment, in the form that ``lerobot-eval`` expects."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from prism_motor.sim.so101.scenes.scene import CAMERAS
from prism_motor.sim.so101.twin import Twin
from prism_motor.sim.so101.units import ACTION_HIGH, ACTION_LOW

_SHOWN = 256
"""Side of the pictures of videos, pixels."""


class SO101Env(gymnasium.Env[dict[str, Any], NDArray[np.float32]]):
    """One episode is one placement, by the seed of the reset; it ends with success.

    Args:
        task: What is on the table.
        fps: Commands a second.
        image_size: Side of the square images, pixels.
        servos: ``soft`` or ``stiff``.
        placement: ``narrow`` or ``wide``.
        render_mode: ``rgb_array``, for videos.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(
        self,
        task: str = "mouse-click-v0",
        fps: int = 30,
        image_size: int = 96,
        servos: str = "soft",
        placement: str = "narrow",
        render_mode: str = "rgb_array",
    ) -> None:
        self.twin = Twin(task, servos=servos, placement=placement, camera_size=image_size)
        self.task, self.task_description = task, self.twin.scene.instruction
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": fps}  # type: ignore[misc]
        self._seconds = 1 / fps
        picture = spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)
        self.observation_space = spaces.Dict(
            {
                "agent_pos": spaces.Box(-np.inf, np.inf, ACTION_LOW.shape, np.float32),
                "pixels": spaces.Dict(dict.fromkeys(CAMERAS, picture)),
            }
        )
        self.action_space = spaces.Box(
            ACTION_LOW.astype(np.float32), ACTION_HIGH.astype(np.float32), dtype=np.float32
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; without a seed, with one from the generator."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        self.twin.reset(seed=seed)
        return self._observe(), {"is_success": False}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Advance by one command; the reward is 1 once the task is solved."""
        self.twin.step(action, seconds=self._seconds)
        success = self.twin.outcome.success
        return self._observe(), float(success), success, False, {"is_success": success}

    def render(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """Return a picture for a video."""
        return self.twin.draw(CAMERAS[0], _SHOWN)

    def close(self) -> None:
        """Free the twin."""
        self.twin.close()

    def _observe(self) -> dict[str, Any]:
        positions = self.twin.positions().astype(np.float32)
        return {"agent_pos": positions, "pixels": self.twin.images()}


gymnasium.register("prism/SO101-v0", f"{__name__}:SO101Env")
