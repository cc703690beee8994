"""An SO-101 arm in simulation: the twin of the hardware, its scenes and scripted leaders."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.sim.so101.leaders import Leader, make_leader
    from prism_motor.sim.so101.outcome import TwinOutcome
    from prism_motor.sim.so101.placement import Placement
    from prism_motor.sim.so101.twin import FRAME, HOME, Twin
    from prism_motor.sim.so101.units import FEATURES, JOINTS

__all__ = [
    "FEATURES",
    "FRAME",
    "HOME",
    "JOINTS",
    "Leader",
    "Placement",
    "Twin",
    "TwinOutcome",
    "make_leader",
]

__getattr__ = lazy(
    __name__,
    {
        "FEATURES": "units",
        "FRAME": "twin",
        "HOME": "twin",
        "JOINTS": "units",
        "Leader": "leaders",
        "Placement": "placement",
        "Twin": "twin",
        "TwinOutcome": "outcome",
        "make_leader": "leaders",
    },
)
