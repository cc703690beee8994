"""Training from demonstrations, resumable bit for bit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.manipulation.demonstrations.dataset import ACTION, OBJECTS, STATE
from prism_motor.manipulation.diffusion.network import (
    make_policy,
    make_processors,
    measure_statistics,
)
from prism_motor.manipulation.diffusion.windows import TrainingWindows, draw_samples
from prism_motor.runs import RunError
from prism_motor.train.finite import check
from prism_motor.train.gradient import GradientTrainer

if TYPE_CHECKING:
    from prism_motor.domains import State
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.demonstrations.cache import Demonstrations


class HandlingTrainer(GradientTrainer):
    """Diffusion Policy on demonstrations; loss, optimiser and schedule are LeRobot's.

    The samples of an update depend only on the seed and the update's number. Like LeRobot's
    Diffusion Policy, this one keeps no moving average of its weights.

    Args:
        config: The run.
        demonstrations: The training data.
    """

    def __init__(self, config: ManipulationConfig, demonstrations: Demonstrations) -> None:
        _check_sizes(config, demonstrations)
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        policy = make_policy(config)
        policy.train()
        self.statistics = measure_statistics(demonstrations)
        self.normalise, _ = make_processors(policy, self.statistics)
        settings = policy.config
        optimizer = settings.get_optimizer_preset().build(policy.get_optim_params())
        self.windows = TrainingWindows(demonstrations, config.network)
        self.data_hash = _hash(demonstrations)
        torch.manual_seed(config.seed)  # arms of any size see the same noise
        super().__init__(
            config,
            policy,
            optimizer,
            schedule=settings.get_scheduler_preset().build(optimizer, config.updates),
            gradient_norm=config.optimiser.gradient_norm,
            log_every=config.log_every,
        )

    def loss(self) -> Tensor:
        """Return the loss on the samples of the next update."""
        config = self.config
        samples = draw_samples(len(self.windows), config.batch, config.seed, self.updates)
        batch = self.normalise(self.windows.batch(samples))
        for name, values in batch.items():
            if isinstance(values, Tensor):
                check(f"the input '{name}'", values)
        loss, _ = self.policy.forward(batch)
        return loss

    def update(self) -> dict[str, float] | None:
        """Do one update; return metrics after every ``log_every`` updates."""
        row = super().update()
        return row and {**row, "samples": self.updates * self.config.batch}

    def _state(self, random: dict[str, Tensor]) -> State:
        tensors, plain = super()._state(random)
        for key, entries in self.statistics.items():
            tensors |= {f"statistics/{key}/{k}": v.clone() for k, v in entries.items()}
        return tensors, {**plain, "data_sha256": self.data_hash}

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue from a saved state."""
        if plain["data_sha256"] != self.data_hash:
            raise RunError(
                f"The demonstrations in {self.config.demos} are not those the run started with. "
                "Put those back, or start a new run."
            )
        super().restore(tensors, plain)


def _check_sizes(config: ManipulationConfig, demonstrations: Demonstrations) -> None:
    """Raise if the sizes in the settings are not those of the demonstrations."""
    task = config.task
    wanted = {STATE: ("state", task.state), ACTION: ("action", task.action)}
    if config.network.inputs == "objects":
        wanted[OBJECTS] = ("objects", task.objects)
    for key, (name, size) in wanted.items():
        found = demonstrations.vectors[key].shape[-1]
        if size != found:
            raise InputError(
                f"task.{name} is {size}, but its size in the demonstrations is {found}. Leave "
                "task.state, task.objects and task.action out: they are read from the task."
            )


def _hash(demonstrations: Demonstrations) -> str:
    """Return the SHA-256 of the training data."""
    digest = hashlib.sha256()
    columns = {**demonstrations.vectors, **demonstrations.images, "ends": demonstrations.ends}
    for name, values in sorted(columns.items()):
        digest.update(f"{name} {tuple(values.shape)}\n".encode())
        digest.update(values.contiguous().numpy().tobytes())
    return digest.hexdigest()
