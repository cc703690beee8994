"""Policy networks by name.

======================== ==========================================================================
``mlp``                  a plain MLP
``prism``                Section 3 of the paper: the polynomial in front of the MLP
``prism-residual``       the actor of Table 1: a polynomial branch beside a linear one, faded in
``prism-residual-gated`` the same with learned gates that start at one, instead of the fade-in
``prism-after``          the abstract's: a polynomial faded in behind the MLP's hidden layers
======================== ==========================================================================

An actor is an encoder and an MLP trunk, which may have a polynomial in front of its last layer::

    build_actor("prism", 705, 12)                       # by name, paper defaults
    build_actor("prism", 705, 12, degree=3)             # with options
    build_actor(PrismActorConfig(latent=64), 47, 12)    # from a frozen config
"""

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from prism_motor._checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_name,
    check_size,
    show,
)
from prism_motor._ranges import Checked, above, between, length
from prism_motor.nn.alternatives import GATED, INTERACTIONS, make_interaction
from prism_motor.nn.conditioner import PolynomialConditioner, make_activation
from prism_motor.nn.encoders import Bypass, ResidualEncoder, check_bypass
from prism_motor.nn.polynomial import PolynomialLayer
from prism_motor.nn.trunk import insert_after, make_mlp


@dataclass(frozen=True)
class ActorConfig(Checked, section="actor"):
    """A plain MLP actor, and what every actor shares."""

    name: ClassVar[str] = "mlp"

    hidden: Annotated[tuple[int, ...], between(1, 8192), length(0, 16)] = (512, 256, 128)
    """Hidden widths of the trunk."""
    activation: str = "elu"
    """Activation of the trunk and the encoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hidden", tuple(self.hidden))
        make_activation(self.activation)

    def make_encoder(self, in_features: int) -> nn.Module:
        """Build the encoder in front of the trunk."""
        return nn.Identity()

    def encoded_size(self, in_features: int) -> int:
        """Return the trunk's input size."""
        return in_features

    def make_after(self, features: int) -> nn.Module | None:
        """Build what maps the trunk's last hidden features to as many others, if anything."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the config as plain data, with its name."""
        values = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}
        return {"name": self.name, **values}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "ActorConfig":
        """Read what :meth:`to_dict` wrote; unknown names and keys are errors."""
        if not isinstance(data, dict):
            raise InputTypeError(f"actor must be a table of settings, got {show(data)}.")
        options = dict(data)
        return actor_config(options.pop("name", ""), **options)


@dataclass(frozen=True)
class _LatentActorConfig(ActorConfig):
    latent: Annotated[int, between(1, 8192)] = 256
    """Width of the interaction stage."""
    degree: Annotated[int, between(1, 64)] = 2
    """Polynomial degree of the interaction stage."""
    bypass: Annotated[tuple[str | int, ...], between(0, 1_000_000), length(0, 8192)] = ()
    """Observations that join after the polynomial: by name in walking, elsewhere by index."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bypass", tuple(self.bypass))

    def make_encoder(self, in_features: int) -> nn.Module:
        """Build the polynomial encoder, and the by-pass around it."""
        if not self.bypass:
            return self._make_polynomial(in_features)
        passed = check_bypass(self.bypass, in_features)
        return Bypass(self._make_polynomial(in_features - len(passed)), in_features, passed)

    def encoded_size(self, in_features: int) -> int:
        """Return the width of the interaction stage, plus what by-passes it."""
        return self.latent + len(self.bypass)

    def _make_polynomial(self, in_features: int) -> nn.Module:
        raise NotImplementedError


@dataclass(frozen=True)
class PrismActorConfig(_LatentActorConfig):
    """PRISM in front of the trunk: interactions, ``Linear(latent, latent)``, activation."""

    name: ClassVar[str] = "prism"

    interaction: str = "gated"
    """Interaction layer by name; the alternatives give ablation arms."""
    gate_init: Annotated[float, between(-100, 100)] = 0.01
    """Initial gates (layers with gates only)."""
    warmup: Annotated[int, between(0, 10**9)] = 0
    """Updates over which the products fade in, 0 for none (layers with gates only)."""
    bound: Annotated[float | None, above(0, 1e6)] = None
    """Bounded mode for half precision (layers with gates only)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("interaction", self.interaction, INTERACTIONS)
        if self.interaction not in GATED:
            for field in fields(self):
                if field.name in _GATED_ONLY and getattr(self, field.name) != field.default:
                    raise InputError(
                        f"actor 'prism': {field.name} applies only to interaction="
                        f"{' or '.join(map(repr, GATED))}, got interaction={self.interaction!r}. "
                        f"Leave {field.name} out."
                    )

    def _make_polynomial(self, in_features: int) -> nn.Module:
        options = {}
        if self.interaction in GATED:
            options = {key: getattr(self, key) for key in _GATED_ONLY}
        layer = make_interaction(self.interaction, in_features, self.latent, self.degree, **options)
        return PolynomialConditioner(layer, self.latent, activation=self.activation)


_GATED_ONLY = ("gate_init", "warmup", "bound")


