"""The 29-joint robot on MuJoCo Warp: the same episodes as on MuJoCo, and exact resume."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from prism_motor.domains import DOMAINS
from prism_motor.sim.engines import EngineChoice
from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.references import load_references
from prism_motor.train import session
from tests.train.cases import make_tracking, patch_tracking


@pytest.fixture(scope="module")
def config():
    return DOMAINS["tracking"].prepare(make_tracking())


def make(config, engine, envs=16):
    # Robots that lie touch the ground with capsules: see test_engine.
    task = replace(config.task, starts=replace(config.task.starts, lying=0.0, duration=0.5))
    return TrackingEnv(task, load_references(task), envs, seed=1, engine=engine)


def test_episodes_are_those_on_mujoco(config):
    both = [make(config, choice) for choice in (EngineChoice(), EngineChoice("gpu"))]
    generator = torch.Generator().manual_seed(0)
    ended = 0
    for _ in range(60):
        actions = torch.rand(16, 29, generator=generator) - 0.5
        one, two = (env.step(actions) for env in both)
        assert torch.equal(one.ends, two.ends)
        assert torch.equal(one.upright, two.upright)
        ended += int(one.ends.sum())
        apart = np.abs(one.qpos - two.qpos).max(1)
        assert np.median(apart) < 1e-4
        assert (both[0].observations - both[1].observations).abs().median() < 1e-5
    assert ended
    both[1].engine.check()


def test_a_run_resumes_exactly(tmp_path, monkeypatch):
    patch_tracking(monkeypatch)
    config = make_tracking(engine="gpu", updates=4)
    whole, trainer = session.start(config, tmp_path / "whole")
    session.train(whole, trainer)
    cut, other = session.start(config, tmp_path / "cut")
    session.train(cut, other, updates=2)
    again, resumed = session.resume(tmp_path / "cut")
    session.train(again, resumed)
    one, two = trainer.state()[0], resumed.state()[0]
    assert all(torch.equal(one[name], two[name]) for name in one if name.startswith("env."))
    models = trainer.models(), resumed.models()
    for name, model in models[0].items():
        for one, two in zip(model.parameters(), models[1][name].parameters(), strict=True):
            assert torch.equal(one, two), name
