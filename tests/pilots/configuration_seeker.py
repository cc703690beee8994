"""A tiny policy of LeRobot: it goes where it sees red, if that is not too far to the right."""

from dataclasses import dataclass, field

from lerobot.configs.policies import PreTrainedConfig
from lerobot.configs.types import NormalizationMode


@PreTrainedConfig.register_subclass("point_seeker")
@dataclass
class SeekerConfig(PreTrainedConfig):
    reach: float = 1.0
    """Targets beyond this, in -1 to 1, are missed."""
    normalization_mapping: dict = field(
        default_factory=lambda: {
            "VISUAL": NormalizationMode.IDENTITY,
            "STATE": NormalizationMode.MIN_MAX,
            "ACTION": NormalizationMode.MIN_MAX,
        }
    )

    observation_delta_indices = None
    action_delta_indices = None
    reward_delta_indices = None

    def get_optimizer_preset(self):
        raise NotImplementedError

    def get_scheduler_preset(self):
        return None

    def validate_features(self):
        pass
