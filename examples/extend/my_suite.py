"""Your own manipulation suite: a point on a table must reach a goal."""

import numpy as np

from prism_motor.manipulation import BasicEnvironment, Expert, Observation, Physics
from prism_motor.manipulation.tasks import Suite, Task, register_suite

REACH = Task("my_suite", index=0, name="reach", instruction="reach the goal", horizon=60)
STEP = 0.05  # metres that an action of one moves the point


class PointOnTable(BasicEnvironment):
    state_names, action_names = ("x", "y"), ("x", "y")
    object_names = ("goal_x", "goal_y")
    control_seconds = 0.1

    def place(self, random):  # begin an episode; draw from these random numbers alone
        self.point, self.goal = np.zeros(2), random.uniform(-0.5, 0.5, 2)

    def advance(self, action):  # one control step; True: the task is solved
        self.point = self.point + STEP * action
        return np.linalg.norm(self.goal - self.point) < 0.05

    def observe(self, images):
        return Observation(self.point.astype(np.float32), self.goal.astype(np.float32))

    def physics(self):
        return Physics(position=np.append(self.point, 0.0))

    def commanded_pose(self, before, action):  # where the last step told the hand to be
        return before.position + np.append(STEP * action, 0.0), before.quaternion


class StraightLine(Expert):
    def act(self):
        return np.clip(5 * (self.environment.goal - self.environment.point), -1, 1)


MY_SUITE = register_suite(Suite("my_suite", lambda: [REACH], PointOnTable, StraightLine))
