import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from prism_motor.cli import main
from prism_motor.viewer.app import App, find_port
from prism_motor.viewer.walking.show import WalkingShow


@pytest.fixture
def taken():
    """A port that someone listens on, as long as the next one is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def reachable(host, port):
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def test_ports_that_are_taken_are_passed_over(taken):
    assert find_port("127.0.0.1", taken) > taken
    assert find_port("127.0.0.1", 0) > 0
    with pytest.raises(ValueError, match="from 0 to 65535"):
        find_port("127.0.0.1", 70_000)
    with pytest.raises(ValueError, match="Cannot listen on 192"):
        find_port("192.0.2.1", 8080)  # an address that no machine has


def test_the_app_walks_in_real_time_on_loopback_alone(make_session, cast):
    session = make_session(0, 1)
    app = App(WalkingShow(session, [top for _, top in cast]), port=0)
    try:
        assert app.url.startswith(f"http://127.0.0.1:{app.port}/?token=")
        assert reachable("127.0.0.1", app.port)
        if sys.platform == "linux":  # there, all of 127.* is this machine
            assert not reachable("127.0.0.2", app.port)
        start = time.perf_counter()
        thread = threading.Thread(target=app.run)
        thread.start()
        while session.time < 1.0:
            assert time.perf_counter() - start < 120
            time.sleep(0.05)
        assert session.time < time.perf_counter() - start + 0.1  # never faster than time itself
        assert all(walker.qpos[0] > 0 for walker in session.walkers)
    finally:
        app.stop()
        thread.join()
    assert not reachable("127.0.0.1", app.port)


def test_the_command_says_where_to_look(cast, taken, capsys):
    main(["play", "g1-prism", "--port", str(taken), "--seconds", "0.3"])
    said = capsys.readouterr().out
    assert said.startswith("Open http://127.0.0.1:")
    assert f"(port {taken} is in use)" in said
    assert "viser" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "No run found at nowhere"),
        (["a", "b", "c"], "One or two policies"),
        (["g1-prism", "--seconds", "0"], "--seconds must be from 0.01 to 86400, got 0"),
        (["g1-prism", "--seconds", "nan"], "got nan"),
        (["g1-prism", "--seconds", "inf"], "got inf"),
        (
            ["g1-prism", "--command", "nan", "0", "0"],
            "--command[0] must be a finite number from -100 to 100, got nan",
        ),
        (["g1-prism", "--command", "0", "1e300", "0"], "got 1e+300"),
        (["g1-prism", "--port", "-1"], "from 0 to 65535"),
        (["g1-prism", "--host", ""], "host is empty"),
        (["g1-prism", "--host", "a..b"], "Cannot listen on a..b"),
        (["g1-prism", "--host", "192.0.2.1"], "Cannot listen on 192.0.2.1"),
    ],
)
def test_what_cannot_be_played_is_said(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["play", *arguments])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_without_viser_the_extra_is_named(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("prism_motor.viewer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    with pytest.raises(SystemExit):
        main(["play", "g1-prism"])
    assert "pip install 'prism-motor[viewer]'" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_ends_cleanly(cast):
    command = [sys.executable, "-m", "prism_motor.cli", "play", "g1-prism", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # Whoever runs the tests in the background may have told them to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert "http://127.0.0.1:" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors
