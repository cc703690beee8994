"""The layer library: torch only.

Start with :class:`PolynomialLayer`; the rest is what one needs around it.
"""

from prism.nn.actors import (
    ACTORS,
    Actor,
    ActorConfig,
    GatedActorConfig,
    ResidualActorConfig,
    ResidualEncoder,
    actor_config,
    build_actor,
)
from prism.nn.alternatives import (
    INTERACTIONS,
    CCPLayer,
    ExplicitLayer,
    GLULayer,
    LinearLayer,
    ProductLayer,
    make_interaction,
)
from prism.nn.conditioner import PolynomialConditioner
from prism.nn.expansion import Expansion, Terms
from prism.nn.factors import FactorLayer
from prism.nn.guard import FiniteGuard, NonFiniteError
from prism.nn.matching import count_flops, count_parameters, matched_mlp
from prism.nn.optim import parameter_groups
from prism.nn.polynomial import PolynomialLayer
from prism.nn.reading import Interaction, frame_names
from prism.nn.reference import conditioner_from_reference
from prism.nn.warmup import Warmup, advance_warmup, follow_optimizer

__all__ = [
    "ACTORS",
    "INTERACTIONS",
    "Actor",
    "ActorConfig",
    "CCPLayer",
    "Expansion",
    "ExplicitLayer",
    "FactorLayer",
    "FiniteGuard",
    "GLULayer",
    "GatedActorConfig",
    "Interaction",
    "LinearLayer",
    "NonFiniteError",
    "PolynomialConditioner",
    "PolynomialLayer",
    "ProductLayer",
    "ResidualActorConfig",
    "ResidualEncoder",
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
]
