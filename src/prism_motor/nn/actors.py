"""Policy networks by name: ``mlp``, ``prism`` (Section 3), ``prism-residual`` (Table 1).

An actor is an encoder followed by an MLP trunk; the arms of a comparison differ in the encoder::

    build_actor("prism", 705, 12)                       # by name, paper defaults
    build_actor("prism", 705, 12, degree=3)             # with options
    build_actor(PrismActorConfig(latent=64), 47, 12)    # from a frozen config
"""

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar, Final

from torch import Tensor, nn

from prism_motor._checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_degree,
    check_name,
    check_size,
    show,
)
from prism_motor._ranges import Checked, above, between, length
from prism_motor.nn.alternatives import INTERACTIONS, make_interaction
from prism_motor.nn.conditioner import PolynomialConditioner, make_activation
from prism_motor.nn.warmup import Warmup


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

    def to_dict(self) -> dict[str, Any]:
        """Return the config as plain data, with its name."""
        return {"name": self.name, **asdict(self), "hidden": list(self.hidden)}

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

    def encoded_size(self, in_features: int) -> int:
        return self.latent


@dataclass(frozen=True)
class PrismActorConfig(_LatentActorConfig):
    """PRISM in front of the trunk: interactions, ``Linear(latent, latent)``, activation."""

    name: ClassVar[str] = "prism"

    interaction: str = "gated"
    """Interaction layer by name; the alternatives give ablation arms."""
    gate_init: Annotated[float, between(-100, 100)] = 0.01
    """Initial gates (``interaction="gated"`` only)."""
    warmup: Annotated[int, between(0, 10**9)] = 0
    """Updates over which the products fade in, 0 for none (``interaction="gated"`` only)."""
    bound: Annotated[float | None, above(0, 1e6)] = None
    """Bounded mode for half precision (``interaction="gated"`` only)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("interaction", self.interaction, INTERACTIONS)
        if self.interaction != "gated":
            for field in fields(self):
                if field.name in _GATED_ONLY and getattr(self, field.name) != field.default:
                    raise InputError(
                        f"actor 'prism': {field.name} applies only to interaction='gated', got "
                        f"interaction={self.interaction!r}. Leave {field.name} out."
                    )

    def make_encoder(self, in_features: int) -> nn.Module:
        """Build the conditioner."""
        options = {}
        if self.interaction == "gated":
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

    def make_encoder(self, in_features: int) -> nn.Module:
        """Build the two branches."""
        return ResidualEncoder(
            in_features, self.latent, self.degree, activation=self.activation, warmup=self.warmup
        )


class ResidualEncoder(nn.Module):
    """``activation(R(x) + s * O(p_K))``: linear skip plus a polynomial branch.

    .. code-block:: text

        h = P(x);  p_1 = A_1(h);  p_k = p_{k-1} + A_k(h) * S_{k-1}(p_{k-1})

    with s rising from 0 to 1 over ``warmup`` updates (always 1 when ``warmup=0``).
    """

    degree: Final[int]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        activation: str = "elu",
        warmup: int = 500,
    ) -> None:
        super().__init__()
        self.degree = check_degree("ResidualEncoder", degree)
        self.lift = nn.Linear(in_features, out_features)
        self.factors = nn.ModuleList(nn.Linear(out_features, out_features) for _ in range(degree))
        self.states = nn.ModuleList(
            nn.Linear(out_features, out_features) for _ in range(degree - 1)
        )
        self.branch_out = nn.Linear(out_features, out_features)
        self.skip = nn.Linear(in_features, out_features)
        self.activation = make_activation(activation)
        self.warmup = Warmup(warmup) if warmup else None

    def features(self, x: Tensor) -> Tensor:
        """Return the polynomial features p_K."""
        lifted = self.lift(x)
        # Zipped by hand: TorchScript unrolls one ModuleList loop, with the index it needs.
        projected = [factor(lifted) for factor in self.factors]
        p = projected[0]
        for k, state in enumerate(self.states):
            p = p + projected[k + 1] * state(p)
        return p

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        branch = self.branch_out(self.features(x))
        if self.warmup is not None:
            branch = branch * self.warmup().to(branch.dtype)
        return self.activation(self.skip(x) + branch)


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

    def forward(self, x: Tensor) -> Tensor:
        """Return the action mean."""
        return self.trunk(self.encoder(x))


def make_mlp(
    in_features: int, hidden: tuple[int, ...], out_features: int, activation: str
) -> nn.Sequential:
    """Build ``Linear, activation, ..., Linear`` with PyTorch's default initialisation."""
    layers: list[nn.Module] = []
    width = in_features
    for size in hidden:
        layers += [nn.Linear(width, size), make_activation(activation)]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, out_features))


ACTORS: dict[str, type[ActorConfig]] = {
    config.name: config for config in (ActorConfig, PrismActorConfig, ResidualActorConfig)
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
