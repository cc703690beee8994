"""The arm in a real browser: handle, keys, buttons and sliders; and what strangers may send."""

import json
import threading

import numpy as np
import pytest

from prism_motor.manipulation.tasks import find_task
from prism_motor.viewer.app import App
from prism_motor.viewer.teleop.panel import STEP
from prism_motor.viewer.teleop.show import make_show
from tests.viewer.browser import look, note_errors, on_screen, type_into, wait_until
from tests.viewer.clients import CAMERA, Client
from tests.viewer.clients import wait_until as wait_for


@pytest.fixture
def app(tmp_path):
    show = make_show(tmp_path / "demos", find_task("so101", "mouse-click-v0"), image_size=48)
    app = App(show, port=0)
    thread = threading.Thread(target=app.run)
    thread.start()
    yield app
    assert thread.is_alive()
    app.stop()
    thread.join()


def yellow(page):
    """Return how many pixels show the arm."""
    red, green, blue = np.moveaxis(look(page), -1, 0)
    return int(((red > 100) & (green > 80) & (blue < 0.6 * green)).sum())


@pytest.mark.slow
def test_a_click_is_recorded(app, page, tmp_path):
    session = app.show.session
    errors = note_errors(page)
    page.set_viewport_size({"width": 1100, "height": 760})
    page.goto(app.url)
    page.get_by_text("0 of 5 episodes kept").first.wait_for()
    page.get_by_text("agent").first.wait_for()
    wait_until(lambda: yellow(page) > 2000, page)

    camera = app.server.get_clients().copy().popitem()[1].camera.position

    # The handle pulls the target up along its arrow.
    before = session.target.position
    x, y = on_screen(app, page, before + np.array([0, 0, 0.05]))
    page.mouse.move(x, y)
    page.wait_for_timeout(500)
    page.mouse.down()
    page.mouse.move(x, y - 10, steps=4)
    page.mouse.move(x, y - 30, steps=4)
    page.mouse.up()
    wait_until(lambda: session.target.position[2] > before[2] + 0.005, page)
    assert session.target.position[:2] == pytest.approx(before[:2], abs=1e-3)

    # An episode begins at home. Keys and sliders bring the tip over the button.
    page.get_by_role("button", name="Start episode").click()
    page.get_by_text("recording episode 1 of 5").first.wait_for()
    assert session.target == session.hand.home
    wanted = session.twin.target + np.array([0, 0, 0.025])
    for axis, (more, less) in enumerate(("ik", "jl", "ou")):
        way = (wanted - session.target.position)[axis]
        for _ in range(round(abs(way) / STEP)):
            goal = session.target.position[axis] + np.sign(way) * STEP
            page.keyboard.press(more if way > 0 else less)
            wait_until(lambda: abs(session.target.position[axis] - goal) < 1e-9, page)  # noqa: B023
    type_into(page, "Pitch", 63)
    wait_until(lambda: abs(session.target.pitch - np.radians(63)) < 1e-6, page)
    page.wait_for_timeout(1500)
    page.screenshot(path=tmp_path / "over.png")
    assert app.server.get_clients().copy().popitem()[1].camera.position == pytest.approx(camera)
    assert yellow(page) > 2000

    # Space presses, also after a click on a button, which keeps the focus.
    page.get_by_role("button", name="up O").click()
    page.keyboard.press("Space")
    page.get_by_text("success ✓").first.wait_for()
    wait_until(lambda: not session.hand.pressing, page)
    page.screenshot(path=tmp_path / "pressed.png")
    page.get_by_role("button", name="Stop and keep").click()
    page.get_by_text("1 of 5 episodes kept").first.wait_for()
    page.get_by_text("a success").first.wait_for()
    wait_until(lambda: not session.takes.writing, page)
    info = json.loads((tmp_path / "demos" / "meta" / "info.json").read_text())
    assert info["total_episodes"] == 1

    # What cannot be reached is said, and the slider goes back.
    type_into(page, "Pitch", -20)
    page.get_by_text("The tip cannot reach").first.wait_for()
    wait_until(lambda: app.show.panel.pitch.value > 0, page)

    # Recorded again, discarded, taken back.
    page.get_by_role("button", name="Re-record").click()
    page.get_by_text("recording episode 1 of 5").first.wait_for()
    page.get_by_role("button", name="Discard").click()
    page.get_by_text("0 of 5 episodes kept").first.wait_for()
    seed = session.seed
    page.get_by_role("button", name="Next placement").click()
    wait_until(lambda: session.seed == seed + 1, page)
    assert page.get_by_role("button", name="Undo last").is_disabled()
    wait_until(lambda: not session.takes.writing, page)
    assert not (tmp_path / "demos").exists()
    assert errors == []


def test_handles_and_keys_stay_within_what_is_allowed(app):
    session, scene, panel = app.show.session, app.show.scene, app.show.panel
    home = session.hand.home.position
    (key,) = (
        handle
        for handle in app.server.gui._command_handle_from_uuid.values()
        if handle.label == "Tip up"
    )

    def pull(place, name="/tip", **more):
        return {"type": "TransformControlsUpdateMessage", "name": name, "position": place,
                "wxyz": [0, 1, 0, 0], "owner": "", **more}  # fmt: skip

    with Client(app) as client:
        client.send(CAMERA)  # without it, nobody is there yet
        for wrong in (
            pull([0.2, 0.0]),
            pull(["a", 0, 0]),
            pull([float("nan"), 0, 0]),
            pull(None),
            pull([0.2, 0.1, 0.1], name="/twin"),
            pull([0.2, 0.1, 0.1], name=7),
            {"type": "CommandTriggerMessage", "uuid": "x"},
            {"type": "CommandTriggerMessage", "uuid": panel.start._impl.uuid},
            {"type": "CommandTriggerMessage"},
            {"type": "TransformControlsDragStartMessage", "name": "/tip", "owner": ""},
        ):
            client.send(wrong)
        client.set(panel.gripper, 1e9)
        wait_for(lambda: session.target.opening == 100)
        assert session.target.position == home
        assert not session.recording
        client.send({"type": "CommandTriggerMessage", "uuid": key._impl.uuid})
        wait_for(lambda: session.target.position[2] == home[2] + STEP)
        client.send(pull([0.21, 0.02, 0.12]))
        wait_for(lambda: session.target.position == (0.21, 0.02, 0.12))
        assert scene.handle.wxyz.tolist() == [1, 0, 0, 0]
        # Beyond the limits of the handle is beyond reach: said, and the handle returns.
        client.send(pull([1e6, 0, 0]))
        wait_for(lambda: "cannot reach" in panel.status.content)
        assert session.target.position == (0.21, 0.02, 0.12)
        wait_for(lambda: tuple(scene.handle.position) == (0.21, 0.02, 0.12))
