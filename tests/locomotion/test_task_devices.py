"""The task where the engine's states are: same numbers, nothing left behind, one wait per step.

The device is pretended (see :mod:`tests.devices`), the engine is MuJoCo's with tensors there.
"""

from collections import defaultdict
from dataclasses import replace

import pytest
import torch

from prism_motor.locomotion import legged
from prism_motor.locomotion import trainer as training
from prism_motor.locomotion.commands import Commands
from prism_motor.locomotion.env import make_env
from prism_motor.locomotion.tasks import TASKS
from prism_motor.train.finite import NonFiniteTrainingError
from tests.devices import AWAY
from tests.locomotion.tensor_engine import TensorChoice
from tests.train.cases import make_walking

STEPS = 6


@pytest.fixture(autouse=True)
def _generator(monkeypatch):
    # The pretended device draws as the CPU does.
    monkeypatch.setattr(legged, "make_generator", lambda _: torch.Generator())


def with_pushes(task):
    """Every other control step pushes and episodes are short, so that all of the task runs."""
    step = task.simulation.control_dt
    return replace(
        task,
        randomisation=replace(task.randomisation, push_every=2 * step),
        terminations=replace(task.terminations, duration=15 * step),
    )


def roll(task, device, steps=25):
    env = make_env(task, 8, seed=3, engine=TensorChoice("gpu", str(device)))
    generator = torch.Generator().manual_seed(0)
    rows, ended = [], 0
    for _ in range(steps):
        actions = 2.0 * torch.randn(8, env.num_actions, generator=generator)
        seen, paid, done, extras = env.step(actions.to(device))
        assert all(value.device == torch.device(device) for value in extras["log"].values())
        rows.append([one.cpu() for one in (seen["policy"], seen["critic"], paid, done)])
        ended += int(done.sum())
    return env, rows, ended


@pytest.mark.parametrize("preset", ["paper", "laptop", "quadruped"])
def test_the_task_computes_the_same_there(away, preset, monkeypatch):
    # Nobody is due for a new command yet, but elsewhere they are drawn all the same.
    monkeypatch.setattr(Commands, "resample_where", lambda *_: None)
    task = with_pushes(TASKS[preset])
    assert preset == "laptop" or len(task.rewards.weights) == 22  # all terms
    _, expected, _ = roll(task, "cpu")
    env, found, ended = roll(task, AWAY)
    for one, two in zip(expected, found, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert ended
    for name, tensor in env.state_dict().items():
        assert tensor.device == AWAY or name in ("generator", "total_steps"), name


def test_a_control_step_waits_once(away):
    task = with_pushes(TASKS["laptop"])
    # Commands are drawn in every third step, robots fall in most.
    often = replace(task.commands, resample_after=3 * task.simulation.control_dt)
    env = make_env(replace(task, commands=often), 8, engine=TensorChoice("gpu", str(AWAY)))
    actions = (3.0 * torch.randn(40, 8, 12)).to(AWAY)
    ended = 0
    for one in actions:
        away.counts.clear()
        _, _, done, _ = env.step(one)
        assert away.counts == {"waits": 1}
        ended += int(done.sum())
    assert ended


def test_commands_change_for_those_who_are_due(away):
    env = make_env(TASKS["laptop"], 8, engine=TensorChoice("gpu", str(AWAY)))
    before = env.commands.values.cpu(), env.commands.heading.cpu()
    due = torch.arange(8) % 3 == 0
    env.commands.resample_where(due.to(AWAY))
    after = env.commands.values.cpu(), env.commands.heading.cpu()
    assert torch.equal(before[1] != after[1], due)
    assert torch.equal(before[0][~due], after[0][~due])
    low, high = env.cfg.commands.forward
    assert ((after[0][:, 0] >= low) & (after[0][:, 0] <= high)).all()


@pytest.fixture
def trainer(away, monkeypatch):
    monkeypatch.setattr(training, "own_device", lambda *_: str(AWAY))
    monkeypatch.setattr(training, "EngineChoice", TensorChoice)
    monkeypatch.setattr(training, "resolve_engine", lambda *_: "gpu")
    return training.WalkingTrainer(make_walking("prism"))


def test_an_update_reads_its_numbers_once(trainer, away):
    away.counts.clear()
    with torch.inference_mode():
        trainer._collect(defaultdict(float))
    # One per control step; whether samples, returns and advantages are finite. The sums come in
    # one transfer.
    assert away.counts == {"waits": STEPS + 3, "from": 1}
    assert trainer.env.engine.checks == 1


def test_a_run_resumes_exactly(trainer):
    trainer.update()
    kept = trainer.state()
    assert all(tensor.device.type == "cpu" for tensor in kept[0].values())
    row = trainer.update()
    end = trainer.state()
    torch.manual_seed(999)
    trainer.restore(*kept)
    assert trainer.update()["reward_per_second"] == row["reward_per_second"]
    again = trainer.state()[0]
    assert all(torch.equal(again[name], end[0][name]) for name in again)


def test_what_is_not_finite_is_named_after_the_update(trainer, away):
    trainer.env.engine._engine.qvel[5, 7] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match=r"of environment 5.* in step 1 of 6"):
        trainer.update()
