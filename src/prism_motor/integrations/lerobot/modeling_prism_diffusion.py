"""The policy behind ``prism_diffusion``."""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.integrations.lerobot.checkpoints import check_config, config_for_checkpoint
from prism_motor.integrations.lerobot.conditioning import optimizer_groups
from prism_motor.integrations.lerobot.configuration_prism_diffusion import PrismDiffusionConfig

try:
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
    from lerobot.policies.diffusion.modeling_diffusion import (
        DiffusionModel,
        DiffusionPolicy,
        SpatialSoftmax,
    )
    from lerobot.policies.pretrained import PreTrainedPolicy
    from lerobot.utils.constants import OBS_IMAGES, OBS_STATE
    from torchvision.transforms import Resize
    from torchvision.transforms.functional import center_crop
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot", "manipulation", error) from error


_CHANNELS = 64


class SmallRgbEncoder(nn.Module):
    """Three convolutions and a spatial softmax: (N, 3, H, W) -> (N, 2 x keypoints).

    A ResNet-18 reduces a 64-pixel image to 2 x 2 cells, too few to locate things; here a quarter of
    the side is left, at a thirtieth of the cost.

    Args:
        config: Gives the size of the images (``resize_shape``, else their own) and the number of
            keypoints.
    """

    def __init__(self, config: DiffusionConfig) -> None:
        super().__init__()
        if config.crop_shape is not None:
            raise InputError(
                "The small image encoder does not crop: leave crop_shape and crop_ratio unset, or "
                "use image_encoder='resnet'."
            )
        channels, height, width = next(iter(config.image_features.values())).shape
        self.resize: nn.Module = nn.Identity()
        if config.resize_shape is not None:
            height, width = config.resize_shape
            self.resize = Resize((height, width))
        if height % 4 or width % 4:
            raise InputError(
                f"The small image encoder needs sides that are multiples of 4, got "
                f"{height} x {width}."
            )
        half = _CHANNELS // 2
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, half, 5, stride=2, padding=2), nn.GroupNorm(4, half), nn.ReLU(),
            nn.Conv2d(half, _CHANNELS, 3, stride=2, padding=1), nn.GroupNorm(8, _CHANNELS),
            nn.ReLU(),
            nn.Conv2d(_CHANNELS, _CHANNELS, 3, padding=1), nn.GroupNorm(8, _CHANNELS), nn.ReLU(),
        )  # fmt: skip
        keypoints = config.spatial_softmax_num_keypoints
        self.pool = SpatialSoftmax((_CHANNELS, height // 4, width // 4), num_kp=keypoints)
        self.feature_dim = 2 * keypoints
        self.out = nn.Sequential(nn.Linear(self.feature_dim, self.feature_dim), nn.ReLU())

    def forward(self, images: Tensor) -> Tensor:
        """Encode normalised images."""
        return self.out(self.pool(self.convolutions(self.resize(images))).flatten(start_dim=1))


class PrismDiffusionModel(DiffusionModel):
    """LeRobot's diffusion model; the state history passes through the conditioner first.

    State dict: LeRobot's, with ``conditioner.*`` unless the conditioner is ``linear``.
    """

    conditioner: nn.Module | None
    config: PrismDiffusionConfig

    def __init__(self, config: PrismDiffusionConfig) -> None:
        super().__init__(config)
        if config.image_features and config.image_encoder == "small":
            self.rgb_encoder = SmallRgbEncoder(config)  # as wide as the one it replaces
        assert config.robot_state_feature is not None  # validated by the config
        size = config.n_obs_steps * config.robot_state_feature.shape[0]
        # Built last, so that with the same seed encoder and U-Net start the same in every arm.
        self.conditioner = config.make_conditioner(size, size)

    def _prepare_global_conditioning(self, batch: dict[str, Tensor]) -> Tensor:
        if OBS_IMAGES in batch and self.config.crop_square:
            height, width = batch[OBS_IMAGES].shape[-2:]
            batch = {
                **batch, OBS_IMAGES: center_crop(batch[OBS_IMAGES], [min(height, width)] * 2)
            }  # fmt: skip
        if self.conditioner is not None:
            state = batch[OBS_STATE]  # (batch, steps, coordinates)
            conditioned = self.conditioner(state.flatten(start_dim=1)).reshape(state.shape)
            batch = {**batch, OBS_STATE: conditioned}
        return super()._prepare_global_conditioning(batch)


class PrismDiffusionPolicy(DiffusionPolicy):
    """LeRobot's Diffusion Policy with the conditioner its config names.

    Args:
        config: Its ``input_features`` and ``output_features`` must be set.
        **kwargs: What LeRobot's factory passes to every policy; not used.
    """

    config_class = PrismDiffusionConfig
    name = "prism_diffusion"

    def __init__(self, config: PrismDiffusionConfig, **kwargs: Any) -> None:
        check_config(type(self), config)
        # Not DiffusionPolicy's: it would build LeRobot's model first and consume random numbers.
        PreTrainedPolicy.__init__(self, config)
        config.validate_features()
        self.diffusion = PrismDiffusionModel(config)
        self.reset()

    def get_optim_params(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return LeRobot's parameters in groups that exclude gates from weight decay."""
        return optimizer_groups(self.diffusion, self.diffusion.conditioner)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_name_or_path: str | Path,
        *,
        config: PreTrainedConfig | None = None,
        **kwargs: Any,
    ) -> "PrismDiffusionPolicy":
        """Load a checkpoint, always strictly; one with another conditioner is rejected."""
        config = config_for_checkpoint(cls, pretrained_name_or_path, config, kwargs)
        kwargs["strict"] = True
        return super().from_pretrained(pretrained_name_or_path, config=config, **kwargs)
