"""The viewer in a real browser, drawn in software."""

import io
import shutil
import threading
import time

import imageio.v3 as imageio
import numpy as np
import pytest

from prism_motor.viewer.app import App

WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE = 120
"""Longest wait for anything, s; a free machine needs a small part of it."""


@pytest.fixture
def page():
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--ignore-gpu-blocklist", *WEBGL]
        )
        # Small, because software draws every pixel; wide enough for both panels at the sides.
        page = browser.new_page(viewport={"width": 1000, "height": 420})
        page.set_default_timeout(1000 * PATIENCE)
        yield page
        browser.close()


@pytest.fixture
def app(make_session, cast):
    session = make_session(1, command=(0.0, 0.0, 0.0))
    app = App(session, [cast[1][1]], port=0)
    thread = threading.Thread(target=app.run)
    thread.start()
    yield app
    app.stop()
    thread.join()


def wait_until(what, page):
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it took too long"
        page.wait_for_timeout(100)


def look(page):
    """Return the pixels of the scene between the panels."""
    canvas = page.locator("canvas[data-engine]").first
    return imageio.imread(io.BytesIO(canvas.screenshot()))[..., :3].astype(int)


def type_into(page, slider, value):
    row = f"//label[contains(., '{slider}')]/ancestor::*[.//input[@inputmode='decimal']][1]"
    page.locator(f"{row}//input[@inputmode='decimal']").fill(str(value))


@pytest.mark.slow
def test_the_robot_walks_as_it_is_told(app, page):
    session, walker = app.session, app.session.leader
    errors = []
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
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
