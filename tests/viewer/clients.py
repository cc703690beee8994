"""Clients of the viewer without a browser: they send whatever they like."""

import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit

import msgspec
import viser
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1.0, 0, 0, 0], "position": [2, 2, 1], "fov": 1,
    "near": 1, "far": 9, "image_height": 9, "image_width": 9, "look_at": [0, 0, 0],
    "up_direction": [0, 0, 1],
}  # fmt: skip


class Client:
    """A connection to the viewer, by default as its own page makes it."""

    def __init__(self, app, *, token=None, host=None, origin=None):
        place = urlsplit(app.url)
        query = place.query if token is None else f"token={token}"
        host = host or place.netloc
        origin = f"http://{host}" if origin is None else origin
        self.connection = connect(
            f"ws://{host}/?{query}",
            sock=socket.create_connection((place.hostname, place.port)),
            subprotocols=[f"viser-v{viser.__version__}"],
            additional_headers={"Origin": origin} if origin else {},
            max_size=None,
            proxy=None,
        )
        self.received = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        """Take all images, as a browser does; the server gives up on those who do not."""
        with contextlib.suppress(ConnectionClosed):
            for image in self.connection:
                self.received += len(image)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self._reader.join()

    def send(self, message):
        """Send a message as a browser would pack it; bytes and text go as they are."""
        packed = isinstance(message, (bytes, str))
        self.connection.send(message if packed else msgspec.msgpack.encode(message))

    def set(self, control, value):
        """Send a value of a control."""
        uuid = control._impl.uuid
        self.send({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": value}})


def wait_until(what, seconds=60):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)
