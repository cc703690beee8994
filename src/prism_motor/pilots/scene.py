"""What a robot may offer beyond LeRobot's interface; whatever is missing, the operator does."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class PlacesThings(Protocol):
    """A simulated robot, which sets the scene itself.

    Its time advances by one control step with each action, so that trials are counted in steps and
    nothing waits for a clock.
    """

    def place(self, seed: int) -> dict[str, Any]:
        """Set the scene to the start pose of a seed; return its description, as plain data."""
        ...


@runtime_checkable
class JudgesTrials(Protocol):
    """A robot that knows whether a trial succeeded."""

    def outcome(self) -> dict[str, Any]:
        """Return plain data with at least ``success``, a bool, about the trial so far.

        Asked after every action, so it must be quick. ``failure``, its kind by name, is
        optional. The trial ends with the first success.
        """
        ...
