"""How much of the fault suite runs: a part with the other tests, all of it by ``make faults``."""

import os


def cases(smoke: int, full: int) -> int:
    """Return how many cases to try."""
    return full if os.environ.get("PRISM_FAULTS") == "all" else smoke
