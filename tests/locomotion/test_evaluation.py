from dataclasses import replace

import numpy as np
import pytest
import torch

from prism_motor.analysis.explain.closed_loop import summarise_walks
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.domain import LOCOMOTION
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.evaluation import EvaluationError, Protocol, evaluate
from prism_motor.locomotion.task import CommandConfig
from prism_motor.locomotion.tasks import TASKS

_LAPTOP = TASKS["laptop"]
SHORT = replace(_LAPTOP, terminations=replace(_LAPTOP.terminations, duration=0.4))
"""Episodes of 20 steps: too short for a standing robot to fall by itself."""


def half_fall(observations):
    """Even environments jump and fall at once; odd ones stand still."""
    actions = torch.zeros(len(observations), 12)
    actions[::2] = 18.0
    return actions


def test_every_environment_gives_exactly_its_first_two_episodes():
    episodes = evaluate(half_fall, SHORT, "nominal", seed=101, protocol=Protocol(6, 2))
    assert [(e.environment, e.episode) for e in episodes] == [
        (i, j) for i in range(6) for j in (0, 1)
    ]
    for one in episodes:
        standing = one.environment % 2 == 1
        assert one.survived == standing
        # Fallers have ended their second episode before the others end their first.
        assert one.steps == 21 if standing else one.steps < 10
        assert one.seconds == pytest.approx(one.steps * 0.02)
        assert (one.condition, one.evaluation_seed) == ("nominal", 101)


def test_records_equal_a_plain_loop_over_one_environment_after_the_other():
    protocol = Protocol(4, 2)
    episodes = evaluate(half_fall, SHORT, "training", seed=7, protocol=protocol)
    env = VelocityEnv(SHORT, 4, seed=7)
    rows = {i: [[]] for i in range(4)}
    while any(len(of_env) <= 2 for of_env in rows.values()):
        _, rewards, done, _ = env.step(half_fall(env.get_observations()["policy"]))
        step = env.last_step
        for i, of_env in rows.items():
            velocity, command = step.state.velocity[i], step.command[i]
            of_env[-1].append(
                (
                    rewards[i].item(),
                    (command[:2] - velocity[:2]).norm().item(),
                    abs(command[2] - step.state.angular_velocity[i, 2]).item(),
                    (velocity[:2] @ command[:2] / command[:2].norm().clamp(min=1e-9)).item(),
                    command[:2].norm().item(),
                    step.contact[i].all().item(),
                )
            )
            if done[i]:
                of_env.append([])
        env.engine.rest(np.array([i for i, of_env in rows.items() if len(of_env) > 2], dtype=int))
    for one in episodes:
        steps = np.array(rows[one.environment][one.episode])
        assert one.steps == len(steps)
        assert one.episode_return == pytest.approx(steps[:, 0].sum(), abs=1e-9)
        assert one.linear_error == pytest.approx(steps[:, 1].mean(), rel=1e-6)
        assert one.yaw_error == pytest.approx(steps[:, 2].mean(), rel=1e-6)
        assert one.double_support == pytest.approx(steps[:, 5].mean())
        commanded = steps[:, 4].sum()
        expected = pytest.approx(steps[:, 3].sum() / commanded, rel=1e-5) if commanded else None
        assert one.speed_ratio == expected


def test_errors_are_those_before_the_reset():
    # Nobody is this tall: episodes end in their first step, and the reset gives new commands.
    task = replace(_LAPTOP, terminations=replace(_LAPTOP.terminations, height=2.0))
    episodes = evaluate(
        lambda x: torch.zeros(len(x), 12), task, "nominal", seed=3, protocol=Protocol(8, 1)
    )
    env = VelocityEnv(find_condition("nominal").apply(task), 8, seed=3)
    first = env.commands.values.clone()
    env.step(torch.zeros(8, 12))
    assert env.terminated.all()
    assert not torch.allclose(env.commands.values, first)
    velocity = env.last_step.state.velocity[:, :2]
    expected = (first[:, :2] - velocity).norm(dim=-1).tolist()
    assert [one.linear_error for one in episodes] == pytest.approx(expected, rel=1e-6)
    assert all(one.steps == 1 and not one.survived for one in episodes)


