"""What clients may send to the viewer: where they look from, its keys, and values that it allows.

viser applies every message as it comes: any attribute of any control, uploads, and a request to
show the viewer to the whole internet. So each message is read here first and made anew from what is
allowed in it; the rest is dropped.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

import msgspec
import viser

Admit = Callable[[object], bytes | None]
"""Returns what a client's message becomes; ``None`` drops it."""

MESSAGE_BYTES = 65_536
"""Longest message; those of a browser have a few hundred."""

_RATE, _BURST = 200.0, 100.0
"""Messages per second that a client may send for long, and at once; a browser sends about 20."""

_CAMERA = {
    "wxyz": 4, "position": 3, "look_at": 3, "up_direction": 3,
    "fov": 0, "near": 0, "far": 0, "image_height": 0, "image_width": 0,
}  # fmt: skip
"""Fields of a camera, and how many numbers each has; 0 for a plain number."""
_LARGEST = 1e9


class Pacer:
    """Slows down a client that sends too much; what it sends waits in its own memory."""

    def __init__(self) -> None:
        self._ahead, self._last = 0.0, time.monotonic()

    async def wait(self) -> None:
        """Wait until the next message is due."""
        now = time.monotonic()
        self._ahead = max(0.0, self._ahead - (now - self._last) * _RATE) + 1
        self._last = now
        if self._ahead > _BURST:
            await asyncio.sleep((self._ahead - _BURST) / _RATE)


def admit(raw: object, controls: Callable[[str], Any]) -> bytes | None:
    """Return a message with only allowed contents, or ``None`` to drop it.

    Args:
        raw: What a client has sent.
        controls: Returns the control of an id, the command of a key or the handle of a place in the
            scene; ``None`` if there is none.
    """
    try:
        message = msgspec.msgpack.decode(raw) if isinstance(raw, bytes) else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    kind = message.get("type")
    if kind == "ViewerCameraMessage":
        allowed = _camera(message)
    elif kind == "GuiUpdateMessage":
        allowed = _update(message, controls)
    elif kind == "CommandTriggerMessage":
        allowed = _trigger(message, controls)
    elif kind == "TransformControlsUpdateMessage":
        allowed = _pull(message, controls)
    else:
        return None
    return None if allowed is None else msgspec.msgpack.encode({"type": kind, **allowed})


def _camera(message: dict[Any, Any]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {name: message.get(name) for name in _CAMERA}
    for name, size in _CAMERA.items():
        values = fields[name] if size else [fields[name]]
        if not isinstance(values, list) or len(values) != (size or 1):
            return None
        if not all(_is_number(value) and abs(value) < _LARGEST for value in values):
            return None
    return fields


def _update(message: dict[Any, Any], controls: Callable[[str], Any]) -> dict[str, Any] | None:
    uuid, updates = message.get("uuid"), message.get("updates")
    if not isinstance(uuid, str) or not isinstance(updates, dict):
        return None
    value = allowed_value(controls(uuid), updates.get("value"))
    return None if value is None else {"uuid": uuid, "updates": {"value": value}}


def _trigger(message: dict[Any, Any], controls: Callable[[str], Any]) -> dict[str, Any] | None:
    uuid = message.get("uuid")
    known = isinstance(uuid, str) and isinstance(controls(uuid), viser.CommandHandle)
    return {"uuid": uuid} if known else None


def _pull(message: dict[Any, Any], controls: Callable[[str], Any]) -> dict[str, Any] | None:
    """Let a handle be moved within its limits; none of ours turns."""
    name, place = message.get("name"), message.get("position")
    handle = controls(name) if isinstance(name, str) else None
    if not isinstance(handle, viser.TransformControlsHandle):
        return None
    if not isinstance(place, list) or len(place) != 3 or not all(map(_is_number, place)):
        return None
    limits = handle.translation_limits
    within = [
        min(max(float(value), low), high) for value, (low, high) in zip(place, limits, strict=True)
    ]
    return {"name": name, "wxyz": [1.0, 0.0, 0.0, 0.0], "position": within}


def allowed_value(control: Any, given: Any) -> float | bool | str | None:
    """Return the value that a control takes on, or ``None`` if it does not take the given one."""
    if isinstance(control, viser.GuiSliderHandle) and _is_number(given):
        return min(max(float(given), float(control.min)), float(control.max))
    if isinstance(control, viser.GuiCheckboxHandle | viser.GuiButtonHandle):
        return given if isinstance(given, bool) else None
    if isinstance(control, viser.GuiDropdownHandle | viser.GuiButtonGroupHandle):
        return given if isinstance(given, str) and given in control.options else None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
