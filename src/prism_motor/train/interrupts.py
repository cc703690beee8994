"""Ctrl-C at a moment when everything can be saved."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupts:
    """Holds back the first Ctrl-C while used as a context manager; a second one comes through.

    Attributes:
        asked: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupts:
        self._changed = threading.current_thread() is threading.main_thread()
        if self._changed:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._changed:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
