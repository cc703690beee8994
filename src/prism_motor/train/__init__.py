"""One mechanism for training and evaluating, whatever the domain."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.train.config import EvaluationConfig, RunConfig
    from prism_motor.train.evaluations import Evaluations
    from prism_motor.train.finite import NonFiniteTrainingError
    from prism_motor.train.gradient import GradientTrainer
    from prism_motor.train.session import replay, resume, start, train

__all__ = [
    "EvaluationConfig",
    "Evaluations",
    "GradientTrainer",
    "NonFiniteTrainingError",
    "RunConfig",
    "replay",
    "resume",
    "start",
    "train",
]

__getattr__ = lazy(
    __name__,
    {
        "EvaluationConfig": "config",
        "Evaluations": "evaluations",
        "GradientTrainer": "gradient",
        "NonFiniteTrainingError": "finite",
        "RunConfig": "config",
        "replay": "session",
        "resume": "session",
        "start": "session",
        "train": "session",
    },
)
