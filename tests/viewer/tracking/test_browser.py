"""A tracking policy in a real browser, and what cannot be played."""

import threading

import numpy as np
import pytest
from websockets.exceptions import InvalidStatus

from prism_motor.cli import main
from prism_motor.runs.shipped import shipped_names
from prism_motor.tracking.domain import TrackingDomain
from prism_motor.viewer.app import App
from tests.viewer.browser import choose, look, note_errors, type_into, wait_until
from tests.viewer.clients import Client
from tests.viewer.clients import wait_until as wait_for


@pytest.fixture
def app(play):
    app = App(play("wave"), port=0)
    thread = threading.Thread(target=app.run)
    thread.start()
    yield app
    assert thread.is_alive()
    app.stop()
    thread.join()


@pytest.mark.slow
def test_the_robot_is_prompted_pushed_and_stopped(app, page):
    session, panel = app.show.session, app.show.panel
    errors = note_errors(page)
    page.goto(app.url)
    page.get_by_text("motion:wave").first.wait_for()
    page.get_by_text("backward map of the next 8 frames of wave").first.wait_for()
    page.get_by_text("upright, last 10 s").wait_for()
    wait_until(lambda: look(page).std() > 5, page)

    # The reference is seen, and is gone without its box.
    page.get_by_label("Pause").check()
    page.get_by_text("paused").wait_for()
    stopped = session.time
    page.wait_for_timeout(1000)
    assert session.time == stopped
    with_ghost = look(page)
    page.get_by_label("Beside the robot").check()
    wait_until(lambda: np.abs(look(page) - with_ghost).max() > 30, page)
    beside = look(page)
    page.get_by_label("Show it").uncheck()
    wait_until(lambda: np.abs(look(page) - beside).max() > 30, page)
    page.get_by_label("Pause").uncheck()

    # A pose.
    choose(page, "Ask for", "a pose")
    wait_until(lambda: session.prompted.prompt.kind == "goal", page)
    type_into(page, "Pose at", 50)
    wait_until(lambda: session.prompted.prompt.seconds > 1, page)
    page.get_by_text("at rest").first.wait_for()

    # A reward.
    panel.view.speed.value = 0.1
    choose(page, "Ask for", "a reward")
    choose(page, "Reward", "move-ego-0-0.3")
    wait_until(lambda: session.prompted.prompt.name == "move-ego-0-0.3", page)
    page.get_by_text("best of 16 latents").first.wait_for()
    page.get_by_text("prompts.safetensors").first.wait_for()

    # Friction, payload and a push.
    type_into(page, "Friction", 0.3)
    wait_until(lambda: session.env.engine.friction[0] == 0.3, page)
    type_into(page, "Payload", 4)
    wait_until(lambda: session.env.engine.base_mass[0] == 4, page)
    page.get_by_role("button", name="left", exact=True).click()
    wait_until(lambda: session.pushed is not None, page)
    page.get_by_text("push left 0.50 m/s").first.wait_for()

    # Reset.
    page.get_by_role("button", name="Reset").click()
    wait_until(lambda: session.pushed is None, page)
    assert errors == []


def test_strangers_stay_out_and_values_stay_in_range(app):
    panel = app.show.panel
    for wrong in ({"token": "x"}, {"origin": "http://evil.example"}, {"host": "evil.example"}):
        with pytest.raises(InvalidStatus):
            Client(app, **wrong)
    with Client(app) as client:
        client.set(panel.motion, "../../etc/passwd")
        client.set(panel.reward, "<script>")
        client.set(panel.kind, 3)
        client.set(panel.pose, 1e9)
        client.set(panel.fade, -5)
        client.set(panel.disturb.payload, 0.7)
        wait_for(lambda: panel.disturb.payload.value == 0.7)
    assert (panel.motion.value, panel.kind.value) == ("wave", "a motion")
    assert panel.reward.value == "stand"
    assert (panel.pose.value, panel.fade.value) == (100, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prompts", "wvae"], "'wvae' is neither a motion nor a reward"),
        (["--prompts", "motion:wvae"], "Did you mean 'wave'?"),
        (["--prompts", "reward:raisearms-x-l"], "Did you mean raisearms-"),
        (["--prompts", "goal:wave@99"], "a pose of it is at 0 to"),
        (["--prompts", "nowhere.npz"], "nowhere.npz"),
        (["--prompts", "reward:move-ego-low0.2-0-0"], "none of the 320 states"),
        (["--command", "1", "0", "0"], "--command is for walking policies"),
    ],
)
def test_what_cannot_be_asked_for_is_said(tracker, words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["play", str(tracker), "--port", "0", *words])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_runs_that_do_not_go_together_are_refused(tracker, capsys, monkeypatch):
    walker = "g1-prism"
    if walker not in shipped_names():
        pytest.skip("not shipped with this version")
    for words, said in (
        ([str(tracker), str(tracker)], "One tracking policy can be played at a time"),
        ([str(tracker), walker], "One tracking policy"),
        ([walker, str(tracker)], "is a tracking run"),
        ([walker, "--prompts", "wave"], "--prompts are for policies that track motions"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["play", *words, "--port", "0"])
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr(TrackingDomain, "player", "")
    with pytest.raises(SystemExit):
        main(["play", str(tracker), "--port", "0"])
    assert "is a tracking run, which cannot be played live" in capsys.readouterr().err


def test_the_command_plays_a_tracking_run(tracker, capsys):
    main(["play", str(tracker), "--port", "0", "--seconds", "0.3", "--prompts", "wave", "bow"])
    assert capsys.readouterr().out.startswith("Open http://127.0.0.1:")
