"""Speed of the velocity task: ratios from one run.

    python benchmarks/locomotion.py [--quick] [--threads N]

- env/raw: environment stepping (rewards, observations, resets, randomisation) against
  ``mujoco.rollout`` alone, same models, threads, states and targets.
- env/async: against Gymnasium's AsyncVectorEnv of Python-stepped simulations with the same task,
  one process a core.
- env/async-bare: the same without any task: no rewards, histories, randomisation. What is left is
  the cost of talking to the processes.
- env/warp: against mujoco_warp on the same CPU, where it is installed.
- train/outside: share of training time that is neither physics nor network passes.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import gymnasium
import numpy as np
import torch

from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.presets import make_config
from prism_motor.locomotion.tasks import TASKS
from prism_motor.locomotion.trainer import WalkingTrainer
from prism_motor.sim.engines import EngineChoice
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model, import_mujoco

mujoco = import_mujoco()
rollout = importlib.import_module("mujoco.rollout")

ENVS = 256
BLOCKS = 9
WARM_UP = 50
"""Control steps before measuring: by then robots have begun to fall and to start anew."""


class TaskEnv(gymnasium.Env):
    """The velocity task for one robot."""

    def __init__(self, preset: str) -> None:
        torch.set_num_threads(1)
        self.env = VelocityEnv(TASKS[preset], 1)
        size = self.env.get_observations()["policy"].shape[1]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (12,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Begin an episode."""
        return self.env.reset()["policy"][0].numpy(), {}

    def step(self, action: np.ndarray) -> tuple:
        """Advance one control step."""
        seen, reward, done, _ = self.env.step(torch.from_numpy(action).unsqueeze(0))
        return seen["policy"][0].numpy(), reward.item(), bool(done), False, {}


