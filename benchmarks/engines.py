"""Speed and memory of the two engines with the walking task: ratios from one run.

    python benchmarks/engines.py [--quick] [--envs N]

- cpu env/raw: processor time of ``mujoco.rollout`` alone against that of the environment, same
  models, states and targets, one thread.
- gpu env/raw: the same with MuJoCo Warp on the CPU, where it is installed; what is beside physics
  is the task and one more look at all robots whenever some begin anew.
- memory: what a process has grown by after making 4096 environments of ``paper``.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from prism_motor.locomotion.env import make_env
from prism_motor.locomotion.legged import LeggedEnv
from prism_motor.locomotion.tasks import TASKS
from prism_motor.sim.dynamics import Dynamics
from prism_motor.sim.engines import EngineChoice

WARM_UP, BLOCKS = 30, 5


def compare(preset: str, choice: EngineChoice, envs: int, steps: int) -> float:
    """Return the median over blocks of how fast the environment is, relative to its engine alone.

    Each control step of the environment is followed by the same one of a second engine.
    """
    task = TASKS[preset]
    env = make_env(task, envs, engine=choice)
    raw = choice.make(
        env.robot,
        envs,
        timestep=task.simulation.timestep,
        substeps=task.simulation.substeps,
        solver=task.simulation.solver,
    )
    raw.set_dynamics(Dynamics(friction=env.engine.friction, base_mass=env.engine.base_mass))
    generator = torch.Generator().manual_seed(0)
    ratios = []
    for block in range(-1, BLOCKS):  # the first one is for robots to begin to fall
        spent = np.zeros(2)
        for _ in range(steps if block >= 0 else WARM_UP):
            spent += _step(env, raw, 0.3 * torch.randn(envs, 12, generator=generator))
        ratios.append(spent[1] / spent[0])
    return sorted(ratios[1:])[BLOCKS // 2]


def _step(env: LeggedEnv, raw: object, actions: torch.Tensor) -> tuple[float, float]:
    before = env.engine.state_dict()
    middle = env.action_center().clone()
    whole = _timed(lambda: env.step(actions))
    targets = middle + env.cfg.actions.scale * env.last_step.actions[0]
    raw.load_state_dict(before)  # type: ignore[attr-defined]
    return whole, _timed(lambda: raw.step(targets))  # type: ignore[attr-defined]


def _timed(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def resident() -> float:
    """Return the memory of this process, GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e6


def grow(choice: EngineChoice, envs: int) -> None:
    """Print what a process grows by, after a small environment has loaded everything."""
    torch.set_num_threads(1)
    make_env(TASKS["paper"], 8, engine=choice)
    before = resident()
    env = make_env(TASKS["paper"], envs, engine=choice)
    env.step(torch.zeros(envs, 12))
    grown = resident() - before
    print(f"paper {choice.name} memory of {envs} environments {grown:.2f} GB   target < 1.5")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the time")
    parser.add_argument("--envs", type=int, default=256)
    options = parser.parse_args()
    torch.set_num_threads(1)
    choices, targets = [EngineChoice("cpu")], {"cpu": 0.79, "gpu": 0.8}
    if importlib.util.find_spec("mujoco_warp"):
        choices.append(EngineChoice("gpu"))
    else:
        print("gpu not measured: mujoco_warp is not installed")
    with torch.inference_mode():
        for preset in ("laptop", "paper"):
            for choice in choices:
                ratio = compare(preset, choice, options.envs, 10 if options.quick else 40)
                print(
                    f"{preset} {choice.name} env/raw {ratio:.2f}   target >= {targets[choice.name]}"
                )
    for choice in choices:
        process = multiprocessing.get_context("spawn").Process(target=grow, args=(choice, 4096))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
