"""How processes end: stop signals ask for an orderly end, and no process outlives its parent.

Ctrl-C, termination (clusters preempt with it) and hang-up (a closed terminal) mean the same to
every command. A process started by prism calls :func:`end_with_parent`, so that it ends even if its
parent was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

PARENT = "PRISM_PARENT"
"""Environment variable with the process number of the prism command that started this one."""

_POLL = 0.5
"""Seconds between looks at the parent."""

_AGAIN = 0.1
"""Seconds after which a stop signal is sent again whose exception Python dropped."""


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop.

    Args:
        number: The signal.
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """Return the exit code of a command that a signal stopped: 128 and the signal's number."""
    return 128 + (error.number if isinstance(error, Stopped) else int(signal.SIGINT))


def stop_signals() -> list[int]:
    """Return the signals that stop this process; under nohup, hang-up is not one of them."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    hang_up = getattr(signal, "SIGHUP", None)  # absent on Windows
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        numbers.append(hang_up)
    return [int(number) for number in numbers]


@contextmanager
def on_stop(handler: Callable[[int], None]) -> Iterator[None]:
    """Call ``handler`` with every stop signal; without effect outside of the main thread.

    Python drops what is raised in a finaliser or a callback of the garbage collector, so a
    :class:`Stopped` that was raised there is sent again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        handler(number)

    former_hook = sys.unraisablehook

    def send_again(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, Stopped):
            former_hook(dropped)
            return
        # Later, because the handler would raise in this very function.
        again = threading.Timer(_AGAIN, os.kill, (os.getpid(), dropped.exc_value.number))
        again.daemon = True
        again.start()

    sys.unraisablehook = send_again
    # Children get the default action of signals handled here, even if the shell ignores them.
    before = {number: signal.signal(number, handle) for number in stop_signals()}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
        sys.unraisablehook = former_hook


def raise_stopped(number: int) -> None:
    """Stop at once, as Ctrl-C does; a handler for :func:`on_stop`."""
    raise Stopped(number)


class StopRequests:
    """Context manager that defers stop signals; a second Ctrl-C stops at once.

    Termination and hang-up may arrive twice, from a cluster and from a launcher that passes them
    on, so repeating them does not hurry.

    Attributes:
        asked: The first signal, or 0.
    """

    def __init__(self) -> None:
        self.asked = 0

    def __enter__(self) -> StopRequests:
        self._handling = on_stop(self._note)
        self._handling.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._handling.__exit__(None, None, None)

    def _note(self, number: int) -> None:
        if self.asked and number == signal.SIGINT:
            raise Stopped(number)
        self.asked = self.asked or number


@contextmanager
def hold_signals() -> Iterator[None]:
    """Defer stop signals inside the block; processes started there do not receive them.

    A terminal or a cluster signals all processes; those started here leave it to their parent, also
    while they import. They may call :func:`release_signals` when they are ready.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would unblock them when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_signals() -> None:
    """Receive stop signals in a process started under :func:`hold_signals`."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals())


def end_with_parent(parent: int, grace: float = 30.0) -> None:
    """End this process once its parent is gone, however that ended.

    Args:
        parent: Process number of the parent.
        grace: Seconds to save in, after being asked to stop as by a cluster; 0 ends at once.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL)
        if grace:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(grace)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def end_with_starter() -> None:
    """End with the prism command that started this one, if one did.

    What started it may block signals, as Ray's workers do, and children inherit that.
    """
    parent = os.environ.pop(PARENT, "")
    if parent.isdigit():
        release_signals()
        end_with_parent(int(parent))
