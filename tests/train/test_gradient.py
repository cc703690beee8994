"""Gradient descent on another device and with another precision."""

import pytest
import torch
from torch import nn

from prism_motor.train.config import RunConfig
from prism_motor.train.finite import NonFiniteTrainingError
from prism_motor.train.gradient import GradientTrainer
from tests.devices import AWAY


class Regression(GradientTrainer):
    """Learns a product of random signals."""

    def __init__(self, device="cpu", **changes):
        torch.manual_seed(1)
        policy = nn.Sequential(nn.Linear(2, 32), nn.ELU(), nn.Linear(32, 1)).to(device)
        config = RunConfig(kind="x", preset="x", arm="x", **changes)
        super().__init__(config, policy, torch.optim.Adam(policy.parameters(), 1e-2))

    def loss(self):
        signals = torch.randn(64, 2, device=self._device)
        self.seen = self.policy(signals)
        return (self.seen[:, 0] - signals.prod(-1)).square().mean()


def learn(updates=3, **settings):
    trainer = Regression(**settings)
    rows = [trainer.update() for _ in range(updates)]
    return trainer.state()[0], rows[-1]["loss"]


def test_another_device_learns_the_same(away):
    (one, loss), (two, other) = learn(), learn(device=AWAY)
    assert loss == other
    for name, values in one.items():
        assert torch.equal(two[name], values), name


def test_bf16_is_used_by_the_network_and_by_nothing_else():
    trainer = Regression(precision="bf16")
    trainer.update()
    assert trainer.seen.dtype == torch.bfloat16
    tensors = trainer.state()[0]
    assert {value.dtype for value in tensors.values()} == {torch.float32, torch.uint8}
    assert learn(1)[1] != learn(1, precision="bf16")[1] == pytest.approx(learn(1)[1], rel=0.02)


def test_bf16_resumes_exactly():
    whole = Regression(precision="bf16")
    whole.update()
    kept = whole.state()
    whole.update()
    resumed = Regression(precision="bf16")
    resumed.restore(*kept)
    resumed.update()
    one, two = whole.state()[0], resumed.state()[0]
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_bf16_names_what_is_not_finite():
    trainer = Regression(precision="bf16")
    with torch.no_grad():
        trainer.policy[2].bias.fill_(float("inf"))
    with pytest.raises(NonFiniteTrainingError, match=r"the loss is inf, because weight 'policy\.2"):
        trainer.update()
