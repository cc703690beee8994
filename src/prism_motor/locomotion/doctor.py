"""Does the GPU engine do on a device what it should? Parity, repeatability, resume and speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from prism_motor._devices import own_device, resolve_device
from prism_motor.locomotion.env import make_env
from prism_motor.locomotion.presets import make_config
from prism_motor.locomotion.tasks import TASKS
from prism_motor.locomotion.trainer import WalkingTrainer
from prism_motor.sim.dynamics import Dynamics
from prism_motor.sim.engine import RolloutEngine
from prism_motor.sim.engines import EngineChoice, resolve_engine
from prism_motor.sim.robots import make_robot
from prism_motor.sim.warp_engine import WarpEngine

ROBOTS = {"g1": (0.001, 10), "quadruped": (0.001, 10), "g1-29": (0.005, 4)}
"""Robots with their physics step (s) and the physics steps per control step."""
LIMITS = (1e-5, 1e-3, 1.0)
"""Largest differences in positions, velocities and foot forces (N) of 99 % of control steps."""
_ROBOTS, _STEPS = 64, 20
"""Robots and control steps of a comparison."""
_SECONDS = 2.0
"""Least time over which speed is measured."""


@dataclass(frozen=True)
class DoctorFinding:
    """One thing that was looked at."""

    check: str
    """What was checked."""
    result: str
    """What was found."""
    ok: bool | None = None
    """Whether it is as it should be; ``None`` where nothing is promised."""


def examine(device: str, envs: int = 0) -> Iterator[DoctorFinding]:
    """Yield what is found about the gpu engine on a device, one check after the other.

    Args:
        device: The device: ``cpu``, ``cuda`` or ``cuda:1``.
        envs: Robots whose speed is measured; 0: 4096 on CUDA, 256 on the CPU.
    """
    device = own_device(resolve_device(device))
    resolve_engine("gpu", device)
    for name in ROBOTS:
        yield _compare(name, device)
    yield _repeat(device)
    yield from _resume(device)
    yield from _measure(device, envs or (4096 if device.startswith("cuda") else 256))


def _standing(engine: RolloutEngine | WarpEngine) -> tuple[np.ndarray, np.ndarray]:
    robot, count = engine.robot, engine.num_envs
    qpos = np.zeros((count, 7 + len(robot.joints)))
    qpos[:, 2], qpos[:, 3], qpos[:, 7:] = robot.stand_height, 1.0, robot.default_pose
    return qpos, np.zeros((count, 6 + len(robot.joints)))


def _targets(engine: RolloutEngine | WarpEngine, random: np.random.Generator) -> np.ndarray:
    shape = (engine.num_envs, len(engine.robot.joints))
    return (engine.robot.default_pose + 0.25 * random.standard_normal(shape)).astype(np.float32)


def _compare(name: str, device: str) -> DoctorFinding:
    """Compare control steps of both engines from the same states."""
    robot, (timestep, substeps) = make_robot(name), ROBOTS[name]
    native = RolloutEngine(robot, _ROBOTS, timestep=timestep, substeps=substeps)
    warp = WarpEngine(robot, _ROBOTS, timestep=timestep, substeps=substeps, device=device)
    random = np.random.default_rng(0)
    dynamics = Dynamics(
        friction=random.uniform(0.35, 1.3, _ROBOTS),
        mass_scale=random.uniform(0.95, 1.05, (_ROBOTS, native.model.nbody - 1)),
        shifted=robot.base,
        shift=random.uniform(-0.02, 0.02, (_ROBOTS, 3)),
    )
    forces = tuple(f"{foot}_force" for foot in robot.feet)
    for engine in (native, warp):
        engine.set_dynamics(dynamics)
        engine.set_state(np.arange(_ROBOTS), *_standing(engine))
    found = []
    for _ in range(_STEPS):
        warp.qpos.copy_(torch.from_numpy(native.qpos.copy()))
        warp.qvel.copy_(torch.from_numpy(native.qvel.copy()))
        native.qpos[:], native.qvel[:] = warp.qpos.cpu().numpy(), warp.qvel.cpu().numpy()
        wanted = _targets(native, random)
        native.step(wanted)
        warp.step(wanted)
        pairs = [
            (warp.qpos, native.qpos),
            (warp.qvel, native.qvel),
            (warp.sensors(forces), native.sensors(forces)),
        ]
        found.append([np.abs(a.cpu().numpy() - b).reshape(_ROBOTS, -1).max(1) for a, b in pairs])
    warp.check()
    sizes = np.quantile(np.array(found), 0.99, axis=(0, 2))
    return DoctorFinding(
        f"control steps of {name} are MuJoCo's",
        f"positions {sizes[0]:.1e}, velocities {sizes[1]:.1e}, foot forces {sizes[2]:.1e} N "
        f"(99 % of {_ROBOTS * _STEPS})",
        bool((sizes < LIMITS).all()),
    )


def _repeat(device: str) -> DoctorFinding:
    """Do the same control steps twice."""
    timestep, substeps = ROBOTS["g1"]
    engine = WarpEngine(
        make_robot("g1"), _ROBOTS, timestep=timestep, substeps=substeps, device=device
    )
    ends = []
    for _ in range(2):
        random = np.random.default_rng(1)
        engine.set_state(np.arange(_ROBOTS), *_standing(engine))
        for _ in range(_STEPS):
            engine.step(_targets(engine, random))
        ends.append(engine.qpos.clone())
    apart = float((ends[0] - ends[1]).abs().max())
    return _exact("the same steps give the same bits", apart, device)


def _resume(device: str) -> Iterator[DoctorFinding]:
    """Go on from a saved environment, and from a saved training."""
    task, choice = TASKS["laptop"], EngineChoice("gpu", device)
    actions = 0.5 * torch.randn(2 * _STEPS, _ROBOTS, 12, generator=torch.Generator().manual_seed(0))
    actions = actions.to(device)
    env = make_env(task, _ROBOTS, seed=1, engine=choice)
    for one in actions[:_STEPS]:
        env.step(one)
    saved = env.state_dict()
    ends = []
    for _ in range(2):
        env.load_state_dict(saved)
        for one in actions[_STEPS:]:
            env.step(one)
        ends.append(env.get_observations()["policy"].clone())
    apart = float((ends[0] - ends[1]).abs().max())
    yield _exact("an environment goes on exactly from a saved state", apart, device)

    config = make_config("laptop", "prism")
    config = replace(config, envs=_ROBOTS, device=device, engine="gpu")
    trainer = WalkingTrainer(config)
    trainer.update()
    kept = trainer.state()
    weights = []
    for _ in range(2):
        trainer.restore(*kept)
        trainer.update()
        weights.append(trainer.state()[0])
    apart = max(
        float((weights[0][name] - weights[1][name]).abs().max())
        for name in weights[0]
        if name.startswith(("actor.", "critic.")) and weights[0][name].is_floating_point()
    )
    yield _exact("a training goes on exactly from a checkpoint", apart, device)


def _exact(check: str, apart: float, device: str) -> DoctorFinding:
    """Judge a difference: promised to be zero on the CPU alone."""
    if apart == 0:
        return DoctorFinding(check, "bit for bit", True)
    promised = not device.startswith("cuda")
    return DoctorFinding(
        check, f"no, they differ by up to {apart:.1e}", False if promised else None
    )


def _measure(device: str, envs: int) -> Iterator[DoctorFinding]:
    """Measure the engine alone, the task on it, and the CPU engine beside it."""
    task = TASKS["laptop"]
    env = make_env(task, envs, seed=1, engine=EngineChoice("gpu", device))
    random = np.random.default_rng(2)
    targets = torch.from_numpy(_targets(env.engine, random)).to(device)
    actions = torch.from_numpy(0.3 * random.standard_normal((envs, 12))).float().to(device)
    engine = _rate(lambda: env.engine.step(targets), envs, device)
    env.reset()
    with torch.inference_mode():
        whole = _rate(lambda: env.step(actions), envs, device)
    on_cpu = make_env(task, envs, seed=1)
    with torch.inference_mode():
        native = _rate(lambda: on_cpu.step(actions.cpu()), envs, "cpu")
    yield DoctorFinding(
        f"speed with {envs} robots of laptop",
        f"engine {engine:,.0f} control steps/s, with the task {whole:,.0f} "
        f"({whole / engine:.2f} of it); cpu engine with the task, one thread: {native:,.0f}",
    )
    if device.startswith("cuda"):
        free, total = torch.cuda.mem_get_info(device)
        yield DoctorFinding("memory in use", f"{(total - free) / 1e9:.1f} of {total / 1e9:.1f} GB")


def _rate(step: Callable[[], object], envs: int, device: str) -> float:
    """Return control steps of all robots per second."""

    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    step()
    wait()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < _SECONDS or steps < 3:
        step()
        wait()
        steps += 1
    return steps * envs / (time.perf_counter() - start)
