"""The viewer: a show in real time, with its image and controls in the browser."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import socket
import threading
import time
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
import viser

from prism_motor._checks import InputError
from prism_motor.sim.scene import import_mujoco
from prism_motor.viewer.door import Door
from prism_motor.viewer.messages import admit
from prism_motor.viewer.shapes import BLUE, rgb

_FRAME = 1 / 50
"""Shortest time between images, s."""
_PLOT = 1 / 12
"""Time between updates of plots and numbers, s."""
_PORTS = 100
"""How many ports are tried."""
_LATE = 0.1
"""Largest delay that is caught up on, s; time beyond it is lost, so slow machines stay usable."""


class Show(Protocol):
    """What an app serves: a simulation with its picture and controls.

    Everything but :meth:`open` happens in the thread that runs the app.
    """

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        ...

    @property
    def speed(self) -> float:
        """Simulated seconds per second."""
        ...

    def open(self, server: viser.ViserServer) -> None:
        """Set up scene and controls."""
        ...

    def apply(self) -> bool:
        """Apply the user's input; return whether there was any."""
        ...

    def advance(self, seconds: float) -> None:
        """Simulate."""
        ...

    def draw(self) -> None:
        """Show the current image."""
        ...

    def report(self, pace: str) -> None:
        """Show the current numbers, and how fast time goes."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class App:
    """Serves a show to browsers.

    Args:
        show: What is shown.
        host: Address to listen on.
        port: Port to listen on; if it is taken, the next free one is used.

    Attributes:
        url: The address to open; it carries the token without which nobody gets in.
        public_url: The same for other machines; ``None`` if they cannot reach the server.
    """

    def __init__(self, show: Show, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        self.show = show
        self._inputs: Mapping[str, Any] = {}
        door = Door(host, lambda raw: admit(raw, self._inputs.get))
        with _silence(), door.guarding():
            self.server = viser.ViserServer(host=host, port=find_port(host, port), verbose=False)
        # Ids are random, and names of handles begin with a slash: they never coincide.
        self._inputs = ChainMap(
            self.server.gui._gui_input_handle_from_uuid,
            self.server.gui._command_handle_from_uuid,
            self.server.scene._handle_from_transform_controls_name,
        )
        self.port = self.server.get_port()
        self.url, self.public_url = door.url(self.port), door.public_url(self.port)
        gui = self.server.gui
        gui.set_panel_label("PRISM")
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=rgb(BLUE))
        show.open(self.server)
        gui.main_panel.dock_right()
        self._stopped, self._running = threading.Event(), threading.Lock()
        self._closed = False
        self.pace = 1.0

    def run(self, seconds: float | None = None) -> None:
        """Run the show in real time.

        Args:
            seconds: How long; default: until :meth:`stop`.
        """
        torch.set_num_threads(1)  # one robot's policy is too small to share
        with self._running, _quiet_physics():
            self._loop(seconds)
            if self._stopped.is_set():
                self._close_show()

    def _loop(self, seconds: float | None) -> None:
        start = last = time.perf_counter()
        frame, plot = _Timer(_FRAME), _Timer(_PLOT)
        while not self._stopped.is_set():
            now = time.perf_counter()
            if seconds is not None and now - start >= seconds:
                break
            changed = self.show.apply()
            if not self.show.paused:
                self._advance(now - last)
                changed = True
            last = now
            if frame.due(now, changed):
                self.show.draw()
            if plot.due(now, changed):
                self._report()
            time.sleep(max(0.001, frame.next - time.perf_counter()))

    def stop(self) -> None:
        """End :meth:`run` and close the server."""
        self._stopped.set()
        with self._running, _silence():
            self.server.stop()
            self._close_show()

    def _close_show(self) -> None:
        """Close the show once, if possible in the thread that ran it: renderers belong to one."""
        if not self._closed:
            self._closed = True
            self.show.close()

    def _advance(self, elapsed: float) -> None:
        wanted = min(elapsed, _LATE) * self.show.speed
        self.show.advance(wanted)
        self.pace += 0.05 * (wanted / max(elapsed, 1e-6) - self.pace)

    def _report(self) -> None:
        self.show.report("paused" if self.show.paused else f"{self.pace:.1f} × real time")


def find_port(host: str, port: int) -> int:
    """Return the first free port from ``port`` on; 0 leaves the choice to the system."""
    if not host:
        raise InputError(
            "The host is empty; give an address, or 0.0.0.0 for all of this machine's."
        )
    if not 0 <= port <= 65535:
        raise InputError(f"Ports go from 0 to 65535, got {port}.")
    for candidate in range(port, min(port + _PORTS, 65536)):
        try:
            with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, candidate))
                return int(probe.getsockname()[1])
        except (OSError, ValueError) as error:  # a ValueError for what can be no name at all
            reason = error.strerror if isinstance(error, OSError) else None
            if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
                raise InputError(
                    f"Cannot listen on {host}, port {candidate}: {reason or error}. Give an "
                    "address of this machine and a port from 1024 on."
                ) from error
    raise InputError(f"The {_PORTS} ports from {port} on are all in use; give another --port.")


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep viser from announcing what the command already says."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def _quiet_physics() -> Iterator[None]:
    """Keep MuJoCo from warning of divergence, which the panel tells in words."""
    logger = logging.getLogger(import_mujoco.__module__)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class _Timer:
    """Decides when it is time to show what has changed."""

    def __init__(self, period: float) -> None:
        self.period, self.next = period, 0.0
        self._changed = True

    def due(self, now: float, changed: bool) -> bool:
        """Return whether a period has passed and anything has changed since the last time."""
        self._changed |= changed
        if now < self.next:
            return False
        due, self._changed = self._changed, False
        self.next = max(self.next + self.period, now)
        return due
