"""Speed of the velocity task: ratios from one run.

    python benchmarks/locomotion.py [--quick] [--threads N]

- env/raw: environment stepping (rewards, observations, resets, randomisation) against
  ``mujoco.rollout`` alone, same model, threads, targets and number of robots.
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
import os
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import gymnasium
import numpy as np
import torch

from prism.learn.presets import make_config
from prism.learn.trainer import Trainer
from prism.locomotion.env import VelocityEnv
from prism.locomotion.presets import TASKS
from prism.sim.engine import RolloutEngine
from prism.sim.robots import make_robot
from prism.sim.scene import build_model, import_mujoco

mujoco = import_mujoco()

ENVS = 256


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


def rate(step: Callable[[], object], count: int, seconds: float) -> float:
    """Return control steps per second of a function that does ``count`` of them."""
    step()
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        step()
        done += count
    return done / spent


def environment_rates(preset: str, threads: int, seconds: float) -> tuple[float, float]:
    """Return (environment, raw physics) rates, measured in alternation."""
    task = TASKS[preset]
    env = VelocityEnv(task, ENVS, threads=threads)
    raw = RolloutEngine(
        env.robot,
        ENVS,
        timestep=task.simulation.timestep,
        substeps=task.simulation.substeps,
        threads=threads,
        dynamics=env.engine.dynamics,
    )
    generator = torch.Generator().manual_seed(0)

    def step_env() -> None:
        env.step(0.3 * torch.randn(ENVS, 12, generator=generator))

    def step_raw() -> None:
        # The same states and targets: what the environment's robots are going through.
        raw.qpos[:], raw.qvel[:] = env.engine.qpos, env.engine.qvel
        raw.step(env.engine._targets)

    whole, physics = [], []
    for _ in range(4):
        whole.append(rate(step_env, ENVS, seconds / 4))
        physics.append(rate(step_raw, ENVS, seconds / 4))
    return float(np.median(whole)), float(np.median(physics))


def async_rate(make: Callable[[], gymnasium.Env], processes: int, seconds: float) -> float:
    """Return the rate of Gymnasium's asynchronous vector environment."""
    env = gymnasium.vector.AsyncVectorEnv([make] * processes)
    env.reset()
    rng = np.random.default_rng(0)
    shape = (processes, 12)
    try:
        return rate(
            lambda: env.step(0.3 * rng.standard_normal(shape).astype(np.float32)),
            processes,
            seconds,
        )
    finally:
        env.close()


def warp_rate(preset: str, seconds: float) -> float | None:
    """Return the rate of mujoco_warp on the CPU, or ``None`` where it is not installed."""
    try:
        mjw, wp = importlib.import_module("mujoco_warp"), importlib.import_module("warp")
    except ImportError:
        return None
    simulation = TASKS[preset].simulation
    robot = make_robot("g1")
    model = build_model(robot, timestep=simulation.timestep)
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7:] = 0.8, robot.default_pose
    data.ctrl[:] = robot.default_pose
    with wp.ScopedDevice("cpu"):
        warp_model = mjw.put_model(model)
        warp_data = mjw.put_data(model, data, nworld=ENVS)

        def step() -> None:
            for _ in range(simulation.substeps):
                mjw.step(warp_model, warp_data)

        return rate(step, ENVS, seconds)


def training_shares(threads: int, iterations: int) -> dict[str, float]:
    """Return the mean share of each part of an iteration."""
    from dataclasses import replace

    trainer = Trainer(replace(make_config("laptop", "gated"), threads=threads))
    rows = [trainer.iterate() for _ in range(iterations + 1)][1:]
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
        whole, raw = environment_rates(preset, options.threads, seconds)
        print(f"{preset}: environment {whole:,.0f} control steps/s, raw physics {raw:,.0f}")
        print(f"{preset} env/raw {whole / raw:.2f}   target >= 0.75")
        python = async_rate(partial(TaskEnv, preset), options.threads, seconds / 2)
        print(f"{preset} env/async {whole / python:.1f}   target >= 3")
        simulation = TASKS[preset].simulation
        make_bare = partial(BareEnv, simulation.timestep, simulation.substeps)
        bare = async_rate(make_bare, options.threads, seconds / 2)
        print(f"{preset} env/async-bare {whole / bare:.1f}")
        warp = warp_rate(preset, seconds / 2)
        if warp is None:
            print(f"{preset} env/warp not measured: mujoco_warp is not installed")
        else:
            print(f"{preset} env/warp {whole / warp:.1f}   target >= 3")
    shares = training_shares(options.threads, 3 if options.quick else 12)
    outside = 1 - sum(shares.values())
    parts = ", ".join(f"{name.removeprefix('time/')} {value:.0%}" for name, value in shares.items())
    print(f"train/outside {outside:.2f}   target <= 0.15   ({parts})")


if __name__ == "__main__":
    main()
