"""An image encoder for small images and slow machines, in the place of LeRobot's ResNet."""

from __future__ import annotations

from torch import Tensor, nn

from prism_motor._errors import InputError
from prism_motor._extras import missing_extra

try:
    from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
    from lerobot.policies.diffusion.modeling_diffusion import SpatialSoftmax
    from torchvision.transforms import Resize
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot", "manipulation", error) from error

_CHANNELS = 64


class SmallRgbEncoder(nn.Module):
    """Three convolutions and a spatial softmax: (N, 3, H, W) -> (N, 2 x keypoints).

    A ResNet-18 leaves 2 x 2 cells of a 64-pixel image, too few to say where things are; here a
    quarter of the side is left, at a thirtieth of the cost.

    Args:
        config: Gives the size of the images (``resize_shape``, else their own) and the number of
            keypoints.
    """

    def __init__(self, config: DiffusionConfig) -> None:
        super().__init__()
        if config.crop_shape is not None:
            raise InputError(
                "The small image encoder does not crop: leave crop_shape and crop_ratio alone, or "
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
