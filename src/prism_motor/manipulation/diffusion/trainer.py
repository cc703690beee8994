"""The training loop: one update after the other, resumable to the bit."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from prism_motor.manipulation.config import ImitationConfig
from prism_motor.manipulation.demonstrations.cache import Demonstrations
from prism_motor.manipulation.diffusion.network import (
    make_policy,
    make_processors,
    measure_statistics,
)
from prism_motor.manipulation.diffusion.windows import TrainingWindows, draw_samples
from prism_motor.runs import RunError
from prism_motor.train.finite import NonFiniteTrainingError


class Trainer:
    """Diffusion Policy on demonstrations; loss, optimiser and schedule are LeRobot's.

    Which samples an update sees depends on the seed and its number alone, all other randomness is
    torch's, and its state is part of :meth:`state`: a run that goes on from there repeats an
    uninterrupted one bit for bit. LeRobot's Diffusion Policy keeps no moving average of its
    weights, and so neither does this.

    Args:
        config: The run.
        demonstrations: What to learn from.

    Attributes:
        iteration: Finished updates.
    """

    def __init__(self, config: ImitationConfig, demonstrations: Demonstrations) -> None:
        self.config = config
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self.policy = make_policy(config)
        self.policy.train()
        self.statistics = measure_statistics(demonstrations)
        self.normalise, _ = make_processors(self.policy, self.statistics)
        settings = self.policy.config
        self.optimizer = settings.get_optimizer_preset().build(self.policy.get_optim_params())
        self.schedule = settings.get_scheduler_preset().build(self.optimizer, config.steps)
        self.windows = TrainingWindows(demonstrations, config.network)
        self.data_hash = _hash(demonstrations)
        torch.manual_seed(config.seed)  # arms of any size see the same noise
        self.iteration = 0
        self.seconds = 0.0
        self._losses: list[float] = []
        self._norms: list[float] = []
        self._rng = torch.get_rng_state()

    def update(self) -> dict[str, float] | None:
        """Do one update; return metrics whenever ``log_every`` of them are done."""
        start = time.perf_counter()
        self._rng = torch.get_rng_state()
        config = self.config
        samples = draw_samples(len(self.windows), config.batch, config.seed, self.iteration)
        loss, _ = self.policy.forward(self.normalise(self.windows.batch(samples)))
        if not torch.isfinite(loss):
            raise NonFiniteTrainingError(f"the loss is {loss.item()}")
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(
            self.policy.parameters(), config.optimiser.gradient_norm
        )
        if not torch.isfinite(norm):
            raise NonFiniteTrainingError(f"the norm of the gradient is {norm.item()}")
        rate = self.optimizer.param_groups[0]["lr"]
        self.optimizer.step()
        self.schedule.step()
        self.iteration += 1
        self._losses.append(loss.item())
        self._norms.append(norm.item())
        self.seconds += time.perf_counter() - start
        if self.iteration % config.log_every and self.iteration != config.steps:
            return None
        row = {
            "iteration": self.iteration,
            "samples": self.iteration * config.batch,
            "seconds": round(self.seconds, 3),
            "loss": sum(self._losses) / len(self._losses),
            "gradient_norm": sum(self._norms) / len(self._norms),
            "learning_rate": rate,
            "updates_per_second": self.iteration / self.seconds,
        }
        self._losses, self._norms = [], []
        return row

    def state(self, before_update: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return (tensors, plain data) from which :meth:`restore` goes on exactly.

        Args:
            before_update: After an update that failed: the state from before it.
        """
        tensors = {f"policy.{k}": v for k, v in self.policy.state_dict().items()}
        optimizer = self.optimizer.state_dict()
        for index, entries in optimizer["state"].items():
            tensors |= {f"optimizer.{index}.{k}": v for k, v in entries.items()}
        for key, entries in self.statistics.items():
            tensors |= {f"statistics/{key}/{k}": v for k, v in entries.items()}
        tensors["torch_rng"] = self._rng if before_update else torch.get_rng_state()
        if self.config.device.startswith("cuda"):
            tensors["cuda_rng"] = torch.cuda.get_rng_state()
        plain = {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "losses": self._losses,
            "norms": self._norms,
            "param_groups": optimizer["param_groups"],
            "schedule": self.schedule.state_dict(),
            "data_sha256": self.data_hash,
        }
        return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}, plain

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Go on from a saved state."""
        if plain["data_sha256"] != self.data_hash:
            raise RunError(
                f"The demonstrations in {self.config.demos} are not those that the run began with. "
                "Put those back, or start a new run."
            )
        self.policy.load_state_dict(part(tensors, "policy."))
        entries: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for name, value in part(tensors, "optimizer.").items():
            index, key = name.split(".", 1)
            entries[int(index)][key] = value
        groups = plain["param_groups"]
        self.optimizer.load_state_dict({"state": dict(entries), "param_groups": groups})
        self.schedule.load_state_dict(plain["schedule"])
        torch.set_rng_state(tensors["torch_rng"])
        if "cuda_rng" in tensors:
            torch.cuda.set_rng_state(tensors["cuda_rng"])
        self.iteration, self.seconds = plain["iteration"], plain["seconds"]
        self._losses, self._norms = list(plain["losses"]), list(plain["norms"])


def part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with ``prefix``, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _hash(demonstrations: Demonstrations) -> str:
    """Return the SHA-256 of what is learned from."""
    digest = hashlib.sha256()
    columns = {**demonstrations.vectors, **demonstrations.images, "ends": demonstrations.ends}
    for name, values in sorted(columns.items()):
        digest.update(f"{name} {tuple(values.shape)}\n".encode())
        digest.update(values.contiguous().numpy().tobytes())
    return digest.hexdigest()
