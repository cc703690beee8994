"""A real browser, drawn in software, and what one does with it."""

import io
import shutil
import time
from contextlib import contextmanager

import imageio.v3 as imageio
import numpy as np
import pytest
import viser

WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE = 120
"""Longest wait for anything, s; a free machine needs a small part of it."""


@contextmanager
def open_page():
    """Open a page of a browser; skip the test where there is none."""
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--ignore-gpu-blocklist", *WEBGL]
        )
        # Small, because software draws every pixel; wide enough for both panels at the sides.
        context = browser.new_context(viewport={"width": 1000, "height": 420})
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        yield page
        browser.close()


def note_errors(page):
    """Return the list of errors of a page, which grows."""
    errors = []
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


def wait_until(what, page):
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it took too long"
        page.wait_for_timeout(100)


def look(page):
    """Return the pixels of the scene between the panels."""
    canvas = page.locator("canvas[data-engine]").first
    return imageio.imread(io.BytesIO(canvas.screenshot()))[..., :3].astype(int)


def on_screen(app, page, place):
    """Return the pixel at which a browser shows a place."""
    (client,) = app.server.get_clients().values()
    camera, box = client.camera, page.locator("canvas[data-engine]").first.bounding_box()
    turn = viser.transforms.SO3(camera.wxyz).inverse()
    x, y, z = turn @ (np.asarray(place) - camera.position)
    scale = box["height"] / 2 / np.tan(camera.fov / 2)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return middle[0] + scale * x / z, middle[1] + scale * y / z


def type_into(page, slider, value):
    row = f"//label[contains(., '{slider}')]/ancestor::*[.//input[@inputmode='decimal']][1]"
    page.locator(f"{row}//input[@inputmode='decimal']").fill(str(value))


def choose(page, dropdown, value):
    """Choose an option of a dropdown, which opens as a list."""
    row = f"//label[contains(., '{dropdown}')]/ancestor::*[.//input][1]"
    page.locator(f"{row}//input").first.click()
    page.get_by_role("option", name=value, exact=True).first.click()
