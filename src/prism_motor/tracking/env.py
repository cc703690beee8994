"""Whole robots that begin in clips and act; what they are paid is up to the learner.

A step holds the drives' targets, pushes who is due, measures what is punished, ends episodes and
begins new ones. Nothing here loops over robots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.runs.checkpoints import select
from prism_motor.sim.dynamics import Dynamics
from prism_motor.sim.engines import CPU_ENGINE, EngineChoice
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import kinematics, read_bodies
from prism_motor.tracking.metrics import Upright
from prism_motor.tracking.observations import Observer, read_frames

if TYPE_CHECKING:
    from prism_motor.sim.kinematics import Bodies
    from prism_motor.tracking.references import References
    from prism_motor.tracking.task import TrackingTask

CONTACT = 1.0
"""Force above which a body counts as touching something, N."""
SOFT_LIMIT = 0.95
"""Share of a joint's range beyond which it is punished."""
ACTION_FACTOR = 5.0
"""Factor on actions in the punishment of their changes."""


@dataclass(frozen=True)
class TrackingStep:
    """What a step led to, before any reset."""

    terms: Tensor
    """Raw terms of the auxiliary reward (N, terms), in the order of ``AuxiliaryConfig``."""
    upright: Tensor
    """Which robots stand (N,)."""
    ends: Tensor
    """Which episodes ended with this step (N,)."""
    bodies: Bodies
    """All bodies."""
    qpos: np.ndarray
    """Positions (N, 7 + joints)."""
    qvel: np.ndarray
    """Velocities (N, 6 + joints)."""


