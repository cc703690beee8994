"""LeRobot's calibration of the emulated SO-101: what its servos hold, and the file to match."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from prism_motor._extras import missing_extra
from prism_motor.integrations.feetech.bus import FeetechBus
from prism_motor.sim.so101.units import tick_ranges

Arm = Literal["follower", "leader"]

_FOLDERS = {"follower": ("robots", "so_follower"), "leader": ("teleoperators", "so_leader")}
"""Where LeRobot keeps the files of each arm, since 0.4.3."""


def calibrate(bus: FeetechBus) -> None:
    """Write the calibration into the servos, so that they agree with the file."""
    bus.calibrate({name: (one.low, one.high) for name, one in tick_ranges().items()})


def calibration() -> dict[str, dict[str, int]]:
    """Return the calibration as LeRobot stores it."""
    return {
        name: {
            "id": one.id,
            "drive_mode": 0,
            "homing_offset": 0,
            "range_min": one.low,
            "range_max": one.high,
        }
        for name, one in tick_ranges().items()
    }


def calibration_file(arm: Arm, name: str) -> Path:
    """Return where LeRobot looks for the calibration of an arm.

    Args:
        arm: Which of the two arms.
        name: What LeRobot calls ``--robot.id`` or ``--teleop.id``.
    """
    try:
        from lerobot.utils.constants import HF_LEROBOT_CALIBRATION
    except ImportError as error:
        raise missing_extra("LeRobot's calibration folder", "so101", error) from error
    return Path(HF_LEROBOT_CALIBRATION).joinpath(*_FOLDERS[arm], f"{name}.json")


def write_calibration(path: Path) -> bool:
    """Write the file, unless another calibration is there; return whether it is there now."""
    text = json.dumps(calibration(), indent=4)
    if path.exists():
        return json.loads(path.read_text()) == json.loads(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True
