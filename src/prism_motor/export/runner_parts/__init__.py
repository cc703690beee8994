"""The parts of :mod:`runner`, which are copied with it; they import nothing from prism.

============ ======================================================================
rules        what one value may be, and how others are refused
contracts    every field of the contracts of both kinds
networks     ONNX files
clips        latents and what is to be tracked
files        an export: files that belong together
control      measurements, limits, watchdog, the safe posture
simulation   MuJoCo in the robot's place
walking      from commands to joint targets
tracking     from latents to joint targets
============ ======================================================================
"""

from . import clips as clips
from . import contracts as contracts
from . import control as control
from . import files as files
from . import networks as networks
from . import rules as rules
from . import simulation as simulation
from . import tracking as tracking
from . import walking as walking