class BareEnv(gymnasium.Env):
    """One robot stepped from Python, without any task."""

    def __init__(self, timestep: float, substeps: int) -> None:
        self.robot = make_robot("g1")
        self.model = build_model(self.robot, timestep=timestep)
        self.data = mujoco.MjData(self.model)
        self.substeps = substeps
        size = self.model.nq + self.model.nv
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (12,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Stand in the default pose."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[2] = 0.8
        self.data.qpos[7:] = self.robot.default_pose
        return self._state(), {}

    def step(self, action: np.ndarray) -> tuple:
        """Hold the target for one control step; fall ends the episode."""
        self.data.ctrl[:] = self.robot.default_pose + 0.25 * action
        mujoco.mj_step(self.model, self.data, nstep=self.substeps)
        return self._state(), 0.0, bool(self.data.qpos[2] < 0.5), False, {}

    def _state(self) -> np.ndarray:
        return np.concatenate([self.data.qpos, self.data.qvel])


Engine = Callable[[np.ndarray, np.ndarray], float]
"""Does one control step from given states with given targets; returns the seconds it took."""


def compare(preset: str, threads: int, make_engine: Callable[..., Engine], seconds: float) -> Rates:
    """Return control steps per second of the environment and of an engine that repeats its physics.

    Each control step of the environment is followed by the same one of the engine, so that other
    load on the machine strikes both. Of some blocks of time, the one with the median ratio counts.
    """
    env = VelocityEnv(TASKS[preset], ENVS, threads=threads)
    engine = make_engine(env, threads)
    generator = torch.Generator().manual_seed(0)

    def step() -> tuple[float, float]:
        actions = 0.3 * torch.randn(ENVS, 12, generator=generator)
        states = env.engine.state_dict()["state"]
        middle = env.reference if env.cfg.actions.on_reference else env.default_pose
        start = time.perf_counter()
        env.step(actions)
        spent = time.perf_counter() - start
        assert env.last_step is not None
        targets = middle + env.cfg.actions.scale * env.last_step.actions[0]
        return spent, engine(states, targets.double().numpy())

    for _ in range(WARM_UP):
        step()
    blocks = []
    for _ in range(BLOCKS):
        steps, spent, start = 0, np.zeros(2), time.perf_counter()
        while time.perf_counter() - start < seconds / BLOCKS:
            spent += step()
            steps += ENVS
        blocks.append(Rates(*(steps / spent)))
    return sorted(blocks, key=lambda block: block.ratio)[BLOCKS // 2]


class Rates(NamedTuple):
    """Control steps per second."""

    environment: float
    engine: float

    @property
    def ratio(self) -> float:
        """How many times as fast the environment is."""
        return self.environment / self.engine


def raw_physics(env: VelocityEnv, threads: int) -> Engine:
    """``mujoco.rollout`` alone, with the environment's models and arrays allocated once."""
    model, steps = env.engine.model, env.engine.substeps
    data = [mujoco.MjData(model) for _ in range(threads)]
    pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
    control = np.empty((ENVS, steps, model.nu))
    trajectory = np.empty((ENVS, steps, 1 + model.nq + model.nv))
    readings = np.empty((ENVS, steps, model.nsensordata))

    def step(states: np.ndarray, targets: np.ndarray) -> float:
        control[:] = targets[:, None]
        start = time.perf_counter()
        pool.rollout(
            env.engine._models, data, states, control, skip_checks=True, nstep=steps,
            state=trajectory, sensordata=readings,
        )  # fmt: skip
        return time.perf_counter() - start

    return step


def warp_physics(env: VelocityEnv, threads: int) -> Engine:
    """MuJoCo Warp on the CPU, which has one thread there."""
    simulation, nq = env.cfg.simulation, env.engine.model.nq
    warp = EngineChoice("gpu").make(
        env.robot,
        ENVS,
        timestep=simulation.timestep,
        substeps=simulation.substeps,
        solver=simulation.solver,
    )

    def step(states: np.ndarray, targets: np.ndarray) -> float:
        warp.qpos.copy_(torch.from_numpy(states[:, 1 : 1 + nq]))
        warp.qvel.copy_(torch.from_numpy(states[:, 1 + nq :]))
        start = time.perf_counter()
        warp.step(targets)
        return time.perf_counter() - start

    return step


def async_rate(make: Callable[[], gymnasium.Env], processes: int, seconds: float) -> float:
    """Return the rate of Gymnasium's asynchronous vector environment."""
    env = gymnasium.vector.AsyncVectorEnv([make] * processes)
    env.reset()
    rng = np.random.default_rng(0)
    shape = (processes, 12)
    try:
        steps, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            env.step(0.3 * rng.standard_normal(shape).astype(np.float32))
            steps += processes
        return steps / spent
    finally:
        env.close()


def training_shares(threads: int, updates: int) -> dict[str, float]:
    """Return the mean share of each part of an update."""
    from dataclasses import replace

    trainer = WalkingTrainer(replace(make_config("laptop", "prism"), threads=threads))
    rows = [trainer.update() for _ in range(updates + 1)][1:]
    names = ("time/physics", "time/policy", "time/update")
    return {name: float(np.mean([row[name] for row in rows])) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the time")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    seconds = 4.0 if options.quick else 16.0
    print(f"{ENVS} robots, {options.threads} threads, mujoco {mujoco.__version__}")
    for preset in ("laptop", "g1"):
        raw = compare(preset, options.threads, raw_physics, seconds)
        whole = raw.environment
        print(f"{preset}: environment {whole:,.0f} control steps/s, raw physics {raw.engine:,.0f}")
        print(f"{preset} env/raw {raw.ratio:.2f}   target >= 0.75")
        python = async_rate(partial(TaskEnv, preset), options.threads, seconds / 2)
        print(f"{preset} env/async {whole / python:.1f}   target >= 3")
        simulation = TASKS[preset].simulation
        make_bare = partial(BareEnv, simulation.timestep, simulation.substeps)
        bare = async_rate(make_bare, options.threads, seconds / 2)
        print(f"{preset} env/async-bare {whole / bare:.1f}")
        if importlib.util.find_spec("mujoco_warp") is None:
            print(f"{preset} env/warp not measured: mujoco_warp is not installed")
        else:
            warp = compare(preset, options.threads, warp_physics, seconds)
            print(f"{preset} env/warp {warp.ratio:.1f}   target >= 3")
    shares = training_shares(options.threads, 3 if options.quick else 12)
    outside = 1 - sum(shares.values())
    parts = ", ".join(f"{name.removeprefix('time/')} {value:.0%}" for name, value in shares.items())
    print(f"train/outside {outside:.2f}   target <= 0.15   ({parts})")


if __name__ == "__main__":
    main()
