"""Which engine steps the robots: MuJoCo on the CPU, or MuJoCo Warp on a device.

The two agree to float32: see ``prism doctor``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal

from prism_motor._checks import InputError
from prism_motor._ranges import between
from prism_motor.sim.engine import RolloutEngine
from prism_motor.sim.scene import SOLVER

if TYPE_CHECKING:
    from prism_motor.sim.robots.robot import Robot
    from prism_motor.sim.warp_engine import WarpEngine

    Engine = RolloutEngine | WarpEngine

EngineName = Literal["cpu", "gpu", "auto"]
ContactRoom = Annotated[int, between(0, 10_000)]


@dataclass(frozen=True)
class EngineChoice:
    """An engine and where it computes."""

    name: str = "cpu"
    """``cpu`` or ``gpu``."""
    device: str = "cpu"
    """Torch device of the run; the cpu engine is on the CPU whatever it says."""
    contacts: int = 0
    """Room for contacts per robot in the gpu engine; 0: as many as its geometry can need."""

    @property
    def task_device(self) -> str:
        """Where the engine's states are, and so the task."""
        return self.device if self.name == "gpu" else "cpu"

    def make(
        self,
        robot: Robot,
        num_envs: int,
        *,
        timestep: float,
        substeps: int,
        solver: int = SOLVER,
        threads: int = 1,
        on_host: bool = False,
    ) -> Any:
        """Build the engine.

        Args:
            robot: The robot.
            num_envs: Number of environments.
            timestep: Physics step, s.
            substeps: Physics steps per control step.
            solver: Version of the contact solver.
            threads: Threads of the cpu engine.
            on_host: Whether states are NumPy arrays whatever the engine.
        """
        physics = {"timestep": timestep, "substeps": substeps, "solver": solver}
        if self.name == "cpu":
            return RolloutEngine(robot, num_envs, threads=threads, **physics)
        from prism_motor.sim.warp_engine import WarpEngine

        made = WarpEngine(robot, num_envs, device=self.device, contacts=self.contacts, **physics)
        if not on_host:
            return made
        from prism_motor.sim.host_engine import HostEngine

        return HostEngine(made)


CPU_ENGINE = EngineChoice()
"""The engine that needs nothing but MuJoCo."""


def resolve_engine(name: str, device: str) -> str:
    """Return the engine that a name stands for, after checking that it can be used.

    ``auto`` is gpu on CUDA where MuJoCo Warp is installed, else cpu.

    Args:
        name: ``cpu``, ``gpu`` or ``auto``.
        device: The run's device.
    """
    kind = device.partition(":")[0]
    if name == "auto":
        return "gpu" if kind == "cuda" and find_spec("mujoco_warp") else "cpu"
    if name == "gpu":
        if kind not in ("cpu", "cuda"):
            raise InputError(
                f"engine: gpu computes on cuda, or on cpu to test it, not on {device}. Give "
                "--engine cpu: physics is then on the CPU, and the learner on the device."
            )
        from prism_motor.sim.warp_engine import import_warp

        import_warp()
    return name
