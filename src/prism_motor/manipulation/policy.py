"""Trained policies: loading them from run folders, and exporting them to LeRobot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.manipulation.backbones import BACKBONES, Backbone
from prism_motor.manipulation.config import ManipulationConfig
from prism_motor.manipulation.data import tasks_of
from prism_motor.manipulation.frozen import load_weights
from prism_motor.runs.atomic import atomic_folder
from prism_motor.runs.checkpoints import select
from prism_motor.train.loading import open_trained

if TYPE_CHECKING:
    from prism_motor.manipulation.environment import Environment, HandlingActor
    from prism_motor.manipulation.tasks import Task


@dataclass(frozen=True)
class HandlingPolicy:
    """A trained policy."""

    config: ManipulationConfig
    """How it was trained."""
    step: int
    """Number of updates it was trained for."""
    network: Any
    """LeRobot's policy, in evaluation mode."""
    normalise: Any
    """LeRobot's pipeline from observations to inputs of the network, on the CPU."""
    denormalise: Any
    """LeRobot's pipeline from outputs of the network to actions, on the CPU."""

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return next(self.network.parameters()).device

    def to(self, device: str | torch.device) -> HandlingPolicy:
        """Move the network to a device."""
        return replace(self, network=self.network.to(device))

    @property
    def backbone(self) -> Backbone:
        """What kind of policy it is."""
        return BACKBONES[self.config.backbone]

    def acting_on(self, task: Task) -> HandlingActor:
        """Return the policy acting on one of its tasks."""
        return self.backbone.make_actor(self, task)


def load_policy(path: str | Path, step: int | None = None) -> HandlingPolicy:
    """Load a policy from a run folder.

    Args:
        path: The run folder.
        step: Which checkpoint; the newest by default.
    """
    run = open_trained(path, "manipulation", step)
    config, checkpoint = run.config, run.checkpoint
    backbone = BACKBONES[config.backbone]
    network = backbone.make_policy(config)
    with run.loading("policy"):
        load_weights(backbone, network, select(checkpoint.tensors, "policy."), checkpoint.state)
    statistics: dict[str, dict[str, Tensor]] = {}
    for name, value in select(checkpoint.tensors, "statistics/").items():
        key, entry = name.split("/")
        statistics.setdefault(key, {})[entry] = value
    network.eval()
    processors = backbone.make_processors(network, statistics)
    return HandlingPolicy(config, checkpoint.step, network, *processors)


def check_fit(policy: HandlingPolicy, environment: Environment) -> None:
    """Raise unless a policy was trained for an environment's task."""
    trained, task = policy.config.task, environment.task
    known = [(one.suite, one.name) for one in tasks_of(policy.config)]
    if (task.suite, task.name) not in known:
        raise InputError(
            f"The policy was trained on {trained.suite} {trained.name} and cannot be evaluated on "
            f"{task.suite} {task.name}: give a run that was trained there."
        )
    sizes = (trained.state, trained.objects, trained.action)
    # Of several tasks, objects differ and are not seen.
    objects = environment.object_names if len(known) == 1 else ()
    found = (len(environment.state_names), len(objects), len(environment.action_names))
    if sizes != found:
        raise InputError(
            f"The policy expects state, object and action sizes {sizes}, but {task.name} now has "
            f"{found}: it was trained with another version of the environment."
        )


def export_policy(policy: HandlingPolicy, folder: Path) -> Path:
    """Write a policy as a LeRobot pretrained folder, for ``--policy.path``.

    Args:
        policy: The policy.
        folder: Output folder; an existing one is replaced.
    """
    policy.network.config.device = policy.config.device  # LeRobot's commands use it if it is there
    with atomic_folder(folder) as temporary:
        policy.backbone.export(policy, temporary, folder)
    return folder
