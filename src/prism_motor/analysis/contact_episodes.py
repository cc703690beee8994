"""Contact in episodes of several policies, by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prism_motor.analysis.subjects import ArmMean, mean_over_seeds
from prism_motor.manipulation.contact import (
    AFTER,
    BEFORE,
    Contact,
    ContactTrace,
    accumulated_impulse,
    align,
    contact_power,
)
from prism_motor.manipulation.environment import Array, Image
from prism_motor.manipulation.rollout import HandlingOutcome
from prism_motor.statistics import bootstrap

SHOWN = (-BEFORE, 0, AFTER)
"""Steps from the first contact whose images are shown."""


@dataclass(frozen=True)
class ContactEpisode:
    """One episode of a policy."""

    initial_state: int
    """Which of the fixed initial states it started from."""
    outcome: HandlingOutcome
    """Success and the rest of an evaluation."""
    trace: ContactTrace
    """Forces and motion, step by step."""
    contact: Contact | None
    """The numbers of its contact; none if nothing was touched."""


@dataclass(frozen=True)
class ContactRecord:
    """The episodes of one policy."""

    arm: str
    """Arm that it is counted with."""
    training_seed: int
    """Its training seed."""
    about: dict[str, Any]
    """Where it came from."""
    episodes: tuple[ContactEpisode, ...]
    """All episodes, in the order of their initial states."""
    images: tuple[Image, ...] = field(default=())
    """Images of its typical episode at the steps :data:`SHOWN`."""


def typical(episodes: Sequence[ContactEpisode]) -> ContactEpisode | None:
    """Return the successful episode with the median peak force just after contact.

    Any episode with contact counts if none was successful; ``None`` if there was no contact.
    """
    touched = [
        (one.outcome.success, one.contact.window_peak_force, one)
        for one in episodes
        if one.contact is not None
    ]
    chosen = [(force, one) for success, force, one in touched if success]
    chosen = sorted(chosen or [(force, one) for _, force, one in touched], key=lambda pair: pair[0])
    return chosen[(len(chosen) - 1) // 2][1] if chosen else None


def shared_episodes(records: Sequence[ContactRecord]) -> dict[str, ContactEpisode]:
    """Return one episode by arm, of its first policy, all from the same initial state.

    It is that of the typical episode of the first policy, or its first one without contact.
    """
    first = records[0].episodes
    state = (typical(first) or first[0]).initial_state
    found: dict[str, ContactEpisode] = {}
    for record in records:
        (episode,) = [one for one in record.episodes if one.initial_state == state]
        found.setdefault(record.arm, episode)
    return found


def mechanics(trace: ContactTrace) -> tuple[Array, Array]:
    """Return accumulated contact impulse, N s, and contact power, W, of every step."""
    force = trace.largest_force
    impulse = accumulated_impulse(force, trace.control_seconds)
    return impulse, contact_power(force, trace.velocity)


def aligned(records: Sequence[ContactRecord], signal: str) -> Array:
    """Return a signal of all episodes with contact, aligned at first contact.

    Args:
        records: The policies.
        signal: ``largest_force`` or ``speed``.

    Returns:
        (episodes, 8 + 1 + 8), NaN outside an episode.
    """
    found = [
        align(getattr(one.trace, signal), one.contact.step)
        for record in records
        for one in record.episodes
        if one.contact is not None
    ]
    return np.stack(found) if found else np.zeros((0, BEFORE + 1 + AFTER))


def measure(records: Sequence[ContactRecord], name: str, *, successful: bool) -> ArmMean | None:
    """Return the mean of a :class:`Contact` field over an arm's episodes; ``None`` without any.

    Args:
        records: The policies of the arm.
        name: The field.
        successful: Whether only successful episodes count.
    """
    values = [_values(record, name, successful) for record in records]
    values = [one for one in values if len(one)]
    if not values:
        return None
    return mean_over_seeds(
        [float(one.mean()) for one in values],
        lambda: bootstrap(values, lambda drawn: drawn.mean(1), seed=0),
    )


def _values(record: ContactRecord, name: str, successful: bool) -> Array:
    found = [
        getattr(one.contact, name)
        for one in record.episodes
        if one.contact is not None and (one.outcome.success or not successful)
    ]
    return np.array([value for value in found if value is not None], dtype=np.float64)
