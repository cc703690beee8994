"""Clicks of the mouse on the table: what is said when they cannot be heard."""

import subprocess
import sys
from pathlib import Path

import pytest

from prism_motor._checks import InputError


def test_without_evdev_the_extra_is_named():
    code = (
        "import sys; sys.modules['evdev'] = None\n"
        "from pathlib import Path\n"
        "from prism_motor.pilots.clicks import MouseClicks\n"
        "try:\n    MouseClicks(Path('/dev/null'))\n"
        "except ImportError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "prism-motor[clicks]" in said.stdout


def test_what_is_no_mouse_is_one_message(tmp_path):
    pytest.importorskip("evdev", reason="evdev is not installed (extra clicks)")
    from prism_motor.pilots.clicks import MouseClicks

    with pytest.raises(InputError, match=r"there is no .*event99.*by-id"):
        MouseClicks(tmp_path / "event99")
    with pytest.raises(InputError, match="is no input device"):
        MouseClicks(Path("/dev/null"))
