"""Exact tests of two success rates, their difference, their power, and agreement of labels.

Every test is two-sided. Unpaired tests take the successes and trials of two arms; paired ones count
the pairs of trials, such as two policies from the same start pose, by their outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from prism_motor._checks import InputError
from prism_motor.statistics.claims import LEVEL
from prism_motor.statistics.intervals import CONFIDENCE, Interval, check_rate, scipy_stats, wilson


class Pairs(NamedTuple):
    """Pairs of trials by their outcomes."""

    both: int
    """Both succeeded."""
    first: int
    """Only the first did."""
    second: int
    """Only the second did."""
    neither: int
    """Neither did."""


def fisher(successes: int, trials: int, others: int, other_trials: int) -> float:
    """Return the p-value of Fisher's exact test; it never exceeds its level, but by a wide margin.

    Args:
        successes: Successes of one arm.
        trials: Its trials.
        others: Successes of the other arm.
        other_trials: Its trials.
    """
    table = _table(successes, trials, others, other_trials)
    return float(scipy_stats().fisher_exact(table).pvalue)


def boschloo(successes: int, trials: int, others: int, other_trials: int) -> float:
    """Return the p-value of Boschloo's exact test, which is more powerful than Fisher's.

    Args:
        successes: Successes of one arm.
        trials: Its trials.
        others: Successes of the other arm.
        other_trials: Its trials.
    """
    table = _table(successes, trials, others, other_trials)
    if successes + others in (0, trials + other_trials):  # nothing differs; scipy returns NaN
        return 1.0
    return min(1.0, float(scipy_stats().boschloo_exact(table).pvalue))


def mcnemar(first: int, second: int) -> float:
    """Return the p-value of the exact McNemar test: a binomial test over the discordant pairs.

    Args:
        first: Pairs in which only the first arm succeeded.
        second: Pairs in which only the second one did.
    """
    if min(first, second) < 0:
        raise InputError(f"Numbers of pairs cannot be negative, got {first} and {second}.")
    if first + second == 0:
        return 1.0
    return float(scipy_stats().binomtest(first, first + second).pvalue)


def newcombe(
    successes: int, trials: int, others: int, other_trials: int, *, confidence: float = CONFIDENCE
) -> Interval:
    """Return Newcombe's interval of the difference of two independent rates.

    It joins the two Wilson intervals (his method 10), and so stays within -1 to 1.

    Args:
        successes: Successes of one arm.
        trials: Its trials.
        others: Successes of the other arm, whose rate is subtracted.
        other_trials: Its trials.
        confidence: Confidence of the interval.
    """
    one = wilson(successes, trials, confidence=confidence)
    other = wilson(others, other_trials, confidence=confidence)
    return _join(successes / trials, one, others / other_trials, other, 0.0)


def newcombe_paired(pairs: Pairs, *, confidence: float = CONFIDENCE) -> Interval:
    """Return Newcombe's interval of the first arm's rate minus the second's, from paired trials.

    As :func:`newcombe`, with the correlation of the outcomes (his method 10 for paired data).

    Args:
        pairs: The pairs.
        confidence: Confidence of the interval.
    """
    both, first, second, neither = pairs
    trials = sum(pairs)
    one = wilson(both + first, trials, confidence=confidence)
    other = wilson(both + second, trials, confidence=confidence)
    # A positive correlation is corrected for continuity, because it would narrow the interval.
    product = both * neither - first * second
    product = max(product - trials / 2, 0.0) if product > 0 else product
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    correlation = product / math.sqrt(margins) if margins else 0.0
    rates = (both + first) / trials, (both + second) / trials
    return _join(rates[0], one, rates[1], other, correlation)


def power_unpaired(
    test: Callable[[int, int, int, int], float],
    trials: int,
    rates: tuple[float, float],
    *,
    level: float = LEVEL,
) -> float:
    """Return how often an unpaired test would find a difference between two true rates.

    Args:
        test: :func:`fisher` or :func:`boschloo`.
        trials: Trials of each arm.
        rates: The true rates.
        level: p-values below this count.
    """
    _check_rates(rates)
    first, second = (_binomial(trials, rate) for rate in rates)
    # Tests are symmetric in the arms and monotone in each count, so that the fewest successes of
    # the second arm that differ from a given number of the first only grow with that number.
    chance, fewest = 0.0, 0
    for successes in range(trials + 1):
        fewest = max(fewest, successes + 1)
        while fewest <= trials and test(successes, trials, fewest, trials) >= level:
            fewest += 1
        for others in range(fewest, trials + 1):
            chance += first[successes] * second[others] + first[others] * second[successes]
    return chance


def power_paired(trials: int, rates: tuple[float, float], *, level: float = LEVEL) -> float:
    """Return how often the exact McNemar test would find a difference between two true rates.

    The outcomes of a pair are taken as independent given the rates; start poses that are hard for
    both arms make some pairs equal, and then more power is left.

    Args:
        trials: Number of pairs.
        rates: The true rates.
        level: p-values below this count.
    """
    _check_rates(rates)
    first, second = rates[0] * (1 - rates[1]), rates[1] * (1 - rates[0])
    discordant = first + second
    if not discordant:
        return 0.0
    chance = 0.0
    for found, likely in enumerate(_binomial(trials, discordant)):
        split = _binomial(found, first / discordant)
        chance += likely * sum(
            weight for count, weight in enumerate(split) if mcnemar(count, found - count) < level
        )
    return chance


def kappa(labels: Sequence[bool], others: Sequence[bool]) -> float | None:
    """Return Cohen's kappa: how far two people agree beyond what chance would give.

    Args:
        labels: Labels of the one.
        others: Labels of the other, of the same trials in the same order.

    Returns:
        1 for full agreement, 0 for that of chance; ``None`` if both gave one and the same label to
        everything, where chance alone agrees fully.
    """
    if len(labels) != len(others) or not labels:
        raise InputError(
            f"Agreement needs two labels of each trial, got {len(labels)} and {len(others)}."
        )
    total = len(labels)
    agreed = sum(one == other for one, other in zip(labels, others, strict=True)) / total
    yes = sum(labels) / total, sum(others) / total
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def _table(successes: int, trials: int, others: int, other_trials: int) -> list[list[int]]:
    """Return the counts as scipy reads them: an arm in each column, because its size is fixed."""
    check_rate(successes, trials)
    check_rate(others, other_trials)
    return [[successes, others], [trials - successes, other_trials - others]]


def _join(
    rate: float, interval: Interval, other_rate: float, other: Interval, correlation: float
) -> Interval:
    def distance(one: float, two: float) -> float:
        return math.sqrt(max(0.0, one**2 - 2 * correlation * one * two + two**2))

    low = distance(rate - interval.low, other.high - other_rate)
    high = distance(interval.high - rate, other_rate - other.low)
    return Interval(rate - other_rate - low, rate - other_rate + high)


def _binomial(trials: int, rate: float) -> list[float]:
    """Return the probability of every number of successes."""
    return [
        math.comb(trials, count) * rate**count * (1 - rate) ** (trials - count)
        for count in range(trials + 1)
    ]


def _check_rates(rates: tuple[float, float]) -> None:
    if not all(0 <= rate <= 1 for rate in rates):
        raise InputError(f"True rates must be from 0 to 1, got {rates[0]} and {rates[1]}.")
