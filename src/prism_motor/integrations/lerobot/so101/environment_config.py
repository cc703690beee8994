"""Settings of ``so101_click``, the environment in which ``lerobot-eval`` evaluates."""

from __future__ import annotations

from dataclasses import dataclass, field

from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.envs.configs import EnvConfig

from prism_motor._checks import check_choice
from prism_motor.integrations.lerobot.so101.configuration import CAMERAS, check_between

_JOINTS = 6


@EnvConfig.register_subclass("so101_click")
@dataclass
class SO101ClickEnv(EnvConfig):
    """The twin with a mouse to click, or with another of its tasks."""

    task: str | None = "mouse-click-v0"
    """What is on the table: mouse-click-v0, press-key-v0 or push-cube-v0."""
    fps: int = 30
    """Commands a second."""
    episode_length: int = 300
    """Commands in an episode."""
    image_size: int = 96
    """Side of the square images, pixels."""
    servos: str = "soft"
    """Stiffness of the servos: soft or stiff."""
    placement: str = "narrow"
    """Where the thing is put: narrow or wide."""
    features: dict[str, PolicyFeature] = field(default_factory=dict)
    """What policies get and give; follows from the other settings."""
    features_map: dict[str, str] = field(default_factory=dict)
    """What LeRobot calls it; follows from the other settings."""

    def __post_init__(self) -> None:
        """Check the fields and describe what policies get and give."""
        check_choice("env.servos", self.servos, ("soft", "stiff"))
        check_choice("env.placement", self.placement, ("narrow", "wide"))
        check_between("env.fps", self.fps, 1, 200)
        check_between("env.episode_length", self.episode_length, 1, 100_000)
        check_between("env.image_size", self.image_size, 16, 1024)
        shape = (self.image_size, self.image_size, 3)
        self.features = {
            "action": PolicyFeature(FeatureType.ACTION, (_JOINTS,)),
            "agent_pos": PolicyFeature(FeatureType.STATE, (_JOINTS,)),
            **{f"pixels/{name}": PolicyFeature(FeatureType.VISUAL, shape) for name in CAMERAS},
        }
        self.features_map = {
            "action": "action",
            "agent_pos": "observation.state",
            **{f"pixels/{name}": f"observation.images.{name}" for name in CAMERAS},
        }

    @property
    def package_name(self) -> str:
        """Module that registers the environment with Gymnasium."""
        return "prism_motor.integrations.lerobot.so101.environment"

    @property
    def gym_id(self) -> str:
        """Name of the environment in Gymnasium."""
        return "prism/SO101-v0"

    @property
    def gym_kwargs(self) -> dict:
        """Arguments of the environment."""
        return {
            "task": self.task,
            "fps": self.fps,
            "max_episode_steps": self.episode_length,
            "image_size": self.image_size,
            "servos": self.servos,
            "placement": self.placement,
        }
