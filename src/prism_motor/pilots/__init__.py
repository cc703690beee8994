"""Pilots: blinded, planned trials of policies on any robot that LeRobot knows."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.pilots.config import PilotConfig
    from prism_motor.pilots.labelling import look_again
    from prism_motor.pilots.layout import PilotError
    from prism_motor.pilots.plan import PilotPlan, read_plan
    from prism_motor.pilots.planning import make_plan
    from prism_motor.pilots.records import Trial, TrialBook
    from prism_motor.pilots.report import report_pilot
    from prism_motor.pilots.runner import run_pilot
    from prism_motor.pilots.scene import JudgesTrials, PlacesThings

__all__ = [
    "JudgesTrials",
    "PilotConfig",
    "PilotError",
    "PilotPlan",
    "PlacesThings",
    "Trial",
    "TrialBook",
    "look_again",
    "make_plan",
    "read_plan",
    "report_pilot",
    "run_pilot",
]

# Plans and trials can be read without LeRobot.
__getattr__ = lazy(
    __name__,
    {
        "JudgesTrials": "scene",
        "PilotConfig": "config",
        "PilotError": "layout",
        "PilotPlan": "plan",
        "PlacesThings": "scene",
        "Trial": "records",
        "TrialBook": "records",
        "look_again": "labelling",
        "make_plan": "planning",
        "read_plan": "plan",
        "report_pilot": "report",
        "run_pilot": "runner",
    },
)
