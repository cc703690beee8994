"""Optimisers in checkpoints."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from prism_motor.train.optimizers import pack_optimizer, unpack_optimizer


def _trained(steps: int) -> tuple[nn.Module, torch.optim.Adam]:
    torch.manual_seed(0)
    network = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    for step in range(steps):
        _step(network, optimizer, step)
    return network, optimizer


def _step(network: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    optimizer.zero_grad()
    network(torch.full((1, 3), float(step))).square().sum().backward()
    optimizer.step()


def _values(network: nn.Module) -> list[Tensor]:
    return [one.detach().clone() for one in network.parameters()]


def test_an_optimiser_continues_as_if_it_had_not_been_packed() -> None:
    whole, _ = _trained(5)
    half, optimizer = _trained(3)
    tensors, groups = pack_optimizer(optimizer, "mine.")
    tensors = {name: value.clone() for name, value in tensors.items()}
    assert set(tensors) == {
        f"mine.{i}.{k}" for i in (0, 1) for k in ("step", "exp_avg", "exp_avg_sq")
    }
    resumed, fresh = _trained(0)
    resumed.load_state_dict(half.state_dict())
    others = {"other.0.step": torch.zeros(())}
    unpack_optimizer(fresh, tensors | others, groups, "mine.")
    for step in (3, 4):
        _step(resumed, fresh, step)
    assert all(torch.equal(a, b) for a, b in zip(_values(whole), _values(resumed), strict=True))


def test_what_was_packed_is_not_changed_by_later_steps() -> None:
    _, optimizer = _trained(2)
    tensors, groups = pack_optimizer(optimizer)
    kept = {name: value.clone() for name, value in tensors.items()}
    network, fresh = _trained(0)
    unpack_optimizer(fresh, kept, groups)
    before = {name: value.clone() for name, value in kept.items()}
    _step(network, fresh, 7)
    assert all(torch.equal(kept[name], before[name]) for name in kept)
