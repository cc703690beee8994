"""PRISM for Stable-Baselines3: a features extractor, and a policy with an unchanged critic.

Only the policy branch gets the polynomial encoder; the critic is that of ``MlpPolicy``::

    PPO(PrismActorCriticPolicy, env, policy_kwargs={"latent": 64, "degree": 2})

The extractor in front of both branches, for any algorithm (SAC, TD3, DQN, ...)::

    SAC("MlpPolicy", env, policy_kwargs={
        "features_extractor_class": PolynomialExtractor,
        "features_extractor_kwargs": {"features_dim": 64},
    })

With SB3's ``ortho_init`` (the default) linear layers start orthogonal as elsewhere in SB3; the
factors and gates of the interaction stage keep their own initialisation.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from prism_motor._checks import InputTypeError
from prism_motor._extras import missing_extra
from prism_motor.nn import PrismActorConfig

try:
    from gymnasium import spaces
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.preprocessing import get_flattened_obs_dim
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor
except ImportError as error:
    raise missing_extra("prism_motor.integrations.stable_baselines3", "sb3", error) from error


class PolynomialExtractor(BaseFeaturesExtractor):
    """Flatten the observation, then apply the encoder of the prism actor.

    Args:
        observation_space: Any space SB3 turns into one tensor.
        features_dim: Size of the interaction stage and of the output.
        degree: Polynomial degree.
        activation: Activation of the encoder by name.
        interaction: Interaction layer by name, one of ``prism_motor.nn.INTERACTIONS``.
        gate_init: Initial gates (``interaction="gated"`` only).
        bound: Bounded mode (``interaction="gated"`` only).
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        features_dim: int = 256,
        degree: int = 2,
        *,
        activation: str = "tanh",
        interaction: str = "gated",
        gate_init: float = 0.01,
        bound: float | None = None,
    ) -> None:
        config = PrismActorConfig(
            activation=activation,
            latent=features_dim,
            degree=degree,
            interaction=interaction,
            gate_init=gate_init,
            bound=bound,
        )
        if isinstance(observation_space, spaces.Dict):
            raise InputTypeError(
                "PolynomialExtractor takes one tensor, got a Dict observation space with keys "
                f"{', '.join(observation_space.spaces)}. Flatten it first with "
                "gymnasium.wrappers.FlattenObservation(env)."
            )
        super().__init__(observation_space, features_dim)
        self.flatten = nn.Flatten()
        self.encoder = config.make_encoder(get_flattened_obs_dim(observation_space))

    def forward(self, observations: Tensor) -> Tensor:
        """Map observations (batch, ...) to features (batch, features_dim)."""
        return self.encoder(self.flatten(observations))


class PrismActorCriticPolicy(ActorCriticPolicy):
    """SB3's actor-critic policy with the polynomial encoder only in the policy branch.

    The encoder precedes ``net_arch``'s policy layers and uses ``activation_fn``. Features
    extractor, value branch and everything else are SB3's own.

    Args:
        *args: As in SB3's ``ActorCriticPolicy``.
        latent: Width of the interaction stage.
        degree: Polynomial degree.
        interaction: Interaction layer by name, one of ``prism_motor.nn.INTERACTIONS``.
        gate_init: Initial gates (``interaction="gated"`` only).
        bound: Bounded mode (``interaction="gated"`` only).
        **kwargs: As in SB3's ``ActorCriticPolicy``.

    State dict: as SB3's, with ``mlp_extractor.policy_net.0.*`` the encoder and
    ``mlp_extractor.policy_net.1.*`` the policy layers.
    """

    def __init__(
        self,
        *args: Any,
        latent: int = 256,
        degree: int = 2,
        interaction: str = "gated",
        gate_init: float = 0.01,
        bound: float | None = None,
        activation_fn: type[nn.Module] = nn.Tanh,
        **kwargs: Any,
    ) -> None:
        self.encoder_config = PrismActorConfig(
            activation=activation_fn.__name__.lower(),
            latent=latent,
            degree=degree,
            interaction=interaction,
            gate_init=gate_init,
            bound=bound,
        )
        super().__init__(*args, activation_fn=activation_fn, **kwargs)

    def _build_mlp_extractor(self) -> None:
        # SB3 gives both branches the same input size, so they are built one by one.
        layers = self.net_arch
        branches = layers if isinstance(layers, dict) else {"pi": layers, "vf": layers}

        def build(size: int, branch: str) -> MlpExtractor:
            architecture = {branch: branches.get(branch, [])}
            return MlpExtractor(size, architecture, self.activation_fn, self.device)

        encoder = self.encoder_config.make_encoder(self.features_dim).to(self.device)
        actor = build(self.encoder_config.latent, "pi")
        self.mlp_extractor = build(self.features_dim, "vf")
        self.mlp_extractor.policy_net = nn.Sequential(encoder, actor.policy_net)
        self.mlp_extractor.latent_dim_pi = actor.latent_dim_pi

    def _get_constructor_parameters(self) -> dict[str, Any]:
        options = ("latent", "degree", "interaction", "gate_init", "bound")
        return super()._get_constructor_parameters() | {
            name: getattr(self.encoder_config, name) for name in options
        }