class TrackingEnv:
    """A batch of whole robots.

    Args:
        task: The task, with its units.
        references: The clips that episodes begin in.
        envs: Robots.
        seed: Seed of everything random.
        threads: Simulation threads.
        engine: What steps the robots; the task itself computes on the CPU.

    Attributes:
        observations: What is seen now (N, size).
        applied: Actions of the last step (N, joints).
        clocks: Control steps since each episode began (N,).
        frame: Frame of all clips at which each episode began (N,).
        priorities: How often an episode begins in each clip.
    """

    def __init__(
        self,
        task: TrackingTask,
        references: References,
        envs: int,
        *,
        seed: int = 0,
        threads: int = 1,
        engine: EngineChoice = CPU_ENGINE,
    ) -> None:
        if not task.units:
            raise InputError("TrackingEnv: task.units is empty; prepare the task first.")
        self.task, self.references, self.envs = task, references, envs
        self.layout = task.layout
        self.generator = torch.Generator().manual_seed(seed)
        robot = make_robot(task.robot)
        self.robot = robot
        self.engine = engine.make(
            robot,
            envs,
            timestep=task.timestep,
            substeps=task.substeps,
            solver=task.solver,
            threads=threads,
            on_host=True,
        )
        self._default = torch.tensor(robot.default_pose)
        self._units = torch.tensor(task.units, dtype=torch.float64)
        low, high = torch.from_numpy(self.engine.model.jnt_range[1:]).T
        middle, half = (low + high) / 2, (high - low) / 2
        self._soft = (middle - SOFT_LIMIT * half).numpy(), (middle + SOFT_LIMIT * half).numpy()
        names = robot.joint_names
        self._ankle_rolls = [names.index(f"{side}_ankle_roll") for side in ("left", "right")]
        self._feet = [kinematics().names.index(foot) for foot in robot.feet]
        self._foot_forces = tuple(f"{foot}_force" for foot in robot.feet)
        self._other_forces = tuple(f"{body}_force" for body in (robot.base, *robot.touching))
        self._upright = Upright()
        self.engine.set_dynamics(self._draw_dynamics())
        # What later steps depend on, then the first episodes.
        joints = len(robot.joints)
        self.observer = Observer(
            self.layout, envs, noise=task.randomisation.noise, generator=self.generator
        )
        self.clocks = torch.zeros(envs, dtype=torch.long)
        self.frame = torch.zeros(envs, dtype=torch.long)
        self.offsets = torch.zeros(envs, joints, dtype=torch.float64)
        self.applied = self.last_actions = torch.zeros(envs, joints)
        self._push_in = torch.zeros(envs, dtype=torch.long)
        self._down_for = torch.zeros(envs, dtype=torch.long)
        self.priorities = torch.ones(len(references.names), dtype=torch.float64)
        self._begin(torch.arange(envs))
        self.observations = self._observe(read_bodies(self.engine))

    # --- stepping ---

    def step(
        self, actions: Tensor, judge: Callable[[TrackingStep], Tensor] | None = None
    ) -> TrackingStep:
        """Advance all robots by one control step; ended episodes begin anew.

        Args:
            actions: Actions (N, joints), clamped to -1 and 1.
            judge: Says which further episodes end with this step (N,), before new ones begin.
        """
        previous = self.last_actions
        self.applied = self.last_actions = actions.clamp(-1, 1).float().cpu()
        self.engine.step((self._default + self.offsets + self._units * self.applied).numpy())
        self._push()
        self.clocks += 1
        bodies = read_bodies(self.engine)
        upright = self.stands(bodies)
        outcome = TrackingStep(
            terms=self._terms(bodies, previous),
            upright=upright,
            ends=self._ended(upright),
            bodies=bodies,
            qpos=self.engine.qpos.copy(),
            qvel=self.engine.qvel.copy(),
        )
        if judge is not None:
            outcome = replace(outcome, ends=outcome.ends | judge(outcome))
        finished = outcome.ends.nonzero()[:, 0]
        if len(finished):
            self._begin(finished)
            bodies = read_bodies(self.engine)
        self.observations = self._observe(bodies)
        return outcome

    def _observe(self, bodies: Bodies) -> Tensor:
        frames = read_frames(self.engine.qpos, self.engine.qvel, bodies, self.layout)
        seen = frames.joint_positions - self.offsets.float()
        return self.observer.observe(replace(frames, joint_positions=seen), self.last_actions)

    def stands(self, bodies: Bodies | None = None) -> Tensor:
        """Return which robots are upright now (N,)."""
        gravity = -(bodies or read_bodies(self.engine)).rotation[2, :, 0].T
        return torch.from_numpy(self._upright(self.engine.qpos[:, 2], gravity))

    def _ended(self, upright: Tensor) -> Tensor:
        starts = self.task.starts
        late = self.clocks > self.task.episode_steps
        if starts.after_fall is None:
            return late
        self._down_for = torch.where(upright, 0, self._down_for + 1)
        return late | (self._down_for > round(starts.after_fall / self.task.control_dt))

    def _terms(self, bodies: Bodies, previous: Tensor) -> Tensor:
        """Return the raw terms of the auxiliary reward (N, 6)."""
        engine = self.engine
        joints = engine.qpos[:, 7:]
        change = ACTION_FACTOR * (self.last_actions - previous)
        # MuJoCo reports the force on the ground.
        forces = -engine.sensors(self._foot_forces)  # (N, feet, 3)
        tilt = np.hypot(*bodies.rotation[2, :2][:, self._feet])  # (feet, N)
        speed = np.linalg.norm(bodies.velocity[:, self._feet], axis=0)
        carrying = forces[..., 2].T > CONTACT
        touching = np.linalg.norm(forces, axis=-1).T > CONTACT
        low, high = self._soft
        beyond = np.maximum(low - joints, 0) + np.maximum(joints - high, 0)
        others = np.abs(engine.sensors(self._other_forces)) > CONTACT
        columns = [
            change.square().sum(dim=1).numpy(),
            (tilt * carrying).sum(axis=0),
            np.square(joints[:, self._ankle_rolls]).sum(axis=1),
            beyond.sum(axis=1),
            (speed * touching).sum(axis=0),
            others.any(axis=(1, 2)),
        ]
        return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))

    # --- beginning ---

    def begin_anew(self) -> None:
        """Begin the episodes of all robots in frames that are drawn."""
        self._begin(torch.arange(self.envs))
        self.observations = self._observe(read_bodies(self.engine))

    def begin_at(self, frames: Tensor) -> None:
        """Begin the episodes of all robots in given frames of all clips (N,), standing as there."""
        self._begin(torch.arange(self.envs), frames.numpy())
        self.observations = self._observe(read_bodies(self.engine))

    def _begin(self, envs: Tensor, frame: np.ndarray | None = None) -> None:
        """Put robots into frames of clips, some of them lying, and forget their past."""
        count, starts = len(envs), self.task.starts
        drawn = frame is None
        if frame is None:
            frame = self._draw_frames(count)
        qpos, qvel = self.references.qpos[frame].copy(), self.references.qvel[frame].copy()
        if starts.lying and drawn:
            lying = (self._rand(count) < starts.lying).numpy()
            side = 1.0 if float(self._rand(1)) < 0.5 else -1.0
            _lay_down(qpos, lying, side, starts.lying_height)
        self.engine.set_state(envs.numpy(), qpos, qvel)
        self.frame[envs] = torch.from_numpy(frame)
        self.clocks[envs] = 0
        self.last_actions = self.last_actions.index_fill(0, envs, 0.0)
        self._down_for[envs] = 0
        self.observer.reset(envs)
        random = self.task.randomisation
        if random.joint_offset:
            drawn = 2 * torch.rand(count, self.offsets.shape[1], generator=self.generator) - 1
            self.offsets[envs] = (random.joint_offset * drawn).double()
        self._push_in[envs] = self._draw_pause(count)

    def _draw_frames(self, count: int) -> np.ndarray:
        """Draw clips by priority, and a frame of each that is not the last."""
        clips = torch.multinomial(
            self.priorities, count, replacement=True, generator=self.generator
        ).numpy()
        within = (self._rand(count).numpy() * (self.references.lengths[clips] - 1)).astype(int)
        return self.references.starts[clips] + within

    def _push(self) -> None:
        """Change the velocity of those who are due, and draw when they are due again."""
        random = self.task.randomisation
        if not random.push_seconds:
            return
        self._push_in -= 1
        due = (self._push_in <= 0).nonzero()[:, 0]
        if not len(due):
            return
        sizes = torch.tensor([random.push_velocity] * 2 + [random.push_rate] * 3)
        change = (sizes * (2 * torch.rand(len(due), 5, generator=self.generator) - 1)).numpy()
        numbers = due.numpy()
        planar = self.engine.qvel[numbers, :2] + change[:, :2]
        angular = self.engine.qvel[numbers, 3:6] + change[:, 2:]
        self.engine.push(numbers, planar, angular)
        self._push_in[due] = self._draw_pause(len(due))

    def _draw_pause(self, count: int) -> Tensor:
        """Draw control steps until the next push."""
        seconds = self.task.randomisation.push_seconds
        if not seconds:
            return torch.zeros(count, dtype=torch.long)
        chosen = torch.randint(len(seconds), (count,), generator=self.generator)
        return (torch.tensor(seconds)[chosen] / self.task.control_dt).round().long()

    def _draw_dynamics(self) -> Dynamics:
        random, links = self.task.randomisation, self.engine.model.nbody - 1

        def uniform(low: float, high: float, *shape: int) -> np.ndarray:
            return low + (high - low) * self._rand(*shape).numpy()

        size = random.center_of_mass
        return Dynamics(
            friction=uniform(*random.friction, self.envs),
            mass_scale=random.mass_scale * uniform(*random.mass, self.envs, links),
            shifted="torso",
            shift=uniform(-size, size, self.envs, 3),
        )

    def _rand(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator, dtype=torch.float64)

    # --- checkpoints ---

    _SAVED = (
        "clocks", "frame", "offsets", "last_actions", "_push_in", "_down_for", "priorities",
        "observations",
    )  # fmt: skip

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that later steps depend on; dynamics follow from the seed."""
        tensors = {f"engine.{k}": torch.as_tensor(v) for k, v in self.engine.state_dict().items()}
        tensors |= {name.lstrip("_"): getattr(self, name).clone() for name in self._SAVED}
        tensors |= {f"observer.{k}": v for k, v in self.observer.state().items()}
        tensors["generator"] = self.generator.get_state()
        return tensors

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Resume from a saved state."""
        self.engine.load_state_dict(select(tensors, "engine."))
        for name in self._SAVED:
            setattr(self, name, tensors[name.lstrip("_")].clone())
        self.observer.restore(select(tensors, "observer."))
        self.generator.set_state(tensors["generator"])


def _lay_down(qpos: np.ndarray, lying: np.ndarray, side: float, height: float) -> None:
    """Turn some robots by a right angle about the world's x axis, and set their height."""
    w, x, y, z = qpos[lying, 3:7].T
    half = np.sqrt(0.5)
    turned = half * np.stack([w - side * x, x + side * w, y - side * z, z + side * y])
    qpos[lying, 3:7] = turned.T
    qpos[lying, 2] = height
