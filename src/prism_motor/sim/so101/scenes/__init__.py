"""What lies on the table in front of the arm, by task."""

from prism_motor.sim.so101.scenes.cube import PushCube
from prism_motor.sim.so101.scenes.keyboard import PressKey
from prism_motor.sim.so101.scenes.mouse import MouseClick
from prism_motor.sim.so101.scenes.scene import Scene

SCENES: dict[str, Scene] = {scene.name: scene for scene in (MouseClick(), PressKey(), PushCube())}
"""Scenes by the name of their task, in the order of the tasks' numbers."""
