"""The layer library: torch only.

Start with :class:`PolynomialLayer`; the rest is what you need around it.
"""

from prism_motor.nn.actors import (
    ACTORS,
    Actor,
    ActorConfig,
    AfterActorConfig,
    GatedResidualActorConfig,
    PrismActorConfig,
    ResidualActorConfig,
    actor_config,
    build_actor,
    register_actor,
)
from prism_motor.nn.alternatives import (
    GATED,
    INTERACTIONS,
    CCPLayer,
    ExplicitLayer,
    GLULayer,
    LinearLayer,
    ProductLayer,
    ScaledPolynomialLayer,
    make_interaction,
)
from prism_motor.nn.conditioner import PolynomialConditioner
from prism_motor.nn.encoders import Bypass, ResidualEncoder
from prism_motor.nn.expansion import Expansion, Terms
from prism_motor.nn.factors import FactorLayer
from prism_motor.nn.guard import FiniteGuard, NonFiniteError
from prism_motor.nn.matching import count_flops, count_parameters, matched_mlp
from prism_motor.nn.optim import parameter_groups
from prism_motor.nn.polynomial import PolynomialLayer
from prism_motor.nn.pruning import PrunedPolynomial, prune, shrink_gates
from prism_motor.nn.reading import Interaction, frame_names
from prism_motor.nn.reference import conditioner_from_reference
from prism_motor.nn.temporal import TemporalPolynomialLayer
from prism_motor.nn.warmup import Warmup, advance_warmup, follow_optimizer

__all__ = [
    "ACTORS",
    "GATED",
    "INTERACTIONS",
    "Actor",
    "ActorConfig",
    "AfterActorConfig",
    "Bypass",
    "CCPLayer",
    "Expansion",
    "ExplicitLayer",
    "FactorLayer",
    "FiniteGuard",
    "GLULayer",
    "GatedResidualActorConfig",
    "Interaction",
    "LinearLayer",
    "NonFiniteError",
    "PolynomialConditioner",
    "PolynomialLayer",
    "PrismActorConfig",
    "ProductLayer",
    "PrunedPolynomial",
    "ResidualActorConfig",
    "ResidualEncoder",
    "ScaledPolynomialLayer",
    "TemporalPolynomialLayer",
    "Terms",
    "Warmup",
    "actor_config",
    "advance_warmup",
    "build_actor",
    "conditioner_from_reference",
    "count_flops",
    "count_parameters",
    "follow_optimizer",
    "frame_names",
    "make_interaction",
    "matched_mlp",
    "parameter_groups",
    "prune",
    "register_actor",
    "shrink_gates",
]
