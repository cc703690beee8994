"""Statistics: estimates over training seeds, rates, comparisons and corrections.

Episodes of one policy are not independent training runs. Average them first, to one number per
training seed, and give those to the functions here; only rates of episodes go to :func:`wilson`,
whose interval then holds for these policies and not for others.
"""

from prism_motor.statistics.claims import Claim, Measure, make_claim, with_holm, write_p
from prism_motor.statistics.intervals import (
    Estimate,
    Interval,
    estimate,
    geometric_estimate,
    t_interval,
    wilson,
)
from prism_motor.statistics.paired import (
    Comparison,
    compare,
    holm,
    probability_of_improvement,
)
from prism_motor.statistics.resampling import bootstrap, iqm, iqm_estimate

__all__ = [
    "Claim",
    "Comparison",
    "Estimate",
    "Interval",
    "Measure",
    "bootstrap",
    "compare",
    "estimate",
    "geometric_estimate",
    "holm",
    "iqm",
    "iqm_estimate",
    "make_claim",
    "probability_of_improvement",
    "t_interval",
    "wilson",
    "with_holm",
    "write_p",
]
