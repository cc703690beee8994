"""``prism_diffusion``: LeRobot's Diffusion Policy with a conditioner for the state history."""

from dataclasses import dataclass
from typing import ClassVar

from prism_motor._checks import InputError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.integrations.lerobot.conditioning import ConditionerFields

try:
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.optim.optimizers import AdamWConfig
    from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot", "manipulation", error) from error


@PreTrainedConfig.register_subclass("prism_diffusion")
@dataclass
class PrismDiffusionConfig(ConditionerFields, DiffusionConfig):
    """LeRobot's ``DiffusionConfig`` with the fields of the conditioner.

    The conditioner maps the flattened state history (``n_obs_steps`` x state size) to a vector of
    the same size that takes its place in the global condition. Its defaults are the paper's: with
    two steps of eight coordinates it has 79,408 parameters. Everything else keeps the defaults of
    LeRobot 0.4 under every version: 0.6 changed some, and an arm must not change with them.

    The optimiser is AdamW for every conditioner (the paper's; LeRobot's preset is Adam).
    """

    prism_latent: int | None = 256
    input_norm: str | None = "layer"
    latent_norm: str | None = "layer"

    horizon: int = 16
    n_action_steps: int = 8
    drop_n_last_frames: int = 7
    pretrained_backbone_weights: str | None = None
    use_group_norm: bool = True
    use_separate_rgb_encoder_per_camera: bool = False

    image_encoder: str = "resnet"
    """``resnet``: LeRobot's; ``small``: three convolutions, for small images on a CPU."""
    crop_square: bool = False
    """Whether images are cut to the square in their middle before they are resized, as ``prism
    train`` does; else a camera of 640 x 480 is squeezed."""

    LARGE_WIDTHS: ClassVar[tuple[int, ...]] = (512, 512)
    """3.5 times the size of PRISM at the paper's sizes; the paper has no such arm here."""

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        self.check_conditioner()
        check_choice("image_encoder", self.image_encoder, ("resnet", "small"))
        if self.image_encoder == "small" and self.use_separate_rgb_encoder_per_camera:
            raise InputError(
                "image_encoder='small' is one encoder for all cameras; set "
                "use_separate_rgb_encoder_per_camera=false, or image_encoder='resnet'."
            )

    def validate_features(self) -> None:
        """Check that there is a state to condition on, then run LeRobot's checks."""
        if self.robot_state_feature is None:
            raise InputError(
                "prism_diffusion needs 'observation.state' among the inputs, got: "
                f"{', '.join(self.input_features or {}) or 'none'}."
            )
        super().validate_features()

    def get_optimizer_preset(self) -> AdamWConfig:  # type: ignore[override]  # LeRobot: Adam
        """Return AdamW with the values of LeRobot's Adam, which are the paper's."""
        return AdamWConfig(
            lr=self.optimizer_lr,
            betas=self.optimizer_betas,
            eps=self.optimizer_eps,
            weight_decay=self.optimizer_weight_decay,
        )
