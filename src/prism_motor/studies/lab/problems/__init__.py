"""The problems of the laboratory, by name."""

from collections.abc import Iterable

from prism_motor._registry import Registry
from prism_motor.studies.lab.problems import adaptive, plain
from prism_motor.studies.lab.problems.arm import ARM_PROBLEMS
from prism_motor.studies.lab.problems.dynamics import DYNAMICS_PROBLEMS
from prism_motor.studies.lab.problems.problem import DataRequest, Problem, independent

PROBLEMS: Registry[Problem] = Registry(
    "problem",
    {
        problem.name: problem
        for problem in (
            *ARM_PROBLEMS,
            *DYNAMICS_PROBLEMS,
            adaptive.PAYLOAD,
            adaptive.STRENGTH,
            adaptive.FRICTION,
            adaptive.DELAY,
            adaptive.EVERYTHING,
            adaptive.NOISY,
            plain.GAIN_SCHEDULE,
            plain.LINEAR,
            plain.BANG_BANG,
        )
    },
)
"""All problems."""


def choose_problems(names: Iterable[str]) -> tuple[Problem, ...]:
    """Return the problems of these names in the order of the registry; all for no names."""
    wanted = {PROBLEMS[name].name for name in names}
    return tuple(PROBLEMS[name] for name in PROBLEMS if name in wanted or not wanted)


__all__ = ["PROBLEMS", "DataRequest", "Problem", "choose_problems", "independent"]
