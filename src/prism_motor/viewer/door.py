"""Who may connect to the viewer: those who have its address, from the page that it serves itself.

The address carries a random token, which every request needs. Another page in the same browser
neither knows it nor gets in with it, because a browser names the page's origin. There is no cookie:
browsers send those to every server on the same host.
"""

from __future__ import annotations

import contextlib
import functools
import http
import ipaddress
import logging
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from prism_motor._checks import PrismError
from prism_motor.viewer.messages import MESSAGE_BYTES, Admit, Pacer

_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that mean all of this machine's, and the one of them to open on the machine itself."""

_HOST = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(?::\d+)?", re.ASCII)
"""A name or an address, and perhaps a port."""

_replacing = threading.Lock()


class Door:
    """The only way into the viewer's server.

    Args:
        host: Address that the server listens on.
        admit: Returns what a client's message becomes; ``None`` drops it.

    Attributes:
        token: Secret part of the address.
    """

    def __init__(self, host: str, admit: Admit) -> None:
        self.host, self.token = host, secrets.token_urlsafe(16)
        self._admit = admit
        self._names = {"localhost", host.lower()}
        if host in _ALL:
            self._names.add(socket.gethostname().lower())

    def url(self, port: int) -> str:
        """Return the address to open on this machine."""
        return self._url(_ALL.get(self.host, self.host), port)

    def public_url(self, port: int) -> str | None:
        """Return the address for other machines; ``None`` if they cannot reach the server."""
        if _is_loopback(self.host):
            return None
        return self._url(socket.gethostname() if self.host in _ALL else self.host, port)

    def _url(self, host: str, port: int) -> str:
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={self.token}"

    @contextlib.contextmanager
    def guarding(self) -> Iterator[None]:
        """Put the server that viser starts inside this context behind the door.

        viser has no setting for it, but leaves all connections to ``websockets``, which has.
        """
        module = websockets.asyncio.server
        with _replacing:
            serve, used = module.serve, []

            def guarded(*arguments: Any, **settings: Any) -> Any:
                used.append(True)
                return serve(*arguments, **self._settings(**settings))

            module.serve = guarded  # pyright: ignore[reportAttributeAccessIssue]
            try:
                yield
            finally:
                module.serve = serve
        if not used:
            raise PrismError(
                "This version of viser cannot be kept from serving everybody, so nothing is "
                "shown. Install another one: pip install 'viser==1.1.*'"
            )

    def _settings(self, process_request: Callable[..., Any], **others: Any) -> dict[str, Any]:
        """Return viser's settings of the connections, with ours in place of some."""
        logger = logging.getLogger(__name__)
        logger.addFilter(_is_about_us)
        return others | {
            "process_request": functools.partial(self._answer, process_request),
            "create_connection": functools.partial(_Connection, admit=self._admit),
            "max_size": MESSAGE_BYTES,
            "logger": logger,
        }

    def _answer(
        self, serve_page: Callable[..., Any], connection: ServerConnection, request: Request
    ) -> Response | None:
        """Refuse a request, lead it to the page with our websocket, or pass it on to viser."""
        if why := self.refusal(request):
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{why}\n")
        path, _, query = request.path.partition("?")
        if "Upgrade" in request.headers or path != "/":
            return serve_page(connection, replace(request, path=path))
        # The page connects to the address in its query, and by default to one without the token.
        websocket = f"ws://{request.headers['Host']}/?token={self.token}"
        if parse_qs(query).get("websocket") != [websocket]:
            response = connection.respond(http.HTTPStatus.FOUND, "")
            response.headers["Location"] = f"/?token={self.token}&websocket={websocket}"
        else:
            response = serve_page(connection, replace(request, path="/"))
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def refusal(self, request: Request) -> str:
        """Return why a request is refused; empty if it is not."""
        host, origin = _only(request.headers, "Host"), _only(request.headers, "Origin")
        if not host or not self._is_ours(host):
            # A name that its owner has just pointed at this machine makes his page look like ours.
            return "The viewer is not served under this name."
        if origin is None or (origin and origin != f"http://{host}"):
            return "The viewer cannot be used from other pages."
        given = parse_qs(request.path.partition("?")[2]).get("token", [""])
        if len(given) != 1 or not secrets.compare_digest(given[0].encode(), self.token.encode()):
            return "Open the whole address that prism play has printed, with its token."
        return ""

    def _is_ours(self, host: str) -> bool:
        """Return whether a Host header names this machine; its port may be that of a tunnel."""
        parts = _HOST.fullmatch(host.lower())
        name = "" if parts is None else parts[1].strip("[]")
        return name in self._names or _is_address(name)


class _Connection(ServerConnection):
    """A connection that receives what is admitted, and no faster than a person sends it."""

    def __init__(self, *arguments: Any, admit: Admit, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._admit, self._pacer = admit, Pacer()

    async def recv(self, decode: bool | None = None) -> Any:
        """Wait for the next message that is admitted."""
        while True:
            raw = await super().recv(decode)
            await self._pacer.wait()
            admitted = self._admit(raw)
            if admitted is not None:
                return admitted


def _only(headers: Headers, name: str) -> str | None:
    """Return the value of a header, empty if it is missing, ``None`` if it is ambiguous."""
    values = headers.get_all(name)
    return None if len(values) > 1 else "".join(values)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_about_us(record: logging.LogRecord) -> bool:
    """Leave out what strangers do wrong, so that they cannot fill the terminal."""
    return record.getMessage() != "opening handshake failed"
