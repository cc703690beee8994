"""Recording rollouts of trained policies, with random or scripted commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._checks import InputError, check_size
from prism_motor.analysis.features import read_features
from prism_motor.analysis.quantities import QuantityMeter
from prism_motor.analysis.rollouts import Columns, Rollout
from prism_motor.analysis.study import Report, silent
from prism_motor.locomotion.commands import Commands
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.evaluation import check_actions
from prism_motor.locomotion.observations import actor_names
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.checkpoints import hash_weights

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy
    from prism_motor.locomotion.task import LeggedTaskConfig

COMMANDS = ("command_forward", "command_sideways", "command_yaw")
"""Columns of a rollout's commands."""


@dataclass(frozen=True)
class CommandScript:
    """Commands that hold until the next one, by time since the episode began."""

    points: tuple[tuple[float, float, float, float], ...]
    """(time s, forward m/s, sideways m/s, yaw rate rad/s), ordered by time from 0."""
    seconds: float
    """When the script ends."""

    def __post_init__(self) -> None:
        times = [point[0] for point in self.points]
        if not times or times[0] != 0 or sorted(set(times)) != times or times[-1] >= self.seconds:
            raise InputError(
                "CommandScript: times must start at 0, increase, and stay below the end at "
                f"{self.seconds} s; got {times}."
            )

    def steps(self, control_dt: float) -> int:
        """Return how many control steps the script takes."""
        return round(self.seconds / control_dt)

    def at(self, seconds: Tensor) -> Tensor:
        """Return the commands at some times, (N,) -> (N, 3)."""
        table = torch.tensor(self.points, dtype=torch.double)
        # Half a nanosecond: k control steps of 0.01 s add up to slightly less than intended.
        index = torch.searchsorted(table[:, 0].contiguous(), seconds.double() + 5e-10, right=True)
        return table[index - 1, 1:].float()


class ScriptedCommands(Commands):
    """Scripted commands in all environments, with the yaw rate as given."""

    def __init__(self, env: VelocityEnv, script: CommandScript) -> None:
        super().__init__(env.cfg.commands, env.num_envs, env.generator)
        self.env, self.script = env, script

    def resample(self, envs: Tensor) -> None:
        """Do nothing: the script decides."""

    def follow_heading(self, yaw: Tensor) -> None:
        """Take the current commands of the script, instead of a yaw rate from a heading."""
        self.values = self.script.at(self.env.episode_length_buf.double() * self.env.control_dt)


def record(
    policy: WalkingPolicy,
    task: LeggedTaskConfig,
    condition: str = "nominal",
    *,
    seed: int,
    envs: int,
    steps: int | None = None,
    script: CommandScript | None = None,
    features: bool = True,
    threads: int = 1,
    run: str | Path = "",
    report: Report = silent,
) -> Rollout:
    """Let a policy walk by its mean action and record everything.

    Args:
        policy: A trained policy.
        task: The task, usually ``policy.config.task``.
        condition: Name of a condition in :data:`prism_motor.locomotion.conditions.CONDITIONS`.
        seed: Seed of initial states, commands and everything else random.
        envs: Robots.
        steps: Control steps per robot, over as many episodes as it takes.
        script: Commands by time since the episode began, instead of random ones; without
            ``steps`` it is followed once. Episodes then have no time-out.
        features: Whether to record activations too.
        threads: Threads of the simulation; they do not change the result.
        run: Where the policy came from, for the record.
        report: Called after every control step.
    """
    # How long to record: the given steps, or the script once.
    check_size("record", "envs", envs)
    if steps is None:
        if script is None:
            raise InputError("record: give steps, or a script that sets how long to walk.")
        steps = script.steps(task.simulation.control_dt)
    check_size("record", "steps", steps)
    # Environment: the task under the condition, without a time-out before the script ends.
    changed = find_condition(condition).apply(task)
    if script is not None:
        limits = replace(changed.terminations, duration=script.seconds + 1.0)
        changed = replace(changed, terminations=limits)
    env = VelocityEnv(changed, envs, seed=seed, threads=threads)
    if script is not None:
        env.commands = ScriptedCommands(env, script)
        env.reset()
    # Walk first; features are computed afterwards in large batches.
    with _one_thread():
        rows = _walk(policy, env, steps, report)
        observations = rows["observations"]
        activations = read_features(policy, observations) if features else {}
    # Name every column, and record where it all came from.
    joints = [joint.name for joint in env.robot.joints]
    about = {
        "run": str(run),
        "arm": policy.config.arm,
        "preset": policy.config.preset,
        "training_seed": policy.config.seed,
        "checkpoint": policy.step,
        "policy_sha256": hash_weights(policy.actor.state_dict()),
        "condition": condition,
        "seed": seed,
        "envs": envs,
        "control_dt": env.control_dt,
        "script": None if script is None else to_dict(script),
        "task": to_dict(changed),
        "provenance": collect_provenance(),
    }
    return Rollout(
        about=about,
        environment=rows["environment"],
        episode=rows["episode"],
        step=rows["step"],
        done=rows["done"],
        fell=rows["fell"],
        observations=Columns(tuple(actor_names(changed)), observations),
        commands=Columns(COMMANDS, rows["commands"]),
        actions=Columns(tuple(f"action_{name}" for name in joints), rows["actions"]),
        targets=Columns(tuple(f"target_{name}" for name in joints), rows["targets"]),
        quantities=Columns(tuple(rows["names"]), rows["quantities"]),
        features=activations,
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one torch thread, so that small networks round the same everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _walk(policy: WalkingPolicy, env: VelocityEnv, steps: int, report: Report) -> dict[str, Any]:
    """Step the environments and return arrays of rows, sorted by episode and time."""
    meter = QuantityMeter(env.robot, env.num_envs, env.control_dt)
    everyone = torch.arange(env.num_envs)
    count = torch.zeros(env.num_envs, dtype=torch.long)
    kept: list[dict[str, Tensor]] = []
    with torch.inference_mode():
        for _ in range(steps):
            # What the policy sees at t, and what it does.
            observations = env.get_observations()["policy"]
            row = {
                "environment": everyone,
                "number": count.clone(),
                "step": env.episode_length_buf.clone(),
                "observations": observations,
                "commands": env.commands.values.clone(),
                "actions": policy(observations),
            }
            # Targets are held relative to a pose of time t, so it is read before the step.
            start = env.reference if env.cfg.actions.on_reference else env.default_pose
            check_actions(row["actions"], env)
            _, _, done, _ = env.step(row["actions"])
            assert env.last_step is not None
            # The result at t + 1, before any reset.
            row["targets"] = start + env.cfg.actions.scale * env.last_step.actions[0]
            row["quantities"] = meter.read(env.last_step)
            row["done"], row["fell"] = done.bool(), env.terminated.clone()
            kept.append(row)
            # Start new episodes where old ones ended.
            ended = done.nonzero().squeeze(-1)
            meter.reset(ended)
            count[ended] += 1
            report()
    # Sort rows by episode instead of time, and turn (robot, number) into one episode number.
    rows: dict[str, Any] = {
        name: torch.cat([row[name] for row in kept]).numpy() for name in kept[0]
    }
    order = np.lexsort((rows["step"], rows["number"], rows["environment"]))
    rows = {name: values[order] for name, values in rows.items()}
    pairs = np.stack([rows["environment"], rows.pop("number")], axis=1)
    rows["episode"] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    rows["names"] = meter.names
    return rows
