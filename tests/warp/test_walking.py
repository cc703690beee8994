"""Walking on MuJoCo Warp: the same episodes as on MuJoCo, exact resume, no silent failure."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from prism_motor.locomotion.env import make_env
from prism_motor.locomotion.tasks import TASKS
from prism_motor.locomotion.trainer import WalkingTrainer
from prism_motor.runs import Run
from prism_motor.sim.engines import EngineChoice
from prism_motor.sim.warp_engine import ContactOverflowError
from prism_motor.train import session
from prism_motor.train.finite import NonFiniteTrainingError
from tests.train.cases import make_walking

GPU = EngineChoice("gpu")


@pytest.mark.parametrize("preset", ["laptop", "quadruped", "paper"])
def test_the_same_robots_fall_at_the_same_time(preset):
    both = [make_env(TASKS[preset], 32, seed=1, engine=choice) for choice in (EngineChoice(), GPU)]
    first = [env.get_observations() for env in both]
    assert torch.equal(first[0]["policy"], first[1]["policy"])
    generator = torch.Generator().manual_seed(0)
    ended = 0
    for _ in range(60 if preset == "paper" else 40):
        actions = 1.5 * torch.randn(32, both[0].num_actions, generator=generator)
        (seen, paid, done, _), (seen_too, paid_too, done_too, _) = (e.step(actions) for e in both)
        assert torch.equal(done, done_too)
        ended += int(done.sum())
        # A robot whose foot just touches may part from its twin, as it would on MuJoCo itself.
        apart = (seen["critic"] - seen_too["critic"]).abs().amax(1)
        apart = torch.maximum(apart, (seen["policy"] - seen_too["policy"]).abs().amax(1))
        assert (apart < 1e-3).float().mean() >= 0.9
        assert apart.median() < 1e-4
        assert (paid - paid_too).abs().median() < 1e-6
    assert ended or preset == "paper"  # which ends episodes only where the trunk touches
    both[1].engine.check()


def test_a_saved_environment_goes_on_bit_for_bit():
    envs = [make_env(TASKS["laptop"], 8, seed=2, engine=GPU) for _ in range(2)]
    actions = 1.5 * torch.randn(60, 8, 12)
    for one in actions[:30]:
        envs[0].step(one)
    envs[1].load_state_dict(envs[0].state_dict())
    for one in actions[30:]:
        for env in envs:
            env.step(one)
    one, two = (env.state_dict() for env in envs)
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_resumes_exactly(tmp_path):
    config = make_walking(engine="gpu", updates=4)
    whole, trainer = session.start(config, tmp_path / "whole")
    session.train(whole, trainer)
    cut, other = session.start(config, tmp_path / "cut")
    session.train(cut, other, updates=2)
    again, resumed = session.resume(tmp_path / "cut")
    session.train(again, resumed)
    one, two = trainer.state()[0], resumed.state()[0]
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert again.config["engine"] == "gpu"


WATCH = """
import os
from torch import distributed
from prism_motor.sim import warp_engine

def watch(owner, name, word):
    act = getattr(owner, name)

    def acts(*given, **named):
        with open("order.txt", "a") as file:
            file.write(f"{os.environ['RANK']} {word}\\n")
        return act(*given, **named)

    setattr(owner, name, acts)

watch(warp_engine.WarpEngine, "_record", "graph")
watch(distributed, "init_process_group", "group")
"""
"""A plugin that writes down when graphs are recorded and when processes join."""


@pytest.mark.slow
def test_two_processes_record_their_graphs_before_they_join(tmp_path):
    (tmp_path / "watch.py").write_text(WATCH)
    small = ("--envs", "8", "--threads", "1", "--ppo.steps", "6", "--ppo.minibatches", "2")
    words = ("train", "locomotion", "--engine", "gpu", *small, "--updates", "2", "--out", "run")
    launched = subprocess.run(
        [
            sys.executable,
            "-m",
            "prism_motor.cli",
            *words,
            "--processes",
            "2",
            "--plugin",
            "watch.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert launched.returncode == 0, launched.stderr
    rows = [line.split() for line in (tmp_path / "order.txt").read_text().splitlines()]
    for process in "01":
        assert [word for rank, word in rows if rank == process] == ["graph", "graph", "group"]
    assert [row["update"] for row in Run.open(tmp_path / "run").metrics()] == [1, 2]


def test_an_update_with_too_little_room_ends_with_what_to_do():
    task = make_walking().task
    longer = replace(task, terminations=replace(task.terminations, duration=2.0))
    trainer = WalkingTrainer(make_walking(engine="gpu", contacts=1, task=longer))
    with pytest.raises(ContactOverflowError, match="--contacts 2"):
        [trainer.update() for _ in range(10)]


def test_a_state_that_is_not_finite_is_named():
    trainer = WalkingTrainer(make_walking(engine="gpu"))
    trainer.env.engine.qvel[5, 7] = float("nan")
    with pytest.raises(NonFiniteTrainingError, match="of environment 5"):
        trainer.update()
