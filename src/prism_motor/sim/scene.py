"""A robot on the ground, with the sensors that tasks read."""

from __future__ import annotations

from typing import Any

from prism_motor._extras import missing_extra
from prism_motor.sim.robots.robot import Robot

# The solver needs 2.4 to 3.6 iterations on average; the cap keeps a bad contact from stalling all.
# Without autoreset a diverged simulation shows as NaN and stops training; with it, it goes unseen.
# Shadows fall straight down from a weak light: slanted ones leave stripes on the ground.
_SCENE = """
  <option timestep="{timestep}" integrator="implicitfast" solver="Newton" iterations="5"
    ls_iterations="8"><flag autoreset="disable"/></option>
  <visual>
    <quality shadowsize="2048"/>
    <global offwidth="1280" offheight="960"/>
    <headlight ambient="0.38 0.38 0.38" diffuse="0.22 0.22 0.22" specular="0.05 0.05 0.05"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.93 0.95 0.98" rgb2="0.55 0.68 0.84"
      width="256" height="256"/>
    <texture name="ground" type="2d" builtin="checker" rgb1="0.82 0.84 0.86" rgb2="0.72 0.76 0.80"
      width="256" height="256"/>
    <material name="ground" texture="ground" texrepeat="1 1" texuniform="true" specular="0.1"/>
  </asset>
  <worldbody>
    <geom name="ground" type="plane" size="0 0 0.05" material="ground" contype="1" conaffinity="2"/>
    <light mode="trackcom" directional="true" pos="0 0 3" dir="0 0 -1" diffuse="0.3 0.3 0.3"
      specular="0 0 0"/>
    <light directional="true" castshadow="false" pos="2 -2 3" dir="-0.5 0.6 -0.5"
      diffuse="0.45 0.44 0.42" specular="0.2 0.2 0.2"/>
  </worldbody>
  <sensor>
{sensors}
  </sensor>
</mujoco>"""


def import_mujoco() -> Any:
    """Import MuJoCo (it has no type information) or name the extra that brings it."""
    try:
        import mujoco
    except ImportError as error:
        raise missing_extra("prism_motor.sim", "locomotion", error) from error
    return mujoco


def build_model(robot: Robot, *, timestep: float) -> Any:
    """Compile a robot on a plane into an ``mjModel``.

    Args:
        robot: The robot.
        timestep: Physics step, s.
    """
    return import_mujoco().MjModel.from_xml_string(scene_xml(robot, timestep=timestep))


def scene_xml(robot: Robot, *, timestep: float) -> str:
    """Return the MJCF of a robot on a plane, complete in itself.

    Contact friction is that of the feet, whose geoms have priority over the ground's.
    """
    scene = _SCENE.format(timestep=timestep, sensors="\n".join(_sensors(robot)))
    return robot.xml.replace("</mujoco>", scene)


def _sensors(robot: Robot) -> list[str]:
    """Net contact force on feet and base, frame positions and velocities of feet and knees."""
    lines = [
        f'<contact name="{body}_force" body1="{body}" data="force" reduce="netforce"/>'
        for body in (*robot.feet, robot.base)
    ]
    for body in robot.feet:
        lines += [
            f'<framepos name="{body}_position" objtype="xbody" objname="{body}"/>',
            f'<framelinvel name="{body}_velocity" objtype="xbody" objname="{body}"/>',
        ]
    lines += [
        f'<framepos name="{body}_position" objtype="xbody" objname="{body}"/>'
        for body in robot.knees
    ]
    return lines
