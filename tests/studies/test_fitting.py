"""Several networks trained as one program."""

import copy

import numpy as np
import pytest
import torch

from prism_motor.studies.fitting import (
    Member,
    Split,
    Splits,
    Standardised,
    learning_rate_factor,
    train_together,
)
from prism_motor.studies.networks import LAYERS, StudyArm

PRISM = StudyArm("prism", "PRISM", "gated", gate_init=0.5)


def data(seed, rows=70):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 3))
    part = Split(x, np.stack([x[:, 0] * x[:, 1], x[:, 2]], 1))
    return Standardised(Splits(part, part, part, part))


def made(arm, seed):
    torch.manual_seed(seed)
    return arm.build(3, 2, 9, 8)


def network(seed):
    return made(PRISM, seed)


def parameters(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def trained_by_torch(net, found, seed, rate, updates=12, batch=32):
    """The same training with torch's own Adam, one network at a time."""
    x, y = found.train
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    shuffler, batches = torch.Generator().manual_seed(seed), []
    for update in range(updates):
        if not batches:
            batches = list(torch.randperm(len(x), generator=shuffler).split(batch))
        rows = batches.pop(0)
        optimizer.param_groups[0]["lr"] = rate * learning_rate_factor(update, updates)
        optimizer.zero_grad()
        (net(x[rows]) - y[rows]).square().mean().backward()
        optimizer.step()
    return parameters(net)


@pytest.mark.parametrize("interaction", [None, *LAYERS])
def test_training_together_is_torchs_adam_for_each_network_data_order_and_rate(interaction):
    degree = 1 if interaction == "linear" else 3
    arm, shared = StudyArm("arm", "arm", interaction, degree, position="both"), data(1)
    chosen = [(shared, 1, 1e-2), (shared, 1, 4e-2), (data(2), 5, 1e-2)]
    networks = [made(arm, seed) for _, seed, _ in chosen]
    expected = [
        trained_by_torch(copy.deepcopy(net), *rest)
        for net, rest in zip(networks, chosen, strict=True)
    ]
    members = [Member(net, *rest) for net, rest in zip(networks, chosen, strict=True)]
    train_together(members, updates=12, batch=32)
    for member, values in zip(members, expected, strict=True):
        torch.testing.assert_close(parameters(member.network), values, rtol=1e-4, atol=1e-5)


def test_gates_have_their_own_rate():
    still, moving = network(1), network(1)
    before = still[0].gate.detach().clone()
    for net, factor in ((still, 0.0), (moving, 1.0)):
        train_together([Member(net, data(1), 1, 1e-2)], updates=3, batch=32, gate_rate=factor)
    assert torch.equal(still[0].gate, before)
    assert not torch.equal(moving[0].gate, before)
    assert not torch.equal(still[0].weight, network(1)[0].weight)


def test_a_cost_closes_the_gates_that_the_loss_does_not_hold_open():
    arm = StudyArm("adaptive", "adaptive", "gated", gate_init=0.2)
    x = np.random.default_rng(0).normal(size=(500, 3))
    linear, product = x @ np.eye(3)[:, :2], np.stack([x[:, 0] * x[:, 1], x[:, 2]], 1)
    open_gates = []
    for targets in (linear, product):
        part = Split(x, targets)
        net = made(arm, 1)
        member = Member(net, Standardised(Splits(part, part, part, part)), 1, 2e-2)
        train_together([member], updates=300, batch=50, gate_cost=0.3)
        open_gates.append(int(net[0].gate.ne(0).sum()))
    assert open_gates[0] == 0
    assert open_gates[1] > 0


def test_marks_see_the_present_parameters():
    net = network(1)
    seen = []
    train_together(
        [Member(net, data(1), 1, 1e-2)],
        updates=4,
        batch=32,
        marks={2: lambda: seen.append(parameters(net)), 4: lambda: seen.append(parameters(net))},
    )
    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[1], parameters(net))


def test_column_weights_choose_what_is_learned():
    nets = network(1), network(1)
    for net, weight in zip(nets, ([1.0, 0.0], [0.5, 0.5]), strict=True):
        member = Member(net, data(1), 1, 1e-2)
        train_together([member], updates=1, batch=32, weight=torch.tensor(weight))
    # The output row of a column without weight has no gradient.
    assert torch.equal(nets[0][-1].weight[1], network(1)[-1].weight[1])
    assert not torch.equal(nets[1][-1].weight[1], network(1)[-1].weight[1])


@pytest.mark.parametrize("seeds", [(1, 1), (1, 2)])
def test_order_is_by_seed(seeds):
    nets = [network(1), network(1)]
    for net, seed in zip(nets, seeds, strict=True):
        train_together([Member(net, data(1), seed, 1e-2)], updates=3, batch=32)
    assert torch.equal(parameters(nets[0]), parameters(nets[1])) == (seeds[0] == seeds[1])
