"""One mechanism for training and evaluating, whatever the domain."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.train.config import EvaluationConfig, RunConfig
    from prism_motor.train.evaluations import Evaluations
    from prism_motor.train.finite import NonFiniteTrainingError
    from prism_motor.train.gradient import GradientTrainer
    from prism_motor.train.listeners import TensorBoard

__all__ = [
    "EvaluationConfig",
    "Evaluations",
    "GradientTrainer",
    "NonFiniteTrainingError",
    "RunConfig",
    "TensorBoard",
]

# Most of these need torch, which the command line imports as late as it can.
__getattr__ = lazy(
    __name__,
    {
        "EvaluationConfig": "config",
        "Evaluations": "evaluations",
        "GradientTrainer": "gradient",
        "NonFiniteTrainingError": "finite",
        "RunConfig": "config",
        "TensorBoard": "listeners",
    },
)
