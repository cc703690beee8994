"""Gradient descent on a loss: the part of a trainer that domains share."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from prism_motor._devices import autocast, random_state, set_random_state
from prism_motor.runs.checkpoints import select
from prism_motor.train.finite import (
    NonFiniteTrainingError,
    check,
    check_gradients,
    check_optimizer,
    check_weights,
    explain,
)
from prism_motor.train.optimizers import pack_optimizer, unpack_optimizer

if TYPE_CHECKING:
    from prism_motor.protocols import State
    from prism_motor.train.config import RunConfig


class GradientTrainer(ABC):
    """One optimiser step per update, resumable bit for bit.

    Subclasses define the loss. Between calls it may depend only on torch's random state, which is
    saved, and on :attr:`updates`.

    Args:
        config: The run.
        policy: The policy to train; its tensors are saved as ``policy.*``.
        optimizer: The optimiser.
        schedule: Learning-rate schedule, stepped after every update.
        gradient_norm: Gradients are clipped to this norm.
        log_every: Updates per row of metrics.

    Attributes:
        updates: Number of finished updates.
        seconds: Time spent on them.
    """

    def __init__(
        self,
        config: RunConfig,
        policy: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        schedule: Any = None,
        gradient_norm: float = math.inf,
        log_every: int = 1,
    ) -> None:
        self.config: Any = config
        self.policy, self.optimizer, self.schedule = policy, optimizer, schedule
        self._largest, self._log_every = gradient_norm, log_every
        self.updates, self.seconds = 0, 0.0
        self._losses: list[float] = []
        self._norms: list[float] = []
        self._random = self._random_state()
        self._buffers: dict[str, Tensor] = {}
        self._before: State | None = None

    @abstractmethod
    def loss(self) -> Tensor:
        """Return the loss of the next update."""

    def update(self) -> dict[str, float] | None:
        """Do one update; return metrics after every ``log_every`` updates."""
        start = time.perf_counter()
        self._before, self._random = None, self._random_state()
        buffers = self.policy.named_buffers(prefix="policy")
        self._buffers = {name: value.detach().cpu().clone() for name, value in buffers}
        rate = self.optimizer.param_groups[0]["lr"]
        try:
            loss, norm = self._learn()
        except NonFiniteTrainingError as error:
            raise NonFiniteTrainingError(explain(error, self.models())) from error
        if self.schedule is not None:
            self.schedule.step()
        self.updates += 1
        self._losses.append(loss)
        self._norms.append(norm)
        self.seconds += time.perf_counter() - start
        if self.updates % self._log_every and self.updates != self.config.updates:
            return None
        row = {
            "update": self.updates,
            "seconds": round(self.seconds, 3),
            "loss": sum(self._losses) / len(self._losses),
            "gradient_norm": sum(self._norms) / len(self._norms),
            "learning_rate": rate,
            "updates_per_second": self.updates / self.seconds,
        }
        self._losses, self._norms = [], []
        return row

    def _learn(self) -> tuple[float, float]:
        """Take one step of the optimiser; return the loss and the norm of its gradient."""
        models = self.models()
        with autocast(self._device, self.config.precision):
            loss = self.loss().float()
        check("the loss", loss)
        self.optimizer.zero_grad()
        loss.backward()
        parameters = [p for p in self.policy.parameters() if p.grad is not None]
        norm = get_total_norm(p.grad for p in parameters if p.grad is not None)
        if not torch.isfinite(norm):
            check_gradients(models)
            raise NonFiniteTrainingError(f"the norm of the gradient is {norm.item()}")
        clip_grads_with_norm_(parameters, self._largest, norm)
        if self._may_overflow(min(norm.item(), self._largest)):
            self._before = self.state_before()
        check_optimizer(self.optimizer)
        self.optimizer.step()
        check_weights(models)
        return loss.item(), norm.item()

    def _may_overflow(self, norm: float) -> bool:
        """Return whether a step could make finite weights infinite, as no sensible one can."""
        return any(
            group["lr"] * max(1.0, norm, group.get("weight_decay", 0.0)) > 1.0
            for group in self.optimizer.param_groups
        )

    def state(self) -> State:
        """Return (tensors, plain data) from which :meth:`restore` continues exactly."""
        return self._state(self._random_state())

    def state_before(self) -> State:
        """Return the state before a failed update."""
        if self._before is not None:
            return self._before
        # Copying all weights before every update would cost a third of it. Until the step that may
        # overflow, only buffers and random numbers have changed.
        tensors, plain = self._state(self._random)
        return {name: self._buffers.get(name, value) for name, value in tensors.items()}, plain

    def _random_state(self) -> dict[str, Tensor]:
        return random_state(self._device)

    @property
    def _device(self) -> torch.device:
        return next(self.policy.parameters()).device

    def weights(self) -> dict[str, Tensor]:
        """Return the policy's tensors that are saved: all of them by default."""
        return self.policy.state_dict()

    def load_weights(self, weights: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Put saved tensors back; ``plain`` is the rest of the saved state."""
        self.policy.load_state_dict(weights)

    def models(self) -> dict[str, nn.Module]:
        """Return the policy."""
        return {"policy": self.policy}

    def describe(self, row: Mapping[str, float]) -> str:
        """Describe the progress of training in one line."""
        return (
            f"loss {row['loss']:.4f}  gradient {row['gradient_norm']:.2f}  "
            f"{row['updates_per_second']:.1f} updates/s"
        )

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.load_weights(select(tensors, "policy."), plain)
        unpack_optimizer(self.optimizer, tensors, plain["param_groups"])
        if self.schedule is not None:
            self.schedule.load_state_dict(plain["schedule"])
        set_random_state(tensors, self._device)
        # Older checkpoints call an update an "iteration".
        self.updates = int(plain["updates"] if "updates" in plain else plain["iteration"])
        self.seconds = plain["seconds"]
        self._losses, self._norms = list(plain["losses"]), list(plain["norms"])

    def _state(self, random: dict[str, Tensor]) -> State:
        tensors = {f"policy.{k}": v for k, v in self.weights().items()}
        moments, groups = pack_optimizer(self.optimizer)
        tensors |= moments | random
        plain = {
            "updates": self.updates,
            "seconds": self.seconds,
            "losses": list(self._losses),
            "norms": list(self._norms),
            "param_groups": groups,
        }
        if self.schedule is not None:
            plain["schedule"] = self.schedule.state_dict()
        return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}, plain
