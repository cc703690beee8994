"""A campaign so small that its runs train in a second."""

import pytest

from prism_motor.campaigns.config import Campaign
from prism_motor.campaigns.plan import plan_runs
from prism_motor.runs import from_dict
from prism_motor.train import walking_session as session

SMALL = {
    "name": "small",
    "preset": "laptop",
    "seeds": [1, 2],
    "iterations": 4,
    "overrides": {
        "envs": 8,
        "checkpoint_every": 2,
        "ppo": {"steps": 6, "epochs": 1, "minibatches": 2},
        "task": {"terminations": {"duration": 0.5}},
        "actor": {"hidden": [16, 8]},
    },
    "evaluation": {"conditions": ["nominal"], "seeds": [101], "envs": 2, "episodes": 1},
    "arms": [
        {"name": "mlp", "actor": "mlp"},
        {"name": "gated", "actor": "gated", "overrides": {"actor": {"latent": 8}}},
    ],
}
TUNING = {"seeds": [901], "fraction": 0.5, "sweep": {"ppo.learning_rate.times": [0.5, 1.0]}}


def campaign(**changes):
    return from_dict(Campaign, {**SMALL, **changes})


def plan(folder, **changes):
    made = campaign(**changes)
    return plan_runs(made, folder, {arm.name: {} for arm in made.arms})


def train(planned, iterations=None):
    """Train a planned run in this process."""
    run, trainer = session.start(planned.config, planned.path)
    session.train(run, trainer, iterations or planned.config.iterations)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A campaign folder with the first run trained and the second one half."""
    folder = tmp_path_factory.mktemp("campaigns") / "small"
    first, second, *_ = plan(folder)
    train(first)
    train(second, 2)
    return folder
