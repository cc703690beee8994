"""Handling policies on another device, and in bf16."""

import numpy as np
import pytest
import torch

from prism_motor.manipulation.diffusion.actor import DiffusionActor
from prism_motor.manipulation.environment import Observation
from prism_motor.manipulation.policy import load_policy
from prism_motor.manipulation.trainer import HandlingTrainer
from prism_motor.train import session
from tests.devices import AWAY
from tests.manipulation.diffusion.conftest import (
    OBJECTS,
    STATE,
    demonstrations_of,
    make_config,
    make_demonstrations,
)


@pytest.fixture(params=[False, True], ids=["objects", "images"])
def run(request, tmp_path, monkeypatch):
    monkeypatch.setattr("prism_motor.manipulation.data.load_for", demonstrations_of)
    config = make_config(images=request.param, updates=1)
    session.train(*session.start(config, tmp_path / "run"))
    return tmp_path / "run"


def act(policy, steps=10):
    actor, random = DiffusionActor(policy), np.random.default_rng(0)
    actor.reset(3)
    actions = []
    for _ in range(steps):
        seen = Observation(
            state=random.random(STATE, dtype=np.float32),
            objects=random.random(OBJECTS, dtype=np.float32),
            images={"corner2": random.integers(0, 256, (16, 16, 3), dtype=np.uint8)},
        )
        actions.append(actor.act(seen))
    return np.stack(actions)


def test_a_policy_acts_from_another_device(away, run):
    policy = load_policy(run)
    expected = act(policy)
    np.testing.assert_array_equal(act(policy.to(AWAY)), expected)


@pytest.mark.parametrize("images", [False, True])
def test_bf16_resumes_exactly_and_keeps_fp32_weights(images):
    config, data = make_config(images=images, precision="bf16"), make_demonstrations(images)
    whole = HandlingTrainer(config, data)
    whole.update()
    kept = whole.state()
    whole.update()
    resumed = HandlingTrainer(config, data)
    resumed.restore(*kept)
    resumed.update()
    one, two = whole.state()[0], resumed.state()[0]
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert torch.bfloat16 not in {value.dtype for value in one.values()}
    plain = HandlingTrainer(make_config(images=images), data)
    for _ in range(2):  # the learning rate of the first one is 0
        plain.update()
    name = "policy.diffusion.unet.final_conv.1.weight"
    assert not torch.equal(plain.state()[0][name], one[name])
