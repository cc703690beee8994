"""Motion clips of the 29-joint G1: their format, where they come from, what is wrong in them."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.tracking.motions.clip import Clip, read_clip, write_clip
    from prism_motor.tracking.motions.library import find_clip, find_clips, shipped_clips
    from prism_motor.tracking.motions.sampling import Motion, make_motion

__all__ = [
    "Clip",
    "Motion",
    "find_clip",
    "find_clips",
    "make_motion",
    "read_clip",
    "shipped_clips",
    "write_clip",
]

__getattr__ = lazy(
    __name__,
    {
        "Clip": "clip",
        "Motion": "sampling",
        "find_clip": "library",
        "find_clips": "library",
        "make_motion": "sampling",
        "read_clip": "clip",
        "shipped_clips": "library",
        "write_clip": "clip",
    },
)
