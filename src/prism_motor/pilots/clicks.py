"""Clicks of the mouse on the table, as a second opinion: it is plugged into this computer."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Any

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra


class MouseClicks:
    """Listens to the left button of a mouse, as a context manager.

    Args:
        device: Its file, e.g. ``/dev/input/event5``.
    """

    def __init__(self, device: Path) -> None:
        try:
            import evdev
        except ImportError as error:
            raise missing_extra("--clicks", "clicks", error) from error
        if not device.exists():
            raise InputError(
                f"--clicks: there is no {device}. Files of mice are in /dev/input/by-id."
            )
        if not os.access(device, os.R_OK):
            raise InputError(
                f"--clicks: {device} cannot be read. Add yourself to its group ({_group(device)}), "
                "log in again, and try once more."
            )
        try:
            self._device: Any = evdev.InputDevice(str(device))
        except OSError as error:
            raise InputError(
                f"--clicks: {device} is no input device ({error.strerror or error})."
            ) from error
        self._kind, self._button = evdev.ecodes.EV_KEY, evdev.ecodes.BTN_LEFT
        if self._button not in self._device.capabilities().get(self._kind, []):
            raise InputError(f"--clicks: {device} ({self._device.name}) has no left mouse button.")

    def __enter__(self) -> MouseClicks:
        return self

    def __exit__(self, *error: object) -> None:
        self._device.close()

    def start(self) -> None:
        """Forget earlier clicks and start the clock."""
        self.take()
        self._began = time.time()

    def take(self) -> tuple[float, ...]:
        """Return the seconds at which the button was pressed since the start."""
        found: list[float] = []
        while select.select([self._device.fd], [], [], 0)[0]:
            found += [
                event.timestamp()
                for event in self._device.read()
                if (event.type, event.code, event.value) == (self._kind, self._button, 1)
            ]
        began = getattr(self, "_began", 0.0)
        return tuple(round(when - began, 3) for when in found)


def _group(device: Path) -> str:
    try:
        return device.group()
    except (KeyError, OSError):
        return "input"
