from dataclasses import replace

import pytest
import torch

from prism.learn import session
from prism.learn.policy import load_policy
from prism.learn.presets import make_config


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Make a run folder of an arm with a small network and random weights, once."""
    made = {}

    def make(arm="gated", preset="quadruped", seed=1):
        key = (arm, preset, seed)
        if key not in made:
            config = make_config(preset, arm, seed=seed)
            config = replace(
                config, envs=4, actor=replace(config.actor, hidden=(32, 16)), checkpoint_every=1
            )
            path = tmp_path_factory.mktemp("runs") / f"{preset}-{arm}-{seed}"
            run, trainer = session.start(config, path)
            with torch.no_grad():  # small actions do not upset four legs; gates that count
                trainer.ppo.actor.mlp[-1].weight.mul_(0.2)
                for name, weight in trainer.ppo.actor.named_parameters():
                    if name.endswith("interaction.gate"):
                        weight.fill_(0.5)
            run.save(0, *trainer.state())
            made[key] = path
        return made[key]

    return make


@pytest.fixture(scope="session")
def make_policy(make_run):
    """Load the policy of such a run."""

    def make(*args, **kwargs):
        return load_policy(make_run(*args, **kwargs))

    return make
