"""Trained tracking policies, loaded from run folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prism_motor.runs.checkpoints import select
from prism_motor.tracking.config import TrackingConfig
from prism_motor.tracking.policy import TrackingPolicy
from prism_motor.train.loading import open_trained


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy and how it was trained."""

    policy: TrackingPolicy
    """The policy, on the CPU."""
    config: TrackingConfig
    """How it was trained."""
    step: int
    """After how many updates."""

    @property
    def network(self) -> TrackingPolicy:
        """What is deployed, under the name that studies know it by."""
        return self.policy


def load_policy(path: str | Path, step: int | None = None) -> LoadedPolicy:
    """Load a policy from a run folder.

    Args:
        path: The run folder, or the name of a shipped policy.
        step: Which checkpoint; the newest by default.
    """
    run = open_trained(path, "tracking", step)
    config: TrackingConfig = run.config
    policy = TrackingPolicy(config.networks, config.task.layout)
    with run.loading("networks"):
        policy.load_state_dict(select(run.checkpoint.tensors, "policy."))
    return LoadedPolicy(policy.eval(), config, run.checkpoint.step)
