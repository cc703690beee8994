"""The viewer in a real browser, drawn in software."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import viser

from prism_motor.viewer.app import App
from prism_motor.viewer.walking.show import WalkingShow
from tests.viewer.browser import look, note_errors, on_screen, type_into, wait_until


@pytest.fixture
def app(make_session, cast):
    session = make_session(1, command=(0.0, 0.0, 0.0))
    app = App(WalkingShow(session, [cast[1][1]]), port=0)
    thread = threading.Thread(target=app.run)
    thread.start()
    yield app
    app.stop()
    thread.join()


@pytest.mark.slow
def test_the_robot_walks_as_it_is_told(app, page):
    session, walker = app.show.session, app.show.session.leader
    errors = note_errors(page)
    page.goto(app.url)
    page.get_by_text("g1-prism").first.wait_for()
    page.get_by_text("mrad").first.wait_for()

    # A robot can be seen, standing.
    wait_until(lambda: look(page).std() > 5, page)
    assert abs(walker.velocity[0]) < 0.1

    # The slider changes the command, and the robot goes.
    type_into(page, "Forward", 0.5)
    wait_until(lambda: session.command is not None and session.command[0] == 0.5, page)
    wait_until(lambda: walker.velocity[0] > 0.3, page)
    first, place = look(page), walker.qpos[0]
    wait_until(lambda: walker.qpos[0] > place + 0.3, page)
    assert np.abs(look(page) - first).max() > 50

    # A push is survived or reported.
    page.get_by_role("button", name="left", exact=True).click()
    wait_until(lambda: walker.pushed is not None and "…" not in str(walker.pushed), page)
    page.get_by_text(str(walker.pushed)).wait_for()

    # Time stands still on request.
    page.get_by_label("Pause").check()
    page.get_by_text("paused").wait_for()
    stopped = session.time
    page.wait_for_timeout(300)
    assert session.time == stopped
    assert errors == []


@pytest.mark.slow
def test_keys_steer(app, page):
    session = app.show.session
    page.goto(app.url)
    page.get_by_text("g1-prism").first.wait_for()
    for key, wanted in (
        ("i", (0.1, 0.0, 0.0)),
        ("j", (0.1, 0.0, 0.1)),
        ("u", (0.1, 0.05, 0.1)),
        ("k", (0.0, 0.05, 0.1)),
        ("x", (0.0, 0.0, 0.0)),
    ):
        page.keyboard.press(key)
        wait_until(lambda wanted=wanted: session.command == pytest.approx(wanted), page)


@pytest.mark.slow
def test_on_a_phone_the_robot_stands_above_the_panel(app, page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(app.url)
    page.get_by_text("g1-prism").first.wait_for()
    top = page.get_by_text("PRISM", exact=True).first.bounding_box()["y"]
    wait_until(lambda: on_screen(app, page, (0.0, 0.0, 0.0))[1] < top, page)
    for height in (0.0, 1.3):
        x, y = on_screen(app, page, (0.0, 0.0, height))
        assert 50 < x < 340
        assert 30 < y < top


CONNECT = """
address => new Promise(resolve => {
    const socket = new WebSocket(address, ["viser-v%s"]);
    socket.binaryType = "arraybuffer";
    socket.onmessage = message => resolve("a scene of " + message.data.byteLength + " bytes");
    socket.onclose = closing => resolve("refused");
})
"""
"""Try to connect to the viewer from within a page."""


@pytest.fixture
def elsewhere(tmp_path):
    """The address of another server on this machine, whose pages are somebody else's."""
    (tmp_path / "index.html").write_text("<p>somebody else's page</p>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_viewer_is_for_its_own_page_alone(app, page, elsewhere):
    connect = CONNECT % viser.__version__
    websocket = app.url.replace("http:", "ws:")
    bare = app.url.split("?")[0]

    # The printed address works, again after a reload and in a second tab.
    page.goto(app.url)
    page.get_by_text("g1-prism").first.wait_for()
    page.reload()
    page.get_by_text("g1-prism").first.wait_for()
    second = page.context.new_page()
    second.goto(app.url)
    second.get_by_text("g1-prism").first.wait_for()
    assert page.evaluate(connect, websocket).startswith("a scene of")

    # Without its token there is no page, not even where the whole address was opened before.
    assert second.goto(bare).status == 403
    assert second.evaluate(connect, bare.replace("http:", "ws:")) == "refused"

    # Another page gets nowhere, with or without the token.
    second.goto(elsewhere)
    assert second.evaluate(connect, bare.replace("http:", "ws:")) == "refused"
    assert second.evaluate(connect, websocket) == "refused"
