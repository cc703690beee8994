"""Campaigns so small that their runs train in a second, in every domain."""

import json
import time

import pytest
import torch

from prism_motor.campaigns.config import read_campaign
from prism_motor.campaigns.plan import Plan
from prism_motor.runs import Run, to_dict
from prism_motor.train import session

WALKING = {
    "name": "small",
    "preset": "laptop",
    "seeds": [1, 2],
    "updates": 4,
    "overrides": {
        "envs": 8,
        "checkpoint_every": 2,
        "ppo": {"learning_rate": 1e-3, "steps": 6, "epochs": 1, "minibatches": 2},
        "task": {"terminations": {"duration": 0.5}},
        "actor": {"hidden": [16, 8]},
    },
    "evaluation": {"conditions": ["nominal"], "seeds": [101], "envs": 2, "episodes": 1},
    "arms": [{"name": "mlp"}, {"name": "prism", "overrides": {"actor": {"latent": 8}}}],
}
HANDLING = {
    "kind": "manipulation",
    "name": "small",
    "seeds": [1],
    "updates": 4,
    "overrides": {"batch": 4, "network": {"widths": [16, 32]}},
    "preparation": {"episodes": 2},
    "evaluation": {"episodes": 1},
    "variants": [
        {"name": "reach", "overrides": {"task": {"suite": "metaworld", "name": "reach-v3"}}}
    ],
    "arms": [{"name": "linear"}, {"name": "prism", "overrides": {"conditioner": {"latent": 8}}}],
}
DOMAINS = {"locomotion": WALKING, "manipulation": HANDLING}
SWEEPS = {"locomotion": "ppo.learning_rate.times", "manipulation": "optimiser.learning_rate.times"}
TUNING = {"seeds": [901], "fraction": 0.5, "sweep": {"ppo.learning_rate.times": [0.5, 1.0]}}


def campaign(kind="locomotion", **changes):
    return read_campaign({**DOMAINS[kind], **changes}, "small")


def tuned(kind, **changes):
    return campaign(kind, tuning={**TUNING, "sweep": {SWEEPS[kind]: [0.5, 1.0]}}, **changes)


def plan(folder, kind="locomotion", unprepared=(), **changes):
    """Return the reported runs of a campaign without tuning."""
    made = campaign(kind, **changes)
    return Plan(made, folder).reported({arm.name: {} for arm in made.arms}, unprepared)


def train(planned, updates=None):
    """Train a planned run in this process."""
    run, trainer = session.start(planned.config, planned.path)
    session.train(run, trainer, updates or planned.config.updates)


def fake(run, values, diverged=False):
    """Write what a training leaves behind, as far as tuning looks at it."""
    made = Run.create(run.path, to_dict(run.config))
    for i, value in enumerate(values):
        metric, _ = run.domain.tuning_metric
        made.log({"update": i + 1, "seconds": float(i), metric: value})
    made.close()
    made.save(1 if diverged else run.config.updates, {}, {})
    if diverged:
        mark_diverged(run)


def mark_diverged(run, step=1):
    dump = run.path / "nonfinite" / f"{step:08d}"
    dump.mkdir(parents=True)
    (dump / "complete.json").write_text("{}")


def fake_demonstrations(work, **changes):
    """Write what a finished recording of demonstrations is recognised by."""
    meta = work.path / "meta"
    meta.mkdir(parents=True, exist_ok=True)
    found = {"suite": "metaworld", "task": "reach-v3", "episodes": 2, "image_size": 0, "seed": 1}
    (meta / "prism.json").write_text(json.dumps({"collection": found | changes}))


def wait_for(what, seconds=900):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


def have_begun(runs, updates):
    files = [run.path / "metrics.jsonl" for run in runs]
    return all(file.exists() and file.read_text().count("\n") >= updates for file in files)


def assert_same_weights(one, two):
    tensors = [Run.open(path).load().tensors for path in (one, two)]
    assert tensors[0].keys() == tensors[1].keys()
    for name, tensor in tensors[0].items():
        assert torch.equal(tensor, tensors[1][name]), name


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A campaign folder with the first run trained and the second one half."""
    folder = tmp_path_factory.mktemp("campaigns") / "small"
    first, second, *_ = plan(folder)
    train(first)
    train(second, 2)
    return folder
