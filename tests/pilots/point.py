"""A kinematic robot: a point that moves towards where it is told, and a target in its way.

Positions are -100 to 100. The camera looks from above: the target is red.
"""

import time
from functools import cached_property
from pathlib import Path

import numpy as np
from lerobot.robots import Robot

from tests.pilots.config_point import PointArmConfig, PointSimConfig

SPEED = 8.0
"""Longest way of one control step."""
NEAR = 6.0
"""Distance to the target that counts as reached."""


class PointArm(Robot):
    config_class = PointArmConfig
    name = "point_arm"

    def __init__(self, config):
        super().__init__(config)
        self.config, self.cameras = config, {"top": None}
        self.position = np.zeros(2)
        self.target = np.array([40.0, 40.0])
        self.connected, self.seen = False, 0

    @cached_property
    def observation_features(self):
        size = self.config.size
        return {"x.pos": float, "y.pos": float, "top": (size, size, 3)}

    @cached_property
    def action_features(self):
        return {"x.pos": float, "y.pos": float}

    @property
    def is_connected(self):
        return self.connected

    @property
    def is_calibrated(self):
        return self.config.calibrated

    def connect(self, calibrate=True):
        if self.config.port and not Path(self.config.port).exists():
            raise ConnectionError(f"Could not connect on port '{self.config.port}'.\nIs it there?")
        self.connected = True

    def calibrate(self):
        pass

    def configure(self):
        pass

    def get_observation(self):
        self.seen += 1
        time.sleep(self.config.pause)
        if self.seen == self.config.fails_at:
            raise ConnectionError("There is no status packet!")
        size = self.config.size
        image = np.full((size, size, 3), 20, np.uint8)
        grid = np.linspace(-100, 100, size)
        away = np.hypot(grid[None] - self.target[0], grid[:, None] - self.target[1])
        image[away < 15] = (255, 0, 0)
        return {"x.pos": self.position[0], "y.pos": self.position[1], "top": image}

    def send_action(self, action):
        way = np.array([action["x.pos"], action["y.pos"]]) - self.position
        length = np.linalg.norm(way)
        self.position += way * min(1.0, SPEED / length if length else 1.0)
        return action

    def disconnect(self):
        self.connected = False


class PointSim(PointArm):
    config_class = PointSimConfig
    name = "point_sim"

    def place(self, seed):
        self.target = np.random.default_rng(seed).uniform(-80, 80, 2)
        self.reached = False
        return {"target": self.target.tolist()}

    def outcome(self):
        self.reached |= bool(np.linalg.norm(self.position - self.target) < NEAR)
        return {
            "success": self.reached,
            "distance": float(np.linalg.norm(self.position - self.target)),
        }
