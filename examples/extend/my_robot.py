"""Your own robot: a one-legged hopper from an MJCF file."""

from pathlib import Path

from prism_motor.sim import Robot, register_robot


def hopper() -> Robot:
    """Read the model; motors become position servos with these gains."""
    return Robot.from_mjcf(
        Path(__file__).with_name("hopper.xml"),
        name="hopper",
        feet=("foot",),
        default_pose={"hip_pitch": -0.5, "knee": 1.0, "ankle": -0.5},
        stiffness=60.0,
        damping=1.5,
        mirror={
            "hip_roll": "-hip_roll",
            "hip_pitch": "hip_pitch",
            "knee": "knee",
            "ankle": "ankle",
        },
    )


register_robot("hopper", hopper)
