"""PRISM for Stable-Baselines3: a features extractor, and a policy with an unchanged critic.

Only the policy branch gets the polynomial encoder; the critic is that of ``MlpPolicy``::

    PPO(PrismActorCriticPolicy, env, policy_kwargs={"latent": 64, "degree": 2})
    PPO(PrismActorCriticPolicy, env, policy_kwargs={"actor": "prism-after", "warmup": 50})

The extractor in front of both branches, for any algorithm (SAC, TD3, DQN, ...)::

    SAC("MlpPolicy", env, policy_kwargs={
        "features_extractor_class": PolynomialExtractor,
        "features_extractor_kwargs": {"features_dim": 64},
    })

With SB3's ``ortho_init`` (the default) linear layers start orthogonal as elsewhere in SB3; the
factors and gates of the interaction stage keep their own initialisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from torch import Tensor, nn

from prism_motor._checks import InputTypeError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.nn import ACTORS, ActorConfig, PrismActorConfig, advance_warmup

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
        features_dim: Size of the interaction stage and, without a by-pass, of the output.
        degree: Polynomial degree.
        activation: Activation of the encoder by name.
        interaction: Interaction layer by name, one of ``prism_motor.nn.INTERACTIONS``.
        gate_init: Initial gates (``interaction="gated"`` only).
        bound: Bounded mode (``interaction="gated"`` only).
        bypass: Indices of flattened observations that join after the polynomial; they make the
            output larger by as many.
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
        bypass: Sequence[int] = (),
    ) -> None:
        config = PrismActorConfig(
            activation=activation,
            latent=features_dim,
            degree=degree,
            interaction=interaction,
            gate_init=gate_init,
            bound=bound,
            bypass=tuple(bypass),
        )
        if isinstance(observation_space, spaces.Dict):
            raise InputTypeError(
                "PolynomialExtractor takes one tensor, got a Dict observation space with keys "
                f"{', '.join(observation_space.spaces)}. Flatten it first with "
                "gymnasium.wrappers.FlattenObservation(env)."
            )
        inputs = get_flattened_obs_dim(observation_space)
        super().__init__(observation_space, config.encoded_size(inputs))
        self.flatten = nn.Flatten()
        self.encoder = config.make_encoder(inputs)

    def forward(self, observations: Tensor) -> Tensor:
        """Map observations (batch, ...) to features (batch, features_dim)."""
        return self.encoder(self.flatten(observations))


class PrismActorCriticPolicy(ActorCriticPolicy):
    """SB3's actor-critic policy with the polynomial only in the policy branch.

    Encoders precede ``net_arch``'s policy layers; the polynomial of ``prism-after`` comes behind
    them. Both use ``activation_fn``. Features extractor, value branch and everything else are SB3's
    own. A warm-up counts calls of the algorithm's ``train``, i.e. PPO's updates.

    Args:
        *args: As in SB3's ``ActorCriticPolicy``.
        actor: One of ``prism_motor.nn.ACTORS``.
        activation_fn: Activation of all layers.
        **options: Fields of the actor's config (``latent``, ``degree``, ``bypass``, ...), and as in
            SB3's ``ActorCriticPolicy``.

    State dict: as SB3's, with ``mlp_extractor.policy_net.0.*`` the encoder,
    ``mlp_extractor.policy_net.1.*`` the policy layers and ``mlp_extractor.policy_net.2.*`` a
    polynomial behind them.
    """

    def __init__(
        self,
        *args: Any,
        actor: str = "prism",
        activation_fn: type[nn.Module] = nn.Tanh,
        **options: Any,
    ) -> None:
        kind = ACTORS[check_choice("actor", actor, ACTORS)]
        for name in options.keys() & {name for one in ACTORS.values() for name in _options(one)}:
            check_choice(f"option of actor {actor!r}", name, _options(kind))
        own = {name: options.pop(name) for name in _options(kind) if name in options}
        self.actor_config = kind(activation=activation_fn.__name__.lower(), **own)
        self._in_update = False
        super().__init__(*args, activation_fn=activation_fn, **options)
        self.optimizer.register_step_post_hook(self._begin_update)
        self.register_state_dict_pre_hook(PrismActorCriticPolicy._finish_update)

    def _build_mlp_extractor(self) -> None:
        # SB3 gives both branches the same input size, so they are built one by one.
        layers = self.net_arch
        branches = layers if isinstance(layers, dict) else {"pi": layers, "vf": layers}

        def build(size: int, branch: str) -> MlpExtractor:
            architecture = {branch: branches.get(branch, [])}
            return MlpExtractor(size, architecture, self.activation_fn, self.device)

        encoder = self.actor_config.make_encoder(self.features_dim).to(self.device)
        actor = build(self.actor_config.encoded_size(self.features_dim), "pi")
        self.mlp_extractor = build(self.features_dim, "vf")
        policy = nn.Sequential(encoder, actor.policy_net)
        after = self.actor_config.make_after(actor.latent_dim_pi)
        if after is not None:
            policy.append(after.to(self.device))
        self.mlp_extractor.policy_net = policy
        self.mlp_extractor.latent_dim_pi = actor.latent_dim_pi

    def set_training_mode(self, mode: bool) -> None:
        """Switch between learning and acting; the first step of acting ends an update."""
        if not mode:
            self._finish_update()
        super().set_training_mode(mode)

    def _begin_update(self, *_: Any) -> None:
        self._in_update = True

    def _finish_update(self, *_: Any) -> None:
        if self._in_update:
            self._in_update = False
            advance_warmup(self)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {name: getattr(self.actor_config, name) for name in _options(type(self.actor_config))}
        return super()._get_constructor_parameters() | {"actor": self.actor_config.name} | own


def _options(kind: type[ActorConfig]) -> list[str]:
    """Return the fields of an actor's config that SB3 has no own settings for."""
    return [one.name for one in fields(kind) if one.name not in ("hidden", "activation")]
