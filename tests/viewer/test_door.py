"""Strangers at the viewer's server, and what its clients can do to it."""

import http.client
import math
import re
import socket
from urllib.parse import urlsplit

import pytest
import viser
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from prism_motor._checks import InputError, PrismError
from prism_motor.cli import main
from prism_motor.viewer.app import App, find_port
from prism_motor.viewer.door import Door
from prism_motor.viewer.walking.show import WalkingShow
from tests.viewer.clients import CAMERA, Client, wait_until


def get(app, path, **headers):
    """Return the status and the headers of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": urlsplit(app.url).netloc} | headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def token(app):
    return urlsplit(app.url).query


# Who gets in --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"token": ""},
        {"token": "x"},
        {"token": "%ff%00é"},
        {"origin": "http://evil.example"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://127.0.0.1:{port}.evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"host": "evil.example:{port}"},
        {"host": "127.0.0.1.evil.example"},
    ],
    ids=str,
)
def test_strangers_are_refused(app, given):
    given = {name: value.replace("{port}", str(app.port)) for name, value in given.items()}
    with pytest.raises(InvalidStatus, match="403"):
        Client(app, **given)


def test_whoever_has_the_address_gets_in(app):
    # The page itself, a program without a browser, a name for this machine, a tunnel to it.
    hosts = [f"127.0.0.1:{app.port}", f"localhost:{app.port}", "localhost:9000", "[::1]:9000"]
    for given in [{}, {"origin": ""}, *({"host": host} for host in hosts)]:
        with Client(app, **given) as client:
            wait_until(lambda client=client: client.received > 1000)  # the scene


def test_pages_need_the_token_too(app):
    assert get(app, "/")[0] == 403
    assert get(app, "/index.html")[0] == 403
    assert get(app, "/?token=wrong")[0] == 403
    assert get(app, f"/?{token(app)}&{token(app)}")[0] == 403  # which of them?
    for host in (
        "evil.example",
        "127.0.0.1@evil.example",
        "x@127.0.0.1",
        "[::1",
        "127.0.0.1/x",
        "",
    ):
        assert get(app, f"/?{token(app)}", Host=host)[0] == 403
    assert get(app, f"/../../etc/passwd?{token(app)}")[0] == 404
    assert get(app, f"//[x?{token(app)}")[0] == 404
    assert get(app, "//[x?token=%ff&&;=")[0] == 403
    status, _, page = get(app, f"/index.html?{token(app)}")
    assert status == 200
    assert b"<html" in page


def test_the_page_connects_to_this_server_and_to_no_other(app):
    place = urlsplit(app.url).netloc
    own = f"/?{token(app)}&websocket=ws://{place}/?{token(app)}"
    for path in (f"/?{token(app)}", f"/?{token(app)}&websocket=ws://evil.example"):
        status, headers, _ = get(app, path)
        assert (status, headers["Location"]) == (302, own)
    status, headers, _ = get(app, own)
    assert status == 200
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in headers


def test_every_viewer_has_its_own_token():
    doors = [Door("127.0.0.1", lambda raw: None) for _ in range(3)]
    assert len({door.token for door in doors}) == 3
    assert all(len(door.token) >= 20 for door in doors)


def test_addresses_can_be_opened():
    here = {"127.0.0.1": "127.0.0.1", "::1": "[::1]", "0.0.0.0": "127.0.0.1", "::": "[::1]"}
    for host, shown in here.items():
        door = Door(host, lambda raw: None)
        assert door.url(8080) == f"http://{shown}:8080/?token={door.token}"
        assert urlsplit(door.url(8080)).port == 8080
    for host in ("127.0.0.1", "::1", "localhost"):
        assert Door(host, lambda raw: None).public_url(8080) is None
    everywhere, one = Door("0.0.0.0", lambda raw: None), Door("192.0.2.1", lambda raw: None)
    assert (
        everywhere.public_url(80) == f"http://{socket.gethostname()}:80/?token={everywhere.token}"
    )
    assert one.public_url(80) == one.url(80)


def test_the_command_prints_what_can_be_opened(cast, capsys):
    main(["play", "g1-prism", "--host", "0.0.0.0", "--port", "0", "--seconds", "0.2"])
    here, others = capsys.readouterr().out.splitlines()
    assert re.match(r"Open http://127\.0\.0\.1:\d+/\?token=\S{20,} in a browser", here)
    assert "Other machines can reach it, but only with the token" in others
    assert f"http://{socket.gethostname()}:" in others


@pytest.mark.parametrize("host", ["::1", "::", "0.0.0.0"])
def test_other_addresses_are_served_alike(host, make_session, cast):
    try:
        find_port(host, 0)
    except InputError:
        pytest.skip(f"this machine has no {host}")
    app = App(WalkingShow(make_session(1), [cast[1][1]]), host=host, port=0)
    try:
        assert urlsplit(app.url).hostname == ("127.0.0.1" if host == "0.0.0.0" else "::1")
        names = [None] if host == "::1" else [None, f"{socket.gethostname()}:{app.port}"]
        for name in names:
            with Client(app, host=name) as client:
                wait_until(lambda client=client: client.received > 1000)
        with pytest.raises(InvalidStatus, match="403"):
            Client(app, host="evil.example")
    finally:
        app.stop()


def test_a_server_that_cannot_be_guarded_is_not_used():
    import websockets.asyncio.server

    with pytest.raises(PrismError, match="viser"), Door("127.0.0.1", lambda raw: None).guarding():
        pass  # as if viser had another server now
    assert websockets.asyncio.server.serve is serve


# What clients can do ------------------------------------------------------------------------------

NONSENSE = [
    1e9, -1e9, 2**63, -1, math.nan, math.inf, -math.inf, True, None, "", "x", "0.5", b"\xff", [],
    [1.0], {}, {"value": 1}, [[[]]],
]  # fmt: skip


def inputs(app):
    return [
        control
        for control in app.server.gui._gui_input_handle_from_uuid.values()
        if not isinstance(control, viser.GuiButtonHandle)
    ]


def test_no_value_leaves_its_control(app):
    """Sliders stay in their range, choices among theirs, and the robot walks on."""
    assert {type(control).__name__ for control in inputs(app)} == {
        "GuiSliderHandle", "GuiCheckboxHandle", "GuiDropdownHandle", "GuiButtonGroupHandle"
    }  # fmt: skip
    with Client(app) as client:
        client.send(CAMERA)
        for control in inputs(app):
            for value in NONSENSE:
                client.set(control, value)
        # Messages are handled in order: when the last one has come, all have.
        client.set(app.show.panel.disturb.payload, 0.7)
        wait_until(lambda: app.show.panel.disturb.payload.value == 0.7)
    for control in inputs(app):
        if isinstance(control, viser.GuiSliderHandle):
            assert isinstance(control.value, float)
            assert control.min <= control.value <= control.max
        elif isinstance(control, viser.GuiCheckboxHandle):
            assert isinstance(control.value, bool)
        else:
            assert control.value in control.options
    app.show.panel.view.paused.value = False
    time = app.show.session.time
    wait_until(lambda: app.show.session.time > time + 0.2)


def test_values_beyond_a_range_become_its_end(app):
    with Client(app) as client:
        for slider in (app.show.panel.view.speed, app.show.panel.disturb.friction):
            client.set(slider, 1e9)
            wait_until(lambda slider=slider: slider.value == slider.max)
            client.set(slider, -1)
            wait_until(lambda slider=slider: slider.value == slider.min)


def test_clients_change_values_and_nothing_else(app):
    control = app.show.panel.view.speed
    before = dict(vars(control._impl))
    with Client(app) as client:
        for name in before:
            if name != "value":
                uuid, updates = control._impl.uuid, {name: "x"}
                client.send({"type": "GuiUpdateMessage", "uuid": uuid, "updates": updates})
        client.set(app.show.panel.disturb.payload, 0.3)
        wait_until(lambda: app.show.panel.disturb.payload.value == 0.3)
    assert {name: getattr(control._impl, name) for name in before} == before


def test_no_client_gets_a_tunnel(app, monkeypatch):
    asked = []
    monkeypatch.setattr(app.server, "request_share_url", lambda *_, **__: asked.append(1))
    with Client(app) as client:
        client.send(CAMERA)
        for kind in ("ShareUrlRequest", "ShareUrlDisconnect"):
            client.send({"type": kind})
        client.set(app.show.panel.disturb.payload, 0.2)
        wait_until(lambda: app.show.panel.disturb.payload.value == 0.2)
    assert app.server._share_tunnel is None
    assert asked == []


def test_garbage_closes_nothing(app, capfd):
    with Client(app) as client:
        garbage = ["text", b"", b"\xc1", b"\x91" * 10_000, b"\xdf\xff\xff\xff\xff", [], {}, 7, None]
        strange = [{"type": None}, {"type": "Message"}, {"type": ["ViewerCameraMessage"]}]
        broken = [CAMERA | {name: math.nan} for name in CAMERA] + [{"type": CAMERA["type"]}]
        updates = [
            {"type": "GuiUpdateMessage"},
            {"type": "GuiUpdateMessage", "uuid": [], "updates": {}},
            {"type": "GuiUpdateMessage", "uuid": "none", "updates": {"value": 1}},
            {
                "type": "GuiUpdateMessage",
                "uuid": app.show.panel.view.speed._impl.uuid,
                "updates": [1],
            },
        ]
        for message in [*garbage, *strange, *broken, *updates]:
            client.send(message)
        client.set(app.show.panel.disturb.payload, 0.4)
        wait_until(lambda: app.show.panel.disturb.payload.value == 0.4)
    assert "Traceback" not in capfd.readouterr().err


def is_closed(client):
    try:
        client.send(b"")
    except ConnectionClosed as error:
        return error.rcvd is not None and error.rcvd.code == 1009  # too big
    return False


def test_too_long_messages_end_only_their_own_connection(app):
    with Client(app) as client, Client(app) as other:
        client.send(b"x" * 1_000_000)
        wait_until(lambda: is_closed(client))
        other.set(app.show.panel.disturb.payload, 0.6)
        wait_until(lambda: app.show.panel.disturb.payload.value == 0.6)


def test_a_flood_of_clicks_does_not_freeze_the_robot(app):
    (pushes,) = [c for c in inputs(app) if isinstance(c, viser.GuiButtonGroupHandle)]
    with Client(app) as client:
        client.send(CAMERA)
        wait_until(app.server.get_clients)
        time = app.show.session.time
        for _ in range(500):
            client.set(pushes, "left")
        wait_until(lambda: app.show.session.time > time + 0.5)
        assert len(app.show.panel.disturb.clicks) <= 8
        assert app.show.session.leader.pushed is not None
