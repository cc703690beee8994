import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.manipulation.demonstrations.takes import Takes
from prism_motor.manipulation.tasks import find_task, make_environment
from prism_motor.viewer.teleop.session import TeleopSession

SMALL = 24
"""Side of the images, pixels: most tests look at none."""


@pytest.fixture
def teleoperate(tmp_path):
    """Make sessions; those still open at the end are closed."""
    opened = []

    def make(
        folder="demos", suite="so101", task="mouse-click-v0", size=SMALL, cameras=None, **settings
    ):
        environment = make_environment(find_task(suite, task), image_size=size, cameras=cameras)
        takes = Takes(tmp_path / folder, environment)
        opened.append(TeleopSession(environment, takes, **settings))
        return opened[-1]

    yield make
    for session in opened:
        session.takes.hold(False)
        session.close()
