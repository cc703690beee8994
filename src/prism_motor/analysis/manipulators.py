"""The imitation policies that an analysis compares, and why some of them had to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism_motor.analysis.comparing import load_each, mixed_arms
from prism_motor.manipulation.diffusion.policy import Policy, load_policy
from prism_motor.runs import Run, RunError
from prism_motor.runs.weights import hash_weights


@dataclass(frozen=True)
class Manipulator:
    """A policy that handles things, with the name that tables and figures give it."""

    path: Path
    """Its run folder."""
    policy: Policy
    """The policy."""
    arm: str
    """Arm that it is counted with."""

    @property
    def seed(self) -> int:
        """Its training seed."""
        return self.policy.config.seed

    @property
    def about(self) -> dict[str, Any]:
        """Where it came from, for the record."""
        config = self.policy.config
        return {
            "run": str(self.path),
            "arm": self.arm,
            "preset": config.preset,
            "conditioner": config.conditioner.kind,
            "training_seed": config.seed,
            "checkpoint": self.policy.step,
            "policy_sha256": hash_weights(self.policy.network.state_dict()),
        }


def is_manipulation(path: Path) -> bool:
    """Say whether a run learned from demonstrations; what cannot be opened did not."""
    from prism_motor.manipulation.config import KIND

    try:
        return Run.open(path).config.get("kind") == KIND
    except RunError:
        return False


def load_manipulators(
    paths: Sequence[Path], checkpoint: int | None = None
) -> tuple[list[Manipulator], list[str]]:
    """Load the runs of one task; return them and a sentence about each one left out.

    Args:
        paths: Run folders; the first that can be loaded decides the task.
        checkpoint: Which checkpoint; the newest by default.
    """
    loaded, left_out = load_each(paths, lambda path: load_policy(path, checkpoint))
    found: list[Manipulator] = []
    for path, policy in loaded:
        if found and _sees(policy) != _sees(found[0].policy):
            left_out.append(
                f"{path} is left out: it was trained on {_sees(policy)}, {found[0].path} on "
                f"{_sees(found[0].policy)}."
            )
            continue
        found.append(Manipulator(path, policy, policy.config.arm))
    return _name_apart(found), left_out


def _sees(policy: Policy) -> str:
    """Say what a policy does and what it looks at."""
    task, network = policy.config.task, policy.config.network
    size = f" of {network.image_size} pixels" if network.inputs == "images" else ""
    return f"{task.suite} {task.name} with {network.inputs}{size}"


def _name_apart(manipulators: list[Manipulator]) -> list[Manipulator]:
    """Call the runs of an arm by their folders if more than the training seed differs."""
    mixed = mixed_arms(
        (
            m.arm,
            (replace(m.policy.config, seed=0, threads=1, steps=1, demos=""), m.policy.step),
            m.seed,
        )
        for m in manipulators
    )
    return [replace(m, arm=str(m.path)) if m.arm in mixed else m for m in manipulators]
