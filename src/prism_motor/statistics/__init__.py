"""Statistics: estimates over training seeds, rates, comparisons and corrections.

Episodes of one policy are not independent training runs. Average them first, to one number per
training seed, and give those to the functions here; only rates of episodes go to :func:`wilson`
and to the exact tests, which then hold for these policies and not for others.
"""

from prism_motor.statistics.claims import Claim, Measure, make_claim, with_holm, write_p
from prism_motor.statistics.exact import (
    Pairs,
    boschloo,
    fisher,
    kappa,
    mcnemar,
    newcombe,
    newcombe_paired,
    power_paired,
    power_unpaired,
)
from prism_motor.statistics.intervals import (
    Estimate,
    Interval,
    clopper_pearson,
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
    "Pairs",
    "bootstrap",
    "boschloo",
    "clopper_pearson",
    "compare",
    "estimate",
    "fisher",
    "geometric_estimate",
    "holm",
    "iqm",
    "iqm_estimate",
    "kappa",
    "make_claim",
    "mcnemar",
    "newcombe",
    "newcombe_paired",
    "power_paired",
    "power_unpaired",
    "probability_of_improvement",
    "t_interval",
    "wilson",
    "with_holm",
    "write_p",
]
