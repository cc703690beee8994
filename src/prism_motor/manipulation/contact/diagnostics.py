"""The numbers of one episode's contact."""

from __future__ import annotations

from dataclasses import dataclass

from prism_motor.manipulation.contact.formulas import (
    AFTER,
    BEFORE,
    THRESHOLD,
    contact_power,
    contact_work,
    first_contact,
    impulse,
)
from prism_motor.manipulation.contact.traces import ContactTrace


@dataclass(frozen=True)
class Contact:
    """What a first contact led to; sums run from the first contact to the episode's end."""

    step: int
    """First step with the threshold force, t_c."""
    time: float
    """Its time since the episode began, s."""
    peak_force: float
    """Largest force from t_c on, N."""
    impulse: float
    """sum F dt, N s."""
    work: float
    """sum F |dx|, J."""
    mean_power: float
    """Mean of F |v|, W."""
    peak_power: float
    """Largest F |v|, W."""
    window_peak_force: float
    """Largest force from t_c to t_c + 8, N; the same time for fast and slow episodes."""
    window_impulse: float
    """sum F dt from t_c to t_c + 8, N s."""
    approach_speed: float | None
    """Mean speed of the end effector over the 8 steps before t_c, m/s; none if t_c is the first."""
    yielding_speed: float | None
    """Mean speed over the 8 steps after t_c, m/s; none if t_c is the last step."""


def diagnose(trace: ContactTrace, threshold: float = THRESHOLD) -> Contact | None:
    """Return the numbers of an episode, or ``None`` if nothing was touched.

    Args:
        trace: The episode.
        threshold: Force of a contact, N.
    """
    at = first_contact(trace.largest_force, threshold)
    if at is None:
        return None
    dt, speed = trace.control_seconds, trace.speed
    force, near = trace.largest_force[at:], trace.largest_force[at : at + AFTER + 1]
    power = contact_power(force, trace.velocity[at:])
    before, after = speed[max(0, at - BEFORE) : at], speed[at + 1 : at + 1 + AFTER]
    return Contact(
        step=at,
        time=float(trace.time[at]),
        peak_force=float(force.max()),
        impulse=impulse(force, dt),
        work=float(contact_work(force, trace.displacement[at:]).sum()),
        mean_power=float(power.mean()),
        peak_power=float(power.max()),
        window_peak_force=float(near.max()),
        window_impulse=impulse(near, dt),
        approach_speed=float(before.mean()) if len(before) else None,
        yielding_speed=float(after.mean()) if len(after) else None,
    )
