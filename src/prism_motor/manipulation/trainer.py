"""Training from demonstrations, resumable bit for bit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prism_motor._checks import InputError
from prism_motor.manipulation.augmentation import shift_images
from prism_motor.manipulation.backbones import BACKBONES
from prism_motor.manipulation.demonstrations.dataset import ACTION, OBJECTS, STATE
from prism_motor.manipulation.frozen import HASH, frozen_hash, load_weights, trained_weights
from prism_motor.manipulation.windows import TrainingWindows, draw_samples
from prism_motor.runs import RunError
from prism_motor.train.finite import check
from prism_motor.train.gradient import GradientTrainer

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.demonstrations.cache import Demonstrations
    from prism_motor.protocols import State


class HandlingTrainer(GradientTrainer):
    """A policy on demonstrations; loss, optimiser and schedule are LeRobot's.

    The samples of an update depend only on the seed and the update's number. Like LeRobot's
    policies, this one keeps no moving average of its weights.

    Args:
        config: The run.
        demonstrations: The training data.
    """

    def __init__(self, config: ManipulationConfig, demonstrations: Demonstrations) -> None:
        _check_sizes(config, demonstrations)
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self.backbone = BACKBONES[config.backbone]
        policy = self.backbone.make_policy(config, config.device)
        policy.train()
        self.frozen_hash = frozen_hash(self.backbone, policy)
        self.backbone.check_instructions(policy, demonstrations.instructions)
        self.statistics = self.backbone.measure_statistics(demonstrations)
        self.normalise, _ = self.backbone.make_processors(policy, self.statistics)
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
        drawn: dict[str, Any] = self.windows.batch(samples)
        if config.random_shift:
            for camera, key in enumerate(self.windows.demonstrations.images):
                drawn[key] = shift_images(
                    drawn[key], config.random_shift, config.seed, self.updates, camera
                )
        if self.backbone.follows_instructions:
            drawn["task"] = self.windows.instructions(samples)
        batch = self.normalise(drawn)
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
        plain |= {"data_sha256": self.data_hash}
        return tensors, plain if self.frozen_hash is None else {**plain, HASH: self.frozen_hash}

    def weights(self) -> dict[str, Tensor]:
        """Return the weights without those that are never trained."""
        return trained_weights(self.backbone, self.policy)

    def load_weights(self, weights: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Put saved weights back beside those that are never trained."""
        load_weights(self.backbone, self.policy, weights, plain)

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
    """Return the SHA-256 of the training data; of images that stay on disk, of some of them."""
    digest = hashlib.sha256()
    images = {
        name: values if isinstance(values, Tensor) else values[demonstrations.starts]
        for name, values in demonstrations.images.items()
    }
    columns = {**demonstrations.vectors, **images, "ends": demonstrations.ends}
    for name, values in sorted(columns.items()):
        digest.update(f"{name} {tuple(values.shape)}\n".encode())
        digest.update(values.contiguous().numpy().tobytes())
    if len({*demonstrations.instructions}) > 1:
        digest.update("\n".join(demonstrations.instructions).encode())
    return digest.hexdigest()
