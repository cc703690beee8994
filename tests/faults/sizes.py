"""How many cases: a sample in ``make test``, all of them in ``make faults``."""

import os

from hypothesis import HealthCheck, settings

ALL = os.environ.get("PRISM_FAULTS") == "all"
"""Whether the whole suite was asked for."""


def cases(smoke: int, full: int) -> int:
    """Return how many cases to try."""
    return full if ALL else smoke


def fuzz(smoke: int, full: int) -> settings:
    """Return settings of hypothesis; the sample is the same every time."""
    return settings(
        max_examples=cases(smoke, full),
        deadline=None,
        derandomize=not ALL,
        suppress_health_check=list(HealthCheck),
    )


def spread(numbers: list[int], smoke: int) -> list[int]:
    """Return all numbers or, in the sample, evenly spread ones."""
    if ALL or len(numbers) <= smoke:
        return numbers
    return [numbers[round((i + 0.5) * len(numbers) / smoke - 0.5)] for i in range(smoke)]
