"""Gradient descent on a loss: the part of a trainer that domains share."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from prism_motor.runs.checkpoints import select
from prism_motor.train.finite import NonFiniteTrainingError

if TYPE_CHECKING:
    from prism_motor.domains import State
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
        self._rng = torch.get_rng_state()

    @abstractmethod
    def loss(self) -> Tensor:
        """Return the loss of the next update."""

    def update(self) -> dict[str, float] | None:
        """Do one update; return metrics after every ``log_every`` updates."""
        start = time.perf_counter()
        self._rng = torch.get_rng_state()
        loss = self.loss()
        if not torch.isfinite(loss):
            raise NonFiniteTrainingError(f"the loss is {loss.item()}")
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self._largest)
        if not torch.isfinite(norm):
            raise NonFiniteTrainingError(f"the norm of the gradient is {norm.item()}")
        rate = self.optimizer.param_groups[0]["lr"]
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        self.updates += 1
        self._losses.append(loss.item())
        self._norms.append(norm.item())
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

    def state(self) -> State:
        """Return (tensors, plain data) from which :meth:`restore` continues exactly."""
        return self._state(torch.get_rng_state())

    def state_before(self) -> State:
        """Return the state before a failed update; updates fail before any weight changes."""
        return self._state(self._rng)

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
        self.policy.load_state_dict(select(tensors, "policy."))
        entries: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for name, value in select(tensors, "optimizer.").items():
            index, key = name.split(".", 1)
            entries[int(index)][key] = value
        groups = plain["param_groups"]
        self.optimizer.load_state_dict({"state": dict(entries), "param_groups": groups})
        if self.schedule is not None:
            self.schedule.load_state_dict(plain["schedule"])
        torch.set_rng_state(tensors["torch_rng"])
        if "cuda_rng" in tensors:
            torch.cuda.set_rng_state(tensors["cuda_rng"])
        # Older checkpoints call an update an "iteration".
        self.updates = int(plain["updates"] if "updates" in plain else plain["iteration"])
        self.seconds = plain["seconds"]
        self._losses, self._norms = list(plain["losses"]), list(plain["norms"])

    def _state(self, rng: Tensor) -> State:
        tensors = {f"policy.{k}": v for k, v in self.policy.state_dict().items()}
        optimizer = self.optimizer.state_dict()
        for index, entries in optimizer["state"].items():
            tensors |= {f"optimizer.{index}.{k}": v for k, v in entries.items()}
        tensors["torch_rng"] = rng
        if any(parameter.is_cuda for parameter in self.policy.parameters()):
            tensors["cuda_rng"] = torch.cuda.get_rng_state()
        plain = {
            "updates": self.updates,
            "seconds": self.seconds,
            "losses": self._losses,
            "norms": self._norms,
            "param_groups": optimizer["param_groups"],
        }
        if self.schedule is not None:
            plain["schedule"] = self.schedule.state_dict()
        return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}, plain
