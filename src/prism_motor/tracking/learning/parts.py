"""What the learner consists of: networks, targets, optimisers, latents, and how they are saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from prism_motor.runs.checkpoints import select
from prism_motor.tracking.learning import losses
from prism_motor.tracking.learning.latents import LatentRing
from prism_motor.tracking.learning.networks import (
    Discriminator,
    TrackingActor,
    ValueEnsemble,
    frozen_copy,
)
from prism_motor.tracking.policy import TrackingPolicy
from prism_motor.train.finite import (
    NonFiniteTrainingError,
    check,
    check_gradients,
    check_optimizer,
    check_weights,
)
from prism_motor.train.optimizers import pack_optimizer, unpack_optimizer

if TYPE_CHECKING:
    from prism_motor.tracking.config import LearningSettings, TrackingNetworkConfig
    from prism_motor.tracking.observations import Layout

Row = dict[str, Tensor]
"""Measures of an update by name, each a scalar."""


class LearnerParts:
    """Networks, targets, optimisers and latents.

    All randomness comes from one generator, which is part of :meth:`state`: a learner resumed from
    there repeats an uninterrupted one bit for bit.

    Args:
        settings: All settings.
        layout: The observations.
        seed: Seed of the initial weights and of all draws.
        device: Where to learn.
        precision: ``fp32`` or ``bf16``, of the networks' matrix products.

    Attributes:
        policy: What is deployed.
        steps: Finished gradient steps.
        ring: Latents for rollouts.
    """

    def __init__(
        self,
        settings: LearningSettings,
        layout: Layout,
        *,
        seed: int = 1,
        device: torch.device | str = "cpu",
        precision: str = "fp32",
    ) -> None:
        self.settings, self.layout = settings, layout
        self._device, self._precision = torch.device(device), precision
        networks = settings.networks
        self._critics = _name_critics(settings)
        with torch.random.fork_rng(devices=[]):  # initial weights depend on the seed alone
            torch.manual_seed(seed)
            self.policy, self.values, self.discriminator = _make_networks(
                networks, layout, len(self._critics)
            )
        for network in self.models().values():
            network.to(self._device)
        self._target_values = frozen_copy(self.values)
        self._target_map = frozen_copy(self.policy.backward_map)
        self._polyak = self._pair_targets()
        self._optimizers = self._make_optimizers()
        self.generator = torch.Generator(self._device).manual_seed(seed)
        self.ring = LatentRing(settings.latents.ring, networks.latent, self._device)
        self._auxiliary_weights = torch.tensor(settings.auxiliary.weights, device=self._device)
        self._auxiliary_scale, self._imitation_scale = losses.RunningScale(), losses.RunningScale()
        self._anchor: TrackingActor | None = None
        self.steps = 0

    def models(self) -> dict[str, nn.Module]:
        """Return the trained networks by name."""
        return {
            "policy": self.policy,
            "values": self.values,
            "discriminator": self.discriminator,
        }

    def _make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        config = self.settings.learner
        backward_map = list(self.policy.backward_map.parameters())
        pair = [
            {"params": list(self.values.parameters())},
            {"params": backward_map, "lr": config.backward_rate},
        ]
        rate = self.settings.discriminator.learning_rate
        return {
            "discriminator": _adam(self.discriminator.parameters(), rate),
            "values": _adam(pair, config.learning_rate),
            "actor": _adam(self.policy.actor.parameters(), config.learning_rate),
        }

    def _pair_targets(self) -> list[tuple[list[Tensor], list[Tensor], float]]:
        """Return targets, what they follow, and the share that enters per update."""
        config = self.settings.learner
        target: list[Tensor] = list(self._target_map.parameters())
        source: list[Tensor] = list(self.policy.backward_map.parameters())
        pairs = [(target, source, config.forward_tau)]
        for network in range(1 + len(self._critics)):
            share = config.critic_tau if network else config.forward_tau
            target = self._target_values.split_parameters(network)
            pairs.append((target, self.values.split_parameters(network), share))
        return pairs

    # --- steps ---

    @torch.no_grad()
    def copy_to_targets(self) -> None:
        """Make the targets equal to what they follow."""
        for targets, sources, _ in self._polyak:
            for target, source in zip(targets, sources, strict=True):
                target.copy_(source)

    def drop_anchor(self) -> None:
        """Hold the actor where it is now from here on, as ``anchor`` says."""
        self._anchor = frozen_copy(self.policy.actor)

    def _descend(self, name: str, parts: Mapping[str, Tensor], row: Row) -> None:
        """Take one step on the sum of some losses."""
        for part, loss in parts.items():
            check(f"the loss {part!r}", loss)
            row[f"loss/{part}"] = loss.detach()
        optimizer = self._optimizers[name]
        optimizer.zero_grad()  # what stands still has none, not that of the warm start
        moving = [group for group in optimizer.param_groups if group["lr"]]
        parameters = [p for group in moving for p in group["params"]]
        # Asking for these gradients alone skips those of every other network in the graph.
        gradients = torch.autograd.grad(sum(parts.values()), parameters)  # type: ignore[arg-type]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        norm = get_total_norm(gradients)
        if not torch.isfinite(norm):
            check_gradients(self.models())
            raise NonFiniteTrainingError(f"the norm of the gradient of {name} is {norm.item()}")
        row[f"gradient/{name}"] = norm
        optimizer.step()

    @torch.no_grad()
    def _move_targets(self) -> None:
        for targets, sources, share in self._polyak:
            torch._foreach_lerp_(targets, sources, share)  # type: ignore[attr-defined]

    # --- saving ---

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return (copies on the CPU, plain data) from which :meth:`restore` continues exactly."""
        check_weights(self.models())
        tensors: dict[str, Tensor] = {}
        for name, network in self.models().items():
            tensors |= {f"{name}.{k}": v for k, v in network.state_dict().items()}
        for name, network in self._target_networks().items():
            tensors |= {f"target.{name}.{k}": v for k, v in network.state_dict().items()}
        if self._anchor is not None:
            tensors |= {f"anchor.{k}": v for k, v in self._anchor.state_dict().items()}
        groups = {}
        for name, optimizer in self._optimizers.items():
            check_optimizer(optimizer)
            moments, groups[name] = pack_optimizer(optimizer, f"optimizer.{name}.")
            tensors |= moments
        ring, pushed = self.ring.state()
        tensors |= {f"ring.{k}": v for k, v in ring.items()}
        tensors["generator"] = self.generator.get_state()
        plain = {
            "steps": self.steps,
            "param_groups": groups,
            "ring_pushed": pushed,
            "auxiliary_scale": self._auxiliary_scale.state(),
            "imitation_scale": self._imitation_scale.state(),
        }
        return {k: v.detach().to("cpu", copy=True) for k, v in tensors.items()}, plain

    def _target_networks(self) -> dict[str, nn.Module]:
        return {"values": self._target_values, "backward_map": self._target_map}

    def restore(self, tensors: dict[str, Tensor], plain: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        for name, network in self.models().items():
            network.load_state_dict(select(tensors, f"{name}."))
        for name, network in self._target_networks().items():
            network.load_state_dict(select(tensors, f"target.{name}."))
        if anchor := select(tensors, "anchor."):
            self.drop_anchor()
            self._anchor.load_state_dict(anchor)  # type: ignore[union-attr]
        for name, optimizer in self._optimizers.items():
            groups = plain["param_groups"][name]
            unpack_optimizer(optimizer, tensors, groups, f"optimizer.{name}.")
        self.ring.restore(select(tensors, "ring."), plain["ring_pushed"])
        self.generator.set_state(tensors["generator"])
        self._auxiliary_scale.restore(plain["auxiliary_scale"])
        self._imitation_scale.restore(plain["imitation_scale"])
        self.steps = int(plain["steps"])


def count_weights(settings: LearningSettings, layout: Layout) -> tuple[int, int]:
    """Count the parameters of the actor and of all networks, without making any."""
    return _count_weights(settings.networks, layout, len(_name_critics(settings)))


@lru_cache(maxsize=16)
def _count_weights(
    networks: TrackingNetworkConfig, layout: Layout, critics: int
) -> tuple[int, int]:
    with torch.device("meta"):
        made = _make_networks(networks, layout, critics)
    sizes = [sum(p.numel() for p in one.parameters()) for one in (made[0].actor, *made)]
    return sizes[0], sum(sizes[1:])


def _name_critics(settings: LearningSettings) -> tuple[str, ...]:
    """Return the critics, named like their weights."""
    return ("imitation", *(["auxiliary"] if settings.learner.auxiliary_weight else []))


def _make_networks(
    networks: TrackingNetworkConfig, layout: Layout, critics: int
) -> tuple[TrackingPolicy, ValueEnsemble, Discriminator]:
    return (
        TrackingPolicy(networks, layout),
        ValueEnsemble(networks, layout, [networks.latent, *([1] * critics)]),  # forward map first
        Discriminator(networks, layout),
    )


def _adam(parameters: Iterable[Any], rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=rate, fused=True)
