"""Run folders as training and evaluation would leave them, with chosen numbers in them."""

import json
import math
from dataclasses import replace

import numpy as np
import torch

from prism_motor.locomotion.presets import make_config
from prism_motor.runs import Run, to_dict
from prism_motor.runs.seals import seal_data

ROW = {
    "steps": 1201,
    "seconds": 24.02,
    "survived": True,
    "episode_return": 200.0,
    "linear_error": 0.13,
    "yaw_error": 0.07,
    "swing_apex": 0.06,
    "double_support": 0.07,
    "speed_ratio": 0.8,
    "touchdowns": 1.5,
}


def write_run(
    path, arm="prism", seed=1, *, updates=20, planned=20, rows=None, config=None, **overrides
):
    """Write a run folder with ``updates`` of ``planned`` done.

    ``rows`` maps conditions to episodes, each a dict of what differs from :data:`ROW`.
    """
    config = config or make_config(
        overrides.pop("preset", "laptop"),
        overrides.pop("actor", arm),
        seed=seed,
        name=arm,
        overrides={**overrides, "updates": planned},
    )
    run = Run.create(path, to_dict(config))
    for index in range(1, updates + 1):
        run.log(metrics_row(config, index, seed))
    run.close()
    if updates:
        run.save(updates, {"actor.weight": torch.full((2,), float(seed))}, {"update": updates})
    for condition, episodes in (rows or {}).items():
        write_evaluation(run, config, condition, episodes, updates)
    return config


def metrics_row(config, index, seed):
    share = index / config.updates
    return {
        "update": index,
        "samples": index * config.samples_per_update,
        "seconds": 1.5 * index,
        "reward_per_second": 4 * share + 0.1 * seed,
        "linear_error": 0.5 - 0.3 * share,
        "seconds_between_falls": 1 + 50 * share,
    }


def write_evaluation(run, config, condition, episodes, checkpoint, seed=101, **changes):
    """Write the file of one condition and evaluation seed; ``changes`` replace its keys."""
    labels = {"arm": config.arm, "training_seed": config.seed}
    found = [
        {**labels, "condition": condition, "evaluation_seed": seed, "environment": i, "episode": 0}
        | ROW
        | episode
        for i, episode in enumerate(episodes)
    ]
    run.write_evaluation(
        f"{condition}-{seed}",
        {
            "schema": 1,
            "condition": {"name": condition},
            "evaluation_seed": seed,
            "protocol": {"envs": len(found), "episodes": 1},
            "checkpoint": checkpoint,
            "policy_sha256": f"{config.seed:064x}",
            "provenance": {},
            "episodes": found,
        }
        | changes,
    )


def study(root, arms=("mlp-matched", "prism"), seeds=(1, 2, 3), conditions=("nominal",), **more):
    """Write a whole comparison; ``prism`` has a linear error of 0.02 m/s less on every seed."""
    for arm in arms:
        for seed in seeds:
            generator = np.random.default_rng([seed, len(arm)])
            common = 0.15 + 0.01 * math.sin(seed) - (0.02 if arm == "prism" else 0.0)
            rows = {
                condition: [
                    {
                        "linear_error": common + 0.03 * index + float(generator.normal(0, 0.002)),
                        "survived": bool(index == 0 or generator.random() < 0.9),
                        "episode_return": 200 + float(generator.normal(0, 5)),
                        "yaw_error": 0.07 + float(generator.normal(0, 0.01)),
                        "seconds": 20 + float(generator.random()),
                    }
                    for _ in range(4)
                ]
                for index, condition in enumerate(conditions)
            }
            write_run(root / f"{arm}-{seed}", arm, seed, rows=rows, **more)


def edit_json(file, **changes):
    """Change a file as if it had been written so."""
    data = json.loads(file.read_text()) | changes
    file.write_text(json.dumps(seal_data(data) if "sha256" in data else data))


def unseal(folder):
    """Make a run one of an earlier version, whose checkpoints sealed nothing but themselves."""
    for marker in folder.glob("checkpoints/*/complete.json"):
        edit_json(marker, run={})


def renamed(config, **changes):
    return replace(config, **changes)
