"""PRISM actors for rsl_rl 5: name the class in the config; everything else stays rsl_rl's.

The ``actor`` entry of the runner's config, ready to paste (omitted keys take the values shown)::

    "actor": {
        "class_name": "prism_motor.integrations.rsl_rl:PrismModel",
        "hidden_dims": [512, 256, 128],
        "activation": "elu",
        "obs_normalization": False,
        "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0},
        "latent": 256,             # width of the interaction stage
        "degree": 2,               # polynomial degree
        "interaction": "gated",    # or an ablation arm of prism_motor.nn.INTERACTIONS
        "gate_init": 0.01,         # initial gates
        "warmup": 0,               # PPO updates over which the products fade in
        "bound": None,             # 1.0 for half precision
        "bypass": [],              # indices of observations that join after the polynomial
    },
    "critic": {"class_name": "MLPModel", "hidden_dims": [768, 256, 128]},

The paper's Table 1 actor is ``"prism_motor.integrations.rsl_rl:ResidualModel"`` with ``latent``,
``degree``, ``warmup`` (default 500) and ``bypass``; ``GatedResidualModel`` adds learned gates
(``gate_init``, default 1.0). The abstract's is ``AfterModel`` with ``degree``, ``gate_init``,
``warmup`` (default 500) and ``bound``. The exports of rsl_rl's runner contain the polynomial; for
a single ONNX file with a free batch axis and a parity check use ``prism_motor.export``::

    policy = runner.alg.get_policy().as_onnx(verbose=False)
    export_onnx(policy, "policy.onnx", policy.get_dummy_inputs())
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from prism_motor._checks import check_choice
from prism_motor._extras import missing_extra
from prism_motor.nn import (
    ACTORS,
    ActorConfig,
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
    advance_warmup,
)
from prism_motor.nn.trunk import insert_after

try:
    from rsl_rl.models import MLPModel
    from tensordict import TensorDict
except ImportError as error:
    raise missing_extra("prism_motor.integrations.rsl_rl", "locomotion", error) from error

GAUSSIAN: dict[str, Any] = {"class_name": "GaussianDistribution", "init_std": 1.0}
"""The default action distribution; ``distribution_cfg=None`` makes a deterministic model."""

# Activations by rsl_rl's names, with ours: the trunk and the encoder share the setting.
_ACTIVATIONS = {
    "elu": "elu",
    "gelu": "gelu",
    "identity": "identity",
    "mish": "mish",
    "relu": "relu",
    "swish": "silu",
    "tanh": "tanh",
}


class PolynomialModel(MLPModel):
    """rsl_rl's MLP model with a polynomial: between normaliser and MLP, or behind hidden layers.

    Subclasses name their actor's config; its fields are accepted as keyword arguments.

    A warm-up counts PPO updates, i.e. iterations. rsl_rl does not tell the model when one ends (up
    to 5.4 ``update_normalization`` is called at every environment step, from 5.5 on at the end of
    every update), so an update is recognised by its gradients: it has started when one arrives, and
    it is over when the normaliser is updated or the model is used without gradients, saved or
    exported.

    State dict: as :class:`rsl_rl.models.MLPModel`, plus ``encoder.*``; with a polynomial behind the
    hidden layers, ``mlp.N.0.*`` and ``mlp.N.1.*`` for it and the last layer ``mlp.N.*``.
    """

    config_class: type[ActorConfig]

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        hidden_dims: tuple[int, ...] | list[int] = (512, 256, 128),
        activation: str = "elu",
        obs_normalization: bool = False,
        distribution_cfg: dict[str, Any] | None = GAUSSIAN,
        **encoder_options: Any,
    ) -> None:
        encoder_fields = [
            field.name
            for field in fields(self.config_class)
            if field.name not in ("hidden", "activation")
        ]
        allowed = [
            "hidden_dims", "activation", "obs_normalization", "distribution_cfg", *encoder_fields,
        ]  # fmt: skip
        for key in encoder_options:
            check_choice(f"{type(self).__name__} config key", key, allowed)
        activation = check_choice("activation", activation.lower(), _ACTIVATIONS)
        self.encoder_config = self.config_class(
            activation=_ACTIVATIONS[activation], **encoder_options
        )
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            hidden_dims,
            activation,
            obs_normalization,
            copy.deepcopy(distribution_cfg),  # rsl_rl < 5.5 empties the dict it is given
        )
        insert_after(self.mlp, self.encoder_config.make_after)
        self._in_update = False
        self._watch_gradients()
        self.register_state_dict_pre_hook(_finish_update)
        self.register_load_state_dict_post_hook(_forget_update)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._watch_gradients()  # hooks of a tensor are lost when the model is copied

    def _watch_gradients(self) -> None:
        def begin_update(_: torch.Tensor) -> None:
            self._in_update = True

        weight: nn.Parameter = self.mlp[0].weight  # pyright: ignore[reportAssignmentType]
        if weight.requires_grad:
            weight.register_post_accumulate_grad_hook(begin_update)

    def _get_latent_dim(self) -> int:
        # rsl_rl calls this right before it builds the MLP. Building the encoder here draws its
        # weights first, so a seed gives the same network as prism_motor.nn.build_actor.
        self.encoder = self.encoder_config.make_encoder(self.obs_dim)
        return self.encoder_config.encoded_size(self.obs_dim)

    def get_latent(
        self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: Any = None
    ) -> torch.Tensor:
        """Normalise the observations and encode them."""
        return self.encoder(super().get_latent(obs, masks, hidden_state))

    def forward(
        self,
        obs: TensorDict,
        masks: torch.Tensor | None = None,
        hidden_state: Any = None,
        stochastic_output: bool = False,
    ) -> torch.Tensor:
        """Return actions: sampled if ``stochastic_output``, else the deterministic ones."""
        if not (self.training and torch.is_grad_enabled()):
            _finish_update(self)
        return super().forward(obs, masks, hidden_state, stochastic_output)

    def update_normalization(self, obs: TensorDict) -> None:
        """Update the normaliser's statistics."""
        super().update_normalization(obs)
        _finish_update(self)

    def as_jit(self) -> nn.Module:
        """Return normaliser, encoder and MLP as one scriptable module."""
        return self._with_encoder(super().as_jit())

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return normaliser, encoder and MLP as one module for ONNX."""
        return self._with_encoder(super().as_onnx(verbose))

    def _with_encoder(self, exported: Any) -> nn.Module:
        # rsl_rl's export modules copy only the normaliser and the MLP.
        _finish_update(self)
        if not isinstance(self.encoder, nn.Identity):
            exported.mlp = nn.Sequential(copy.deepcopy(self.encoder), exported.mlp)
        return exported


class PrismModel(PolynomialModel):
    """The actor of the paper's Section 3; options are those of :class:`PrismActorConfig`."""

    config_class = PrismActorConfig


