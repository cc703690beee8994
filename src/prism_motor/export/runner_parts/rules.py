"""What one value of a contract may be, and how a value that may not be it is refused."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CONTRACT = "contract.json"
"""File of the contract in an export."""

WIDEST, FASTEST = 4 * math.pi, 100.0
"""Angle (rad) and velocity (rad/s) beyond which no joint is believed, whatever its limits."""


class RunnerError(ValueError):
    """An export or an argument cannot be used; nothing has moved."""


class SafetyStop(RunnerError):  # noqa: N818 - an event, which may be nobody's error
    """The controller refused to act and holds a safe posture.

    Attributes:
        targets: Joint targets of the posture: finite, within the joints' ranges.
    """

    def __init__(self, reason: str, targets: np.ndarray) -> None:
        super().__init__(reason)
        self.targets = targets


class Rule(NamedTuple):
    """What one value of a contract may be: for people, and as a test that never raises."""

    words: str
    allows: Callable[[Any], bool]


class Each(NamedTuple):
    """A list of one entry per joint, foot or block; all lists of one kind are equally long."""

    kind: str
    entry: Any


class Either(NamedTuple):
    """One of two groups of fields: the second if it has the field that only that one has."""

    field: str
    first: Any
    second: Any


def number(low: float, high: float, *, above: bool = False, whole: bool = False) -> Rule:
    """Return the rule of a number within limits."""
    kinds = int if whole else (int, float)

    def allows(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return low < value <= high if above else low <= value <= high

    words = f"a {'whole ' * whole}number {'above' if above else 'from'} {low:g}"
    return Rule(f"{words} {'and up ' * above}to {high:g}", allows)


def pair(low: float, high: float) -> Rule:
    """Return the rule of a lowest and a highest number."""
    end = number(low, high)

    def allows(value: Any) -> bool:
        shaped = isinstance(value, list) and len(value) == 2 and all(map(end.allows, value))
        return shaped and value[0] <= value[1]

    return Rule(f"[lowest, highest] from {low:g} to {high:g}, in this order", allows)


def text(words: str, pattern: str) -> Rule:
    """Return the rule of a text that has a pattern."""
    found = re.compile(pattern, re.DOTALL)
    return Rule(words, lambda value: isinstance(value, str) and bool(found.fullmatch(value)))


def or_null(rule: Rule) -> Rule:
    """Return the rule of a value that may be missing."""
    return Rule(f"{rule.words}, or null", lambda value: value is None or rule.allows(value))


def positive(high: float) -> Rule:
    """Return the rule of a positive number."""
    return number(0, high, above=True)


def count(high: float) -> Rule:
    """Return the rule of a whole number from 1."""
    return number(1, high, whole=True)


TEXT, HASH = text("a text", "[^\ud800-\udfff]+"), text("64 hexadecimal digits", "[0-9a-f]{64}")
ANGLE, ANGLES = number(-WIDEST, WIDEST), pair(-WIDEST, WIDEST)


def check_value(value: Any, rule: Any, path: str, lengths: dict[str, int]) -> None:
    """Raise unless a value, with all its parts, is what a rule allows."""
    if isinstance(rule, Either):
        rule = rule.second if isinstance(value, dict) and rule.field in value else rule.first
    if isinstance(rule, Rule):
        if not rule.allows(value):
            raise RunnerError(refusal(path, value, rule.words))
    elif isinstance(rule, Each):
        if not isinstance(value, list) or not value:
            raise RunnerError(refusal(path, value, f"a list with one entry per {rule.kind}"))
        length = lengths.setdefault(rule.kind, len(value))  # the first such list decides
        if len(value) != length:
            words = f"{length} entries, one per {rule.kind}"
            raise RunnerError(refusal(path, f"{len(value)} entries", words))
        for i, entry in enumerate(value):
            check_value(entry, rule.entry, f"{path}[{i}]", lengths)
    else:
        if not isinstance(value, dict):
            raise RunnerError(refusal(path, value, f"an object with {', '.join(rule)}"))
        for key in [*rule, *value]:
            if key not in value or key not in rule:
                problem = "lacks" if key in rule else "has an unknown field"
                where = f"{path}.{shown(key)}".lstrip(".")
                raise RunnerError(f"{CONTRACT} {problem}: {where}. Export the run again.")
        for key, part in rule.items():
            check_value(value[key], part, f"{path}.{key}".lstrip("."), lengths)


def refusal(field: str, given: Any, allowed: str) -> str:
    """Return what is said about a field that must be something else."""
    return f"{CONTRACT}: {field or 'the contract'} must be {allowed}; it is {shown(given)}."


def shown(value: Any) -> str:
    """Return any value as a short text that every terminal can print."""
    try:
        text = value if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # whole numbers of thousands of digits
        text = f"a {type(value).__name__}"
    return ascii(text[:100])[1:-1]


def parse_json(text: str) -> Any:
    """Parse JSON that repeats no key and has only finite numbers."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key is given twice")
        return found

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(f"{digits} is not a finite number")
        return number

    return json.loads(text, object_pairs_hook=unique, parse_float=finite, parse_constant=finite)
