"""LeRobot's versions train the same Diffusion Policy: an arm does not change with the library."""

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

import torch
from lerobot.policies.factory import make_pre_post_processors

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismDiffusionPolicy
from tests.integrations.lerobot.conftest import DEFAULTS

# Recorded with LeRobot 0.4.4 and torch 2.10. On one processor 0.6.1 with 2.11 gives each digit, but
# another may round otherwise.
LOSSES = {
    "linear": (1.2741678, 1.3876772, 1.0618365, 0.9631044, 1.0820158),
    "mlp": (1.0876555, 1.1103296, 1.0288105, 1.0420214, 1.0986967),
    "prism": (1.0146191, 1.2269520, 1.2004404, 1.2046016, 0.9637511),
}


def test_defaults_are_those_of_0_4():
    config = PrismDiffusionConfig()
    assert {name: getattr(config, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("conditioner", LOSSES)
def test_five_updates_from_one_seed(conditioner, make_config, make_batch):
    torch.manual_seed(3)
    batch = make_batch()
    config = make_config(conditioner, optimizer_lr=1e-3)
    preprocess, _ = make_pre_post_processors(config, dataset_stats=None)
    batch = preprocess(batch)
    torch.manual_seed(4)
    policy = PrismDiffusionPolicy(config)
    optimizer = config.get_optimizer_preset().build(policy.get_optim_params())
    losses = []
    for _ in range(5):
        loss, _ = policy.forward(dict(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == pytest.approx(LOSSES[conditioner], rel=1e-4)
