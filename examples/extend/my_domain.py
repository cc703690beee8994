"""Your own domain: learning joint power, which is torque times velocity."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from prism_motor.domains import DOMAINS, Domain, open_run
from prism_motor.nn import build_actor
from prism_motor.statistics import Measure
from prism_motor.train import GradientTrainer, RunConfig


class PowerTrainer(GradientTrainer):
    def __init__(self, config):
        torch.manual_seed(config.seed)
        network = build_actor(config.arm, 2, 1, hidden=(32,))
        super().__init__(config, network, torch.optim.Adam(network.parameters(), 3e-3))

    def loss(self):
        signals = torch.randn(64, 2)
        return (self.policy(signals)[:, 0] - signals.prod(-1)).square().mean()


@dataclass(frozen=True)
class Guess:
    KEY: ClassVar = ("number",)
    number: int
    success: bool
    error: float


class PowerDomain(Domain):
    name, title, episode, default_preset = "power", "Joint power", Guess, "small"
    presets = {"small": RunConfig(kind="power", preset="small", arm="prism", updates=300)}
    arms, reference = ("mlp", "prism"), "mlp"
    rate = Measure("success", "success", "%", digits=1, higher_is_better=True, factor=100)
    measures = (rate, Measure("error", "error", "W", higher_is_better=False))

    def trainer(self, config, rank):
        return PowerTrainer(config)

    def load_policy(self, run, step=None):
        folder, _, config = open_run(run)
        policy = build_actor(config.arm, 2, 1, hidden=(32,))
        policy.load_state_dict(folder.weights(self.weights, step))
        return policy

    def run_episode(self, policy, condition, seed, key):
        signals = torch.randn(1, 2, generator=torch.Generator().manual_seed(1000 * seed + key[0]))
        error = (policy(signals)[0, 0] - signals.prod()).abs().item()
        return Guess(*key, error < 0.2, error)


DOMAINS.register("power", PowerDomain())
