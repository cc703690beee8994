"""The policy behind ``prism_smolvla``.

SmolVLA pads states with zeros; the conditioner neither reads the padding nor multiplies with it.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prism_motor._extras import missing_extra
from prism_motor.integrations.lerobot.checkpoints import check_config, config_for_checkpoint
from prism_motor.integrations.lerobot.conditioning import optimizer_groups
from prism_motor.integrations.lerobot.configuration_prism_smolvla import PrismSmolVLAConfig
from prism_motor.nn import ExplicitLayer, FactorLayer, PolynomialConditioner

try:
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy
except ImportError as error:
    raise missing_extra("prism_motor.integrations.lerobot", "manipulation", error) from error


def ignore_padding(conditioner: nn.Module, size: int) -> None:
    """Set the weights of all inputs from ``size`` on to zero, in every factor.

    The padding is zero, so their gradients are zero as well and they stay there: products with
    padding contribute nothing to the output, to the readout of learned products or to the exact
    expansion. A robot with a longer state can still learn them later.
    """
    if not isinstance(conditioner, PolynomialConditioner):
        return
    layer = conditioner.interaction
    with torch.no_grad():
        if isinstance(layer, FactorLayer):
            layer.weight[..., size:] = 0
        elif isinstance(layer, ExplicitLayer):
            # Index 0 of a monomial is the constant, so input i has index i + 1.
            layer.linear.weight[:, (layer.indices > size).any(dim=-1)] = 0


class NarrowConditioner(nn.Module):
    """Cut the padding off, then apply ``conditioner``."""

    def __init__(self, conditioner: nn.Module, size: int) -> None:
        super().__init__()
        self.conditioner = conditioner
        self.size = size

    def forward(self, state: Tensor) -> Tensor:
        """Map (..., padded size) to (..., hidden)."""
        return self.conditioner(state[..., : self.size])

    def extra_repr(self) -> str:  # noqa: D102
        return f"size={self.size}"


class PrismSmolVLAPolicy(SmolVLAPolicy):
    """LeRobot's SmolVLA with the state projection its config names.

    Args:
        config: Its ``input_features`` and ``output_features`` must be set.
        **kwargs: What LeRobot's factory passes to every policy; not used.

    State dict: LeRobot's, with ``model.state_proj.*`` the conditioner unless it is ``linear``.
    """

    config_class = PrismSmolVLAConfig
    name = "prism_smolvla"
    config: PrismSmolVLAConfig

    def __init__(self, config: PrismSmolVLAConfig, **kwargs: Any) -> None:
        check_config(type(self), config)
        super().__init__(config, **kwargs)
        # Built last, so that with the same seed the rest starts the same in every arm.
        conditioner = config.make_state_projection(self.model.state_proj.out_features)
        if conditioner is None:
            return
        assert config.robot_state_feature is not None  # validated by the config
        size = config.robot_state_feature.shape[0]
        if config.narrow_state:
            conditioner = NarrowConditioner(conditioner, size)
        else:
            ignore_padding(conditioner, size)
        self.model.state_proj = conditioner  # type: ignore[assignment]  # LeRobot: a Linear
        self.model.set_requires_grad()  # train_state_proj applies to ours too

    def get_optim_params(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return LeRobot's parameters in groups that exclude gates from weight decay."""
        linear = self.config.conditioner == "linear"
        return optimizer_groups(self, None if linear else self.model.state_proj)

    def _get_default_peft_targets(self) -> dict[str, Any]:
        """Put adapters where LeRobot does; our small conditioner is trained in full."""
        targets = super()._get_default_peft_targets()
        if self.config.conditioner != "linear":
            targets["target_modules"] = targets["target_modules"].replace("state_proj|", "")
            targets["modules_to_save"] = ["state_proj"]
        return targets

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_name_or_path: str | Path,
        *,
        config: PreTrainedConfig | None = None,
        **kwargs: Any,
    ) -> "PrismSmolVLAPolicy":
        """Load a checkpoint, always strictly; one with another conditioner is rejected."""
        config = config_for_checkpoint(cls, pretrained_name_or_path, config, kwargs)
        kwargs["strict"] = True
        return super().from_pretrained(pretrained_name_or_path, config=config, **kwargs)