@dataclass(frozen=True)
class ResidualActorConfig(_LatentActorConfig):
    """A polynomial branch beside a linear one, faded in over training (the paper's Table 1)."""

    name: ClassVar[str] = "prism-residual"

    warmup: Annotated[int, between(0, 10**9)] = 500
    """Policy updates until the polynomial branch is fully on; 0 keeps it on from the start."""

    def _make_polynomial(self, in_features: int) -> nn.Module:
        return self._make_branches(in_features, None)

    def _make_branches(self, in_features: int, gate_init: float | None) -> nn.Module:
        return ResidualEncoder(
            in_features,
            self.latent,
            self.degree,
            activation=self.activation,
            warmup=self.warmup,
            gate_init=gate_init,
        )


@dataclass(frozen=True)
class GatedResidualActorConfig(ResidualActorConfig):
    """The residual actor with a learned gate on every product: the authors' later control.

    The gates start at one and the branch is on from the start, so it begins as the residual actor
    at the end of its fade-in: what is left is whether the products' sizes are learned.
    """

    name: ClassVar[str] = "prism-residual-gated"

    warmup: Annotated[int, between(0, 10**9)] = 0
    """Policy updates until the polynomial branch is fully on; 0 keeps it on from the start."""
    gate_init: Annotated[float, between(-100, 100)] = 1.0
    """Initial gates."""

    def _make_polynomial(self, in_features: int) -> nn.Module:
        return self._make_branches(in_features, self.gate_init)


@dataclass(frozen=True)
class AfterActorConfig(ActorConfig):
    """A plain MLP with a polynomial behind its hidden layers, faded in (the paper's abstract).

    .. code-block:: text

        h = hidden layers(x);  u = W_1 h + b_1;  v = W_2 h + b_2
        action = Linear(u * (1 + s * gate * v))

    with W_1 the identity and b_1 zero at first and s rising from 0 to 1: before the first update it
    is the ``mlp`` actor of the same seed.
    """

    name: ClassVar[str] = "prism-after"

    degree: Annotated[int, between(1, 64)] = 2
    """Polynomial degree in the last hidden features."""
    gate_init: Annotated[float, between(-100, 100)] = 0.01
    """Initial gates."""
    warmup: Annotated[int, between(0, 10**9)] = 500
    """Policy updates over which the products fade in; 0 for none."""
    bound: Annotated[float | None, above(0, 1e6)] = None
    """Bounded mode for half precision."""

    def make_after(self, features: int) -> nn.Module:
        """Build the polynomial of the last hidden features, whose first factor copies them."""
        layer = PolynomialLayer(
            features,
            features,
            self.degree,
            gate_init=self.gate_init,
            warmup=self.warmup,
            bound=self.bound,
        )
        with torch.no_grad():
            nn.init.eye_(layer.weight[0])
            assert layer.bias is not None
            nn.init.zeros_(layer.bias[0])
        return layer


class Actor(nn.Module):
    """Encoder and MLP trunk: (..., in_features) -> (..., out_features), the action mean."""

    def __init__(self, config: ActorConfig, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features = check_size("Actor", "in_features", in_features)
        self.out_features = check_size("Actor", "out_features", out_features)
        self.config = config
        self.encoder = config.make_encoder(in_features)
        self.trunk = make_mlp(
            config.encoded_size(in_features), config.hidden, out_features, config.activation
        )
        insert_after(self.trunk, config.make_after)

    def forward(self, x: Tensor) -> Tensor:
        """Return the action mean."""
        return self.trunk(self.encoder(x))


ACTORS: dict[str, type[ActorConfig]] = {
    config.name: config
    for config in (
        ActorConfig,
        PrismActorConfig,
        ResidualActorConfig,
        GatedResidualActorConfig,
        AfterActorConfig,
    )
}
"""Actor configs by name."""

ACTOR_ALIASES = {"gated": "prism", "residual": "prism-residual"}
"""Former names of actors."""


def register_actor(config: type[ActorConfig]) -> type[ActorConfig]:
    """Add a custom actor, as a decorator of its config: ``make_encoder`` builds its encoder."""
    check_name("actor", config.name)
    known = ACTORS.get(config.name)
    if known is not None and known.__qualname__ != config.__qualname__:
        raise InputError(f"There is an actor called {config.name!r} already; choose another name.")
    ACTORS[config.name] = config
    return config


def actor_config(name: str, **options: Any) -> ActorConfig:
    """Make an actor's config from its name and options; unknown options are errors."""
    name = ACTOR_ALIASES.get(name, name) if isinstance(name, str) else name
    config = ACTORS[check_choice("actor", name, ACTORS)]
    allowed = [field.name for field in fields(config)]
    for key in options:
        if key not in allowed:
            raise InputError(
                f"Unknown option {key!r} for actor {name!r}; it takes: {', '.join(allowed)}."
            )
    return config(**options)


def build_actor(
    actor: str | ActorConfig, in_features: int, out_features: int, **options: Any
) -> Actor:
    """Build an actor for any observation and action size.

    Args:
        actor: A name of :data:`ACTORS` or a config.
        in_features: Observation size.
        out_features: Action size.
        **options: Config fields when ``actor`` is a name.
    """
    if isinstance(actor, ActorConfig):
        if options:
            raise InputTypeError(
                f"build_actor: got a config and options ({', '.join(options)}); put the options "
                "into the config: dataclasses.replace(config, ...)."
            )
        config = actor
    else:
        config = actor_config(actor, **options)
    return Actor(config, in_features, out_features)
