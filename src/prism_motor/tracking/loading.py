"""Trained tracking policies, loaded from run folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prism_motor.domains import open_run, require_domain
from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import select
from prism_motor.tracking.config import TrackingConfig
from prism_motor.tracking.policy import TrackingPolicy


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
    require_domain(path, "tracking", "this")
    run, _, config = open_run(path)
    checkpoint = run.load(step)
    policy = TrackingPolicy(config.networks, config.task.layout)
    try:
        policy.load_state_dict(select(checkpoint.tensors, "policy."))
    except RuntimeError as error:
        raise RunError(
            f"The checkpoint {checkpoint.step} of {run.path} does not fit the networks that its "
            f"config.json describes: {error}"
        ) from error
    return LoadedPolicy(policy.eval(), config, checkpoint.step)
