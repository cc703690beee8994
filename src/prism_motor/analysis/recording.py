"""Recording rollouts of trained policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism_motor._errors import InputError
from prism_motor.analysis.features import read_features
from prism_motor.analysis.quantities import QuantityMeter
from prism_motor.analysis.rollouts import Columns, Rollout
from prism_motor.analysis.scripts import CommandScript, ScriptedCommands
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.evaluation import check_actions
from prism_motor.locomotion.observations import actor_names
from prism_motor.locomotion.policy import Policy
from prism_motor.locomotion.task import TaskConfig
from prism_motor.nn.checks import check_size
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.train.walking_evaluations import hash_weights

COMMANDS = ("command_forward", "command_sideways", "command_yaw")
"""Columns of a rollout's commands."""


def record(
    policy: Policy,
    task: TaskConfig,
    condition: str = "nominal",
    *,
    seed: int,
    envs: int,
    steps: int | None = None,
    episodes: int | None = None,
    script: CommandScript | None = None,
    features: bool = True,
    threads: int = 1,
    run: str | Path = "",
    report: Callable[[], None] | None = None,
) -> Rollout:
    """Let a policy walk by its mean action and keep everything.

    Args:
        policy: A trained policy.
        task: The task; in general ``policy.config.task``.
        condition: Name of a condition in :data:`prism_motor.locomotion.conditions.CONDITIONS`.
        seed: Seed of initial states, commands and all else that is random.
        envs: Robots.
        steps: Control steps of every robot, over as many episodes as it takes; or
        episodes: the first episodes of every robot, however long they last.
        script: Commands by time since the episode began, instead of random ones; without
            ``steps`` and ``episodes`` it is followed once. Episodes then have no time-out.
        features: Whether activations are kept too.
        threads: Threads of the simulation; they do not change the result.
        run: Where the policy came from, for the record.
        report: Called after every control step.
    """
    check_size("record", "envs", envs)
    if script is not None and steps is None and episodes is None:
        steps = script.steps(task.simulation.control_dt)
    if (steps is None) == (episodes is None):
        raise InputError(f"record: give either steps or episodes, got {steps} and {episodes}.")
    check_size("record", "steps or episodes", steps if episodes is None else episodes)
    changed = find_condition(condition).apply(task)
    if script is not None:
        limits = replace(changed.terminations, duration=script.seconds + 1.0)
        changed = replace(changed, terminations=limits)
    env = VelocityEnv(changed, envs, seed=seed, threads=threads)
    if script is not None:
        env.commands = ScriptedCommands(env, script)
        env.reset()
    with _one_thread():
        rows = _walk(policy, env, steps, episodes, report)
        observations = rows["observations"]
        activations = read_features(policy, observations) if features else {}
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
    """Keep the rounding of small networks the same everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _walk(
    policy: Policy,
    env: VelocityEnv,
    steps: int | None,
    episodes: int | None,
    report: Callable[[], None] | None,
) -> dict[str, Any]:
    """Step the environments and return arrays of rows, sorted by episode and time."""
    meter = QuantityMeter(env.robot, env.num_envs, env.control_dt)
    everyone = torch.arange(env.num_envs)
    count = torch.zeros(env.num_envs, dtype=torch.long)
    kept: list[dict[str, Tensor]] = []
    with torch.inference_mode():
        while (len(kept) < steps) if steps is not None else bool((count < (episodes or 0)).any()):
            observations = env.get_observations()["policy"]
            row = {
                "environment": everyone,
                "number": count.clone(),
                "step": env.episode_length_buf.clone(),
                "observations": observations,
                "commands": env.commands.values.clone(),
                "actions": policy(observations),
            }
            start = env.reference if env.cfg.actions.on_reference else env.default_pose
            check_actions(row["actions"], env)
            _, _, done, _ = env.step(row["actions"])
            assert env.last_step is not None
            row["targets"] = start + env.cfg.actions.scale * env.last_step.actions[0]
            row["quantities"] = meter.read(env.last_step)
            row["done"], row["fell"] = done.bool(), env.terminated.clone()
            if episodes is not None:
                row = {name: values[row["number"] < episodes] for name, values in row.items()}
            kept.append(row)
            ended = done.nonzero().squeeze(-1)
            meter.reset(ended)
            count[ended] += 1
            if episodes is not None:
                env.engine.rest((count >= episodes).nonzero().squeeze(-1).numpy())
            if report is not None:
                report()
    rows: dict[str, Any] = {
        name: torch.cat([row[name] for row in kept]).numpy() for name in kept[0]
    }
    order = np.lexsort((rows["step"], rows["number"], rows["environment"]))
    rows = {name: values[order] for name, values in rows.items()}
    pairs = np.stack([rows["environment"], rows.pop("number")], axis=1)
    rows["episode"] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    rows["names"] = meter.names
    return rows