def test_a_fall_in_the_last_step_is_not_survival(monkeypatch):
    monkeypatch.setattr("prism_motor.locomotion.task.TaskConfig.episode_steps", 0)
    task = replace(SHORT, terminations=replace(SHORT.terminations, height=2.0))
    episodes = evaluate(
        lambda x: torch.zeros(len(x), 12), task, "nominal", seed=3, protocol=Protocol(2, 1)
    )
    assert [one.steps for one in episodes] == [1, 1]
    assert not any(one.survived for one in episodes)


def test_standing_commands_have_no_speed_ratio():
    task = replace(SHORT, commands=CommandConfig(forward=(0.0, 0.0), sideways=(0.0, 0.0)))
    episodes = evaluate(half_fall, task, "nominal", seed=1, protocol=Protocol(2, 1))
    assert [one.speed_ratio for one in episodes] == [None, None]


def test_same_seed_same_episodes_whatever_the_threads():
    def run(seed, threads=1, condition="training"):
        return evaluate(
            half_fall, SHORT, condition, seed=seed, protocol=Protocol(6, 2), threads=threads
        )

    first = run(101)
    assert run(101) == first
    assert run(101, threads=2) == first
    assert [e.episode_return for e in run(102)] != [e.episode_return for e in first]
    for condition in ("nominal", "low-friction", "payload"):
        others = run(101, condition=condition)
        assert [e.episode_return for e in others] != [e.episode_return for e in first]


def test_bad_policies_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\).*\(2, 12\)"):
        evaluate(lambda x: torch.zeros(2, 3), SHORT, "nominal", seed=1, protocol=Protocol(2, 1))
    nan = torch.zeros(2, 12)
    nan[1, 4] = float("nan")
    with pytest.raises(EvaluationError, match=r"action of environment 1 is not finite"):
        evaluate(lambda x: nan, SHORT, "nominal", seed=1, protocol=Protocol(2, 1))
    with pytest.raises(ValueError, match=r"envs must be from 1 to 1e6, got 0"):
        Protocol(envs=0)


def test_a_diverged_simulation_is_no_survivor(monkeypatch):
    def explode(engine, targets):
        engine.qvel[0] = float("nan")

    monkeypatch.setattr("prism_motor.sim.engine.RolloutEngine.step", explode)
    with pytest.raises(EvaluationError, match=r"After 1 steps the reward of environment 0"):
        evaluate(half_fall, SHORT, "nominal", seed=1, protocol=Protocol(2, 1))


def test_summary_is_over_episodes_that_have_a_value():
    episodes = evaluate(half_fall, SHORT, "nominal", seed=101, protocol=Protocol(4, 1))
    episodes = [replace(one, swing_apex=None) for one in episodes]
    episodes[1] = replace(episodes[1], swing_apex=0.05)
    summary = summarise_walks(episodes)
    assert (summary.episodes, summary.survived) == (4, 2)
    errors = np.array([one.linear_error for one in episodes])
    assert summary.spreads["linear_error"].mean == pytest.approx(errors.mean())
    assert summary.spreads["linear_error"].sd == pytest.approx(errors.std(ddof=1))
    assert summary.spreads["swing_apex"].count == 1
    assert summary.spreads["swing_apex"].sd is None
    text = LOCOMOTION.evaluation_table(
        {"nominal": episodes, "none": [replace(episodes[0], swing_apex=None)]}
    )
    assert "50.0 [15.0, 85.0]" in text
    (apex,) = (line.split() for line in text.splitlines() if line.startswith("swing apex"))
    assert apex[3:] == ["5.0", "none"]
    with pytest.raises(ValueError, match="no episodes"):
        summarise_walks([])
