from dataclasses import replace

import pytest
import torch

from prism_motor.locomotion.export import export_run
from prism_motor.locomotion.presets import make_config
from prism_motor.train import session

ARMS = {"quadruped": "prism", "laptop": "mlp", "g1": "prism-residual"}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Make a run of a preset with a small network and two updates, once."""
    made = {}

    def make(preset):
        if preset not in made:
            config = make_config(preset, ARMS[preset])
            config = replace(
                config,
                actor=replace(config.actor, hidden=(32, 16)),
                ppo=replace(config.ppo, steps=8, epochs=1),
                envs=8,
                checkpoint_every=1,
            )
            path = tmp_path_factory.mktemp(preset) / "run"
            run, trainer = session.start(config, path)
            with torch.no_grad():  # small actions do not upset four legs
                trainer.ppo.actor.mlp[-1].weight.mul_(0.2)
            session.train(run, trainer, 2)
            made[preset] = path
        return made[preset]

    return make


@pytest.fixture(scope="session")
def exports(runs):
    """Export such a run, once."""
    made = {}

    def make(preset):
        if preset not in made:
            made[preset] = export_run(runs(preset))
        return made[preset]

    return make
