"""An emulated motor bus of Feetech servos, to which LeRobot connects as to an SO-101.

LeRobot's own ``so101_follower`` and ``so101_leader`` work on it unchanged: a pseudo-terminal speaks
the servos' protocol. From Python::

    from prism_motor.integrations.feetech import FeetechBus, FirstOrderServos

    with FeetechBus(("shoulder_pan", "shoulder_lift"), FirstOrderServos((2047, 2047))) as bus:
        print(bus.port)  # what LeRobot calls --robot.port

For people there is ``prism so101 bus``.
"""

from prism_motor.integrations.feetech.bus import FeetechBus
from prism_motor.integrations.feetech.faults import FAULTS, Fault
from prism_motor.integrations.feetech.servos import Drive, FirstOrderServos, HandledServos, Servos

__all__ = ["FAULTS", "Drive", "Fault", "FeetechBus", "FirstOrderServos", "HandledServos", "Servos"]