GatedModel = PrismModel
"""The former name of :class:`PrismModel`, for old configs."""


class ResidualModel(PolynomialModel):
    """The actor of the paper's Table 1; options are those of :class:`ResidualActorConfig`."""

    config_class = ResidualActorConfig


class GatedResidualModel(PolynomialModel):
    """The residual actor with gates; options are those of :class:`GatedResidualActorConfig`."""

    config_class = GatedResidualActorConfig


class AfterModel(PolynomialModel):
    """The actor of the paper's abstract; options are those of :class:`AfterActorConfig`."""

    config_class = AfterActorConfig


class ActorModel(PolynomialModel):
    """Any actor of :data:`prism_motor.nn.ACTORS`, by the key ``actor``, with its options."""

    def __init__(self, *arguments: Any, actor: str, **options: Any) -> None:
        self.config_class = ACTORS[check_choice("actor", actor, ACTORS)]
        super().__init__(*arguments, **options)


def _finish_update(model: PolynomialModel, *_: Any) -> None:
    """Count the PPO update that has just ended, if there was one."""
    if model._in_update:
        model._in_update = False
        advance_warmup(model)


def _forget_update(model: PolynomialModel, *_: Any) -> None:
    """Drop a pending update: the loaded count is the right one."""
    model._in_update = False
