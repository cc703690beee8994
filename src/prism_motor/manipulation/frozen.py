"""Weights that are never trained: checkpoints hold their hash, and they come from their source.

The vision-language model of SmolVLA is most of the policy and the same in every checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import hash_weights

if TYPE_CHECKING:
    from prism_motor.manipulation.backbones import Backbone

HASH = "frozen_sha256"
"""Entry of a checkpoint's state."""


def trained_weights(backbone: Backbone, policy: nn.Module) -> dict[str, Tensor]:
    """Return the weights that a checkpoint holds."""
    frozen = backbone.frozen(policy)
    return {name: value for name, value in policy.state_dict().items() if name not in frozen}


def frozen_hash(backbone: Backbone, policy: nn.Module) -> str | None:
    """Return the hash of the weights that a checkpoint leaves out; ``None`` without any."""
    frozen, weights = backbone.frozen(policy), policy.state_dict()
    return hash_weights({name: weights[name] for name in frozen}) if frozen else None


def load_weights(
    backbone: Backbone, policy: nn.Module, weights: dict[str, Tensor], state: dict[str, Any]
) -> None:
    """Load the weights of a checkpoint; raise if the rest is not what they were trained with.

    Args:
        backbone: The policy's backbone.
        policy: The policy, with its frozen weights in place.
        weights: The other weights.
        state: The rest of the checkpoint.
    """
    wanted, found = state.get(HASH), frozen_hash(backbone, policy)
    if wanted != found:
        raise RunError(
            f"{backbone.describe_frozen(policy)} is not the one that the policy was trained with "
            f"(SHA-256 {str(found)[:12]} instead of {str(wanted)[:12]}): put that one back, or use "
            "the versions of torch and transformers that provenance.json names."
        )
    kept = {name: value for name, value in policy.state_dict().items() if name not in weights}
    frozen = backbone.frozen(policy)
    policy.load_state_dict({**weights, **{k: v for k, v in kept.items() if k in frozen}})
