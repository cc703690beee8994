"""``prism_smolvla``: LeRobot's SmolVLA with a conditioner for the state token."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.integrations.lerobot.conditioning import ConditionerFields

try:
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot", "manipulation", error) from error


@PreTrainedConfig.register_subclass("prism_smolvla")
@dataclass
class PrismSmolVLAConfig(ConditionerFields, SmolVLAConfig):
    """LeRobot's ``SmolVLAConfig`` with the fields of the conditioner.

    The conditioner replaces ``state_proj``. Defaults are the paper's: at the language model's width
    of 960 it has 1,910,400 parameters (``mlp_size="large"``: 6,230,976).

    SmolVLA pads the state with zeros to ``max_state_dim`` after normalisation. The conditioner
    keeps inputs for the padding, so that one policy fits robots of several sizes and the counts are
    the paper's, but ignores it: see ``narrow_state`` and :func:`ignore_padding`.
    """

    output_norm: str | None = "rms"
    narrow_state: bool = False
    """Build the conditioner for the robot's own state size instead of ``max_state_dim``: fewer
    parameters, but only for robots with a state of that size."""

    NORM_EPS: ClassVar[float] = 1e-6
    LARGE_WIDTHS: ClassVar[tuple[int, ...]] = (2048, 2048)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        self.check_conditioner()
        if self.input_norm is not None and not self.narrow_state:
            raise InputError(
                f"input_norm={self.input_norm!r} would normalise over the padding of the state and "
                "make it non-zero. Set narrow_state=true, or leave input_norm out."
            )

    def validate_features(self) -> None:
        """Check that the state fits, then run LeRobot's checks."""
        if self.robot_state_feature is None:
            raise InputError(
                "prism_smolvla needs 'observation.state' among the inputs, got: "
                f"{', '.join(self.input_features or {}) or 'none'}."
            )
        size = self.robot_state_feature.shape[0]
        if size > self.max_state_dim:
            raise InputError(
                f"observation.state has {size} coordinates, more than max_state_dim="
                f"{self.max_state_dim}. Set max_state_dim={size}."
            )
        super().validate_features()

    def conditioner_traits(self) -> dict[str, object]:
        """Return what distinguishes this conditioner, including its input size."""
        traits = super().conditioner_traits()
        if self.conditioner != "linear":
            traits["narrow_state"] = self.narrow_state
        return traits

    def make_state_projection(self, hidden: int) -> nn.Module | None:
        """Build the replacement of ``state_proj``; ``None`` for ``linear``."""
        assert self.robot_state_feature is not None  # validated above
        state = self.robot_state_feature.shape[0]
        return self.make_conditioner(state if self.narrow_state else self.max_state_dim, hidden)
