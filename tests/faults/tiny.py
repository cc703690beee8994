"""The smallest runs that are like real ones, and the commands that train and evaluate them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from prism_motor.runs import to_dict
from tests.train.cases import CASES


def evaluate_words(domain: str, run: Path) -> tuple[object, ...]:
    """Return the command that evaluates a run: two episodes under every condition of its case."""
    envs = ("--envs", 2, "--episodes", 1) if domain == "locomotion" else ("--episodes", 2)
    return ("eval", run, "--conditions", *CASES[domain].conditions, "--seeds", 101, *envs)


def make_small(domain: str, **changes: Any) -> Any:
    """Return the settings of a run with networks of a few thousand weights."""
    config = CASES[domain].make(**changes)
    if domain == "locomotion":
        actor = replace(config.actor, hidden=(16, 8), latent=8)
        config = replace(config, actor=actor, critic_hidden=(16,))
    return config


def write_config(file: Path, config: Any) -> Path:
    """Write settings for ``prism train --config``."""
    file.write_text(json.dumps(to_dict(config)))
    return file
