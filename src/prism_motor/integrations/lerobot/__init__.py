"""PRISM in LeRobot 0.4 to 0.6: ``prism_diffusion`` and ``prism_smolvla``, next to its own policies.

Only the proprioceptive pathway differs from LeRobot's policies; with ``conditioner="linear"``
nothing does. The distribution ``lerobot_policy_prism`` lets LeRobot's commands find them
(``lerobot-train --policy.type=prism_diffusion``). From Python::

    from lerobot.configs.types import FeatureType, PolicyFeature
    from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismDiffusionPolicy

    config = PrismDiffusionConfig(
        conditioner="prism",
        input_features={
            "observation.state": PolicyFeature(FeatureType.STATE, (8,)),
            "observation.images.front": PolicyFeature(FeatureType.VISUAL, (3, 128, 128)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (7,))},
        down_dims=(128, 256, 512),
        num_inference_steps=10,
        device="cpu",
    )
    policy = PrismDiffusionPolicy(config)
    optimizer = config.get_optimizer_preset().build(policy.get_optim_params())
    loss, _ = policy.forward(batch)  # normalised by LeRobot's processors (make_pre_post_processors)

Object poses instead of images: ``"observation.environment_state": PolicyFeature(FeatureType.ENV,
(n,))``. LeRobot leaves them as they are unless ``normalization_mapping`` has an entry ``"ENV"``.
"""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy
from prism_motor.integrations.lerobot.configuration_prism_diffusion import PrismDiffusionConfig
from prism_motor.integrations.lerobot.configuration_prism_smolvla import PrismSmolVLAConfig

if TYPE_CHECKING:
    from prism_motor.integrations.lerobot.modeling_prism_diffusion import PrismDiffusionPolicy
    from prism_motor.integrations.lerobot.modeling_prism_smolvla import PrismSmolVLAPolicy

__all__ = [
    "PrismDiffusionConfig",
    "PrismDiffusionPolicy",
    "PrismSmolVLAConfig",
    "PrismSmolVLAPolicy",
]

# Models are imported when used, as LeRobot does: each needs packages the other does not.
__getattr__ = lazy(
    __name__,
    {
        "PrismDiffusionPolicy": "modeling_prism_diffusion",
        "PrismSmolVLAPolicy": "modeling_prism_smolvla",
    },
)
