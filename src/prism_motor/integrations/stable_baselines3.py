"""PRISM for Stable-Baselines3: a features extractor, and policies with unchanged critics.

Only the actor gets the polynomial encoder; the critics are those of ``MlpPolicy``::

    PPO(PrismActorCriticPolicy, env, policy_kwargs={"latent": 64, "degree": 2})
    PPO(PrismActorCriticPolicy, env, policy_kwargs={"actor": "prism-after", "warmup": 50})
    SAC(PrismSACPolicy, env, policy_kwargs={"latent": 128})

The extractor in front of actor and critics, for any algorithm (SAC, TD3, DQN, ...)::

    TD3("MlpPolicy", env, policy_kwargs={
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

import torch
from torch import Tensor, nn

from prism_motor._checks import InputTypeError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.nn import ACTORS, ActorConfig, PrismActorConfig, advance_warmup

try:
    from gymnasium import spaces
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.preprocessing import get_flattened_obs_dim
    from stable_baselines3.common.torch_layers import (
        BaseFeaturesExtractor,
        MlpExtractor,
        create_mlp,
        get_actor_critic_arch,
    )
    from stable_baselines3.sac.policies import Actor, SACPolicy
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
        gate_init: Initial gates (layers with gates only).
        bound: Bounded mode (layers with gates only).
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


class _ActorOptions:
    """What policies with an actor of ours share: its settings, and its warm-up.

    A warm-up counts calls of the algorithm's ``train``.
    """

    actor_config: ActorConfig

    def _take_options(
        self, actor: str, activation_fn: type[nn.Module], options: dict[str, Any]
    ) -> None:
        """Remove the fields of the actor's config from a policy's options."""
        kind = ACTORS[check_choice("actor", actor, ACTORS)]
        for name in options.keys() & {name for one in ACTORS.values() for name in _options(one)}:
            check_choice(f"option of actor {actor!r}", name, _options(kind))
        own = {name: options.pop(name) for name in _options(kind) if name in options}
        self.actor_config = kind(activation=activation_fn.__name__.lower(), **own)
        self._in_update = False

    def _count_updates(self, optimizer: torch.optim.Optimizer) -> None:
        """Notice the steps of the actor's optimiser."""
        optimizer.register_step_post_hook(self._begin_update)
        self.register_state_dict_pre_hook(_finish_before_saving)  # type: ignore[attr-defined]

    def _begin_update(self, *_: Any) -> None:
        self._in_update = True

    def _finish_update(self) -> None:
        if self._in_update:
            self._in_update = False
            advance_warmup(self)  # type: ignore[arg-type]

    def set_training_mode(self, mode: bool) -> None:
        """Switch between learning and acting; the first step of acting ends an update."""
        if not mode:
            self._finish_update()
        super().set_training_mode(mode)  # type: ignore[misc]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {name: getattr(self.actor_config, name) for name in _options(type(self.actor_config))}
        known = super()._get_constructor_parameters()  # type: ignore[misc]
        return known | {"actor": self.actor_config.name} | own


def _finish_before_saving(policy: Any, *_: Any) -> None:
    policy._finish_update()


class PrismActorCriticPolicy(_ActorOptions, ActorCriticPolicy):
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
        self._take_options(actor, activation_fn, options)
        super().__init__(*args, activation_fn=activation_fn, **options)
        self._count_updates(self.optimizer)

    @property
    def actor(self) -> nn.Module:
        """What off-policy algorithms ask for, and this policy does not have."""
        raise InputTypeError(
            "PrismActorCriticPolicy is for PPO, A2C and TRPO. Give SAC PrismSACPolicy, and TD3 and "
            "other off-policy algorithms 'MlpPolicy' with "
            "policy_kwargs={'features_extractor_class': PolynomialExtractor}."
        )

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


class PrismSACPolicy(_ActorOptions, SACPolicy):
    """SB3's policy of SAC with the polynomial only in the actor; the critics are SB3's own.

    Encoders precede the actor's layers of ``net_arch``, before its heads for mean and deviation;
    the polynomial of ``prism-after`` comes behind them. Both use ``activation_fn``. A warm-up
    counts calls of the algorithm's ``train``: by default one per step of the environment.

    Args:
        *args: As in SB3's ``SACPolicy``.
        actor: One of ``prism_motor.nn.ACTORS``.
        activation_fn: Activation of all layers.
        **options: Fields of the actor's config (``latent``, ``degree``, ``bypass``, ...), and as in
            SB3's ``SACPolicy``.

    State dict: as SB3's, with ``actor.latent_pi.0.*`` the encoder, ``actor.latent_pi.1.*`` the
    layers and ``actor.latent_pi.2.*`` a polynomial behind them.
    """

    def __init__(
        self,
        *args: Any,
        actor: str = "prism",
        activation_fn: type[nn.Module] = nn.ReLU,
        **options: Any,
    ) -> None:
        self._take_options(actor, activation_fn, options)
        super().__init__(*args, activation_fn=activation_fn, **options)
        self._count_updates(self.actor.optimizer)

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> Actor:
        """Make SB3's actor with our encoder in front of its layers."""
        actor = super().make_actor(features_extractor)
        widths, _ = get_actor_critic_arch(self.net_arch)
        size = self.actor_config.encoded_size(actor.features_dim)
        layers = create_mlp(size, -1, widths, self.activation_fn)
        parts = [self.actor_config.make_encoder(actor.features_dim), nn.Sequential(*layers)]
        after = self.actor_config.make_after(widths[-1]) if widths else None
        if after is not None:
            parts.append(after)
        actor.latent_pi = nn.Sequential(*parts).to(self.device)
        return actor


def _options(kind: type[ActorConfig]) -> list[str]:
    """Return the fields of an actor's config that SB3 has no own settings for."""
    return [one.name for one in fields(kind) if one.name not in ("hidden", "activation")]
