"""``prism teleop`` on the command line; the session is tested in tests/viewer/teleop."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.cli import main


def error_of(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["teleop", *map(str, words)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def test_it_serves_and_ends(tmp_path, capsys):
    out = tmp_path / "demos"
    main(["teleop", str(out), "--port", "0", "--seconds", "0.5", "--image-size", "16"])
    said = capsys.readouterr().out
    assert said.startswith("Open http://127.0.0.1:")
    assert said.endswith("No episode was kept.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "mouse-click"], "Did you mean 'mouse-click-v0'?"),
        (["--servos", "hard"], "invalid choice"),
        (["--episodes", "0"], "--episodes must be from 1"),
        (["--image-size", "8"], "--image-size must be from 16"),
        (["--seed", "-1"], "--seed must be from 0"),
        (["--port", "70000"], "--port must be from 0 to 65535"),
        (["--host", "nowhere.invalid"], "Cannot listen on nowhere.invalid"),
        (["--seconds", "nan"], "--seconds must be"),
    ],
)
def test_mistakes_are_said_before_anything_starts(tmp_path, words, said, capsys):
    assert said in error_of(capsys, tmp_path / "demos", *words)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_refused(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("x")
    assert "was not recorded with prism teleop" in error_of(capsys, tmp_path, "--port", 0)


@pytest.mark.parametrize(
    ("package", "extra"), [("viser", "viewer"), ("mujoco", "so101"), ("lerobot", "manipulation")]
)
def test_missing_packages_name_their_extra(tmp_path, package, extra):
    # Only this package is hidden: others find what they need.
    code = f"""
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {package!r} else real(name, *more)
sys.modules[{package!r}] = None
from prism_motor.cli import main
main(["teleop", {str(tmp_path / "demos")!r}, "--port", "0", "--seconds", "0.1"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'prism-motor[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_cleanly(tmp_path):
    command = [sys.executable, "-m", "prism_motor.cli", "teleop", str(tmp_path / "demos")]
    with subprocess.Popen(
        [*command, "--port", "0", "--image-size", "16"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Open http://")
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "No episode was kept." in said
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
