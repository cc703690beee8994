"""Speed of the 29-joint G1: ratios from one run.

    python benchmarks/tracking.py [--quick] [--threads N]

- bodies/raw: batched stepping and what is seen of all 31 bodies, against ``mujoco.rollout`` alone;
  same model, threads, states and targets.
- env/raw: the same of the whole environment of a preset: observations with history, what is
  punished, episodes that end and begin.
- bodies: their part of a control step.
- self-collision: physics with it against physics without.
- sensors: physics with 124 frame sensors, which would give the bodies one physics step late.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from prism_motor.sim.engine import RolloutEngine
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import compile_spec, import_mujoco, make_scene
from prism_motor.tracking.bodies import ROBOT, observe_bodies, read_bodies
from prism_motor.tracking.domain import TRACKING
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.motions.library import find_clip
from prism_motor.tracking.motions.sampling import make_motion
from prism_motor.tracking.presets import make_config
from prism_motor.tracking.references import load_references

mujoco = import_mujoco()
rollout = importlib.import_module("mujoco.rollout")

TIMESTEP, SUBSTEPS = 0.005, 4
BLOCKS = 9
FRAME = ("POS", "QUAT", "LINVEL", "ANGVEL")


class Raw:
    """``mujoco.rollout`` alone, with its arrays allocated once."""

    def __init__(self, model: Any, envs: int, threads: int) -> None:
        self.models = [model] * envs
        self.data = [mujoco.MjData(model) for _ in range(threads)]
        self.pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        self.control = np.empty((envs, SUBSTEPS, model.nu))
        self.states = np.empty((envs, SUBSTEPS, 1 + model.nq + model.nv))
        self.readings = np.empty((envs, SUBSTEPS, model.nsensordata))

    def step(self, states: np.ndarray, targets: np.ndarray) -> float:
        """Do one control step and return the seconds that it took."""
        self.control[:] = targets[:, None]
        start = time.perf_counter()
        self.pool.rollout(
            self.models, self.data, states, self.control, skip_checks=True, nstep=SUBSTEPS,
            state=self.states, sensordata=self.readings,
        )  # fmt: skip
        return time.perf_counter() - start


class Bodies:
    """Robots that start anew in a motion every half second, as in tracking."""

    def __init__(self, envs: int, threads: int) -> None:
        self.engine = RolloutEngine(
            make_robot(ROBOT), envs, timestep=TIMESTEP, substeps=SUBSTEPS, threads=threads
        )
        self.motion = make_motion(find_clip("walk-forward"))
        self.rng = np.random.default_rng(0)
        self.steps = 0

    def targets(self) -> np.ndarray:
        """Return joint targets near where the joints are; starts episodes where they are due."""
        if self.steps % 25 == 0:
            envs = np.arange(self.engine.num_envs)
            frames = self.rng.integers(len(self.motion), size=len(envs))
            self.engine.set_state(envs, self.motion.qpos[frames], self.motion.qvel[frames])
        self.steps += 1
        return self.engine.qpos[:, 7:] + 0.1 * self.rng.standard_normal((self.engine.num_envs, 29))

    def step(self, targets: np.ndarray) -> tuple[float, float]:
        """Do one control step; return the seconds of all of it, and those of the bodies."""
        start = time.perf_counter()
        self.engine.step(targets)
        middle = time.perf_counter()
        seen = observe_bodies(read_bodies(self.engine))
        end = time.perf_counter()
        assert seen.shape == (self.engine.num_envs, 463)
        return end - start, end - middle


class Whole:
    """The environment of a preset, under targets near where the joints are."""

    def __init__(self, preset: str, envs: int, threads: int) -> None:
        overrides = {"task.clips": ["walk-forward", "squat"]}
        task = TRACKING.prepare(make_config(preset, "mlp", overrides=overrides)).task
        self.env = TrackingEnv(task, load_references(task), envs, threads=threads)
        self.units = torch.tensor(task.units)
        self.default = torch.tensor(self.env.robot.default_pose)

    def step(self, raw: Raw) -> tuple[float, float]:
        """Do one control step in both; return the seconds of each."""
        engine = self.env.engine
        near = torch.from_numpy(engine.qpos[:, 7:]) + 0.1 * torch.randn(self.env.envs, 29)
        actions = ((near - self.default) / self.units).clamp(-1, 1)
        targets = (self.default + self.units * actions).numpy()
        states = engine.state_dict()["state"]
        start = time.perf_counter()
        self.env.step(actions)
        return time.perf_counter() - start, raw.step(states, targets)


def median(block: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the block with the median ratio of its first two times."""
    blocks = [block() for _ in range(BLOCKS)]
    return sorted(blocks, key=lambda times: times[1] / times[0])[BLOCKS // 2]


def variant(*, collide: bool = True, sensors: bool = False) -> Any:
    """Compile the robot without self-collision, or with sensors of all frames."""
    spec = make_scene(make_robot(ROBOT), timestep=TIMESTEP)
    for geom in spec.geoms:
        if not collide and geom.name != "ground" and geom.contype:
            geom.contype, geom.conaffinity = 2, 1
    for body in spec.bodies[1:] if sensors else ():
        for kind in FRAME:
            spec.add_sensor(
                name=f"{body.name} {kind}", type=getattr(mujoco.mjtSensor, f"mjSENS_FRAME{kind}"),
                objtype=mujoco.mjtObj.mjOBJ_XBODY, objname=body.name,
            )  # fmt: skip
    return compile_spec(spec, ROBOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the time")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    seconds = (2.0 if options.quick else 8.0) / BLOCKS
    print(f"{options.threads} threads, mujoco {mujoco.__version__}")
    for envs in (64, 512):
        env = Bodies(envs, options.threads)
        raw = Raw(env.engine.model, envs, options.threads)

        def ours(env: Bodies = env, raw: Raw = raw) -> np.ndarray:
            """Step both in turn, so that other load on the machine strikes both."""
            spent, start = np.zeros(3), time.perf_counter()
            while time.perf_counter() - start < seconds:
                targets = env.targets()
                states = env.engine.state_dict()["state"]
                whole, bodies = env.step(targets)
                spent += whole, raw.step(states, targets), bodies
            return spent

        whole, alone, bodies = median(ours)
        print(f"{envs} robots: bodies/raw {alone / whole:.2f}   target >= 0.7   "
              f"(bodies {bodies / whole:.0%} of a step)")  # fmt: skip
    for preset in ("laptop", "paper"):
        whole_env = Whole(preset, 256, options.threads)
        raw = Raw(whole_env.env.engine.model, 256, options.threads)

        def both(env: Whole = whole_env, raw: Raw = raw) -> np.ndarray:
            spent, start = np.zeros(2), time.perf_counter()
            while time.perf_counter() - start < seconds:
                spent += env.step(raw)
            return spent

        whole, alone = median(both)
        print(f"{preset}, 256 robots: env/raw {alone / whole:.2f}   target >= 0.7")
    for name, model in (
        ("no self-collision", variant(collide=False)),
        ("with frame sensors", variant(sensors=True)),
    ):
        env = Bodies(64, options.threads)
        pair = [Raw(one, 64, options.threads) for one in (variant(), model)]

        def compare(env: Bodies = env, pair: list[Raw] = pair) -> np.ndarray:
            spent, start = np.zeros(2), time.perf_counter()
            while time.perf_counter() - start < seconds:
                targets = env.targets()
                states = env.engine.state_dict()["state"]
                spent += [one.step(states, targets) for one in pair]
                env.step(targets)
            return spent

        with_it, other = median(compare)
        print(f"physics {name}: {other / with_it:.2f} of the time")


if __name__ == "__main__":
    main()
