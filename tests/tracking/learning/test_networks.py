"""Networks: counts to the last parameter, ensembles, filters, initialisation."""

import pytest
import torch
from torch import nn

from prism_motor._checks import InputError
from prism_motor.nn import count_parameters
from prism_motor.tracking.config import TrackingNetworkConfig
from prism_motor.tracking.learning.networks import (
    BackwardMap,
    Discriminator,
    EnsembleLinear,
    EnsembleNorm,
    EnsembleNormTanh,
    TrackingActor,
    ValueEnsemble,
    make_filter,
)
from prism_motor.tracking.observations import Layout
from prism_motor.tracking.policy import TrackingPolicy, count_deployed
from prism_motor.tracking.presets import ARMS, PRESETS, arm_networks

LAYOUT = Layout(compact=True)
SMALL = PRESETS["tiny"].settings.networks
RESIDUAL = TrackingNetworkConfig(width=16, layers=2, critic_embedding=3, latent=8)


def test_counts_of_the_paper():
    paper, layout = TrackingNetworkConfig(), Layout()
    with torch.device("meta"):
        assert count_parameters(TrackingActor(paper, layout)) == 31_906_145
        assert count_parameters(BackwardMap(paper, layout)) == 201_472
        assert count_parameters(ValueEnsemble(paper, layout, [256])) == 135_865_204
        assert count_parameters(ValueEnsemble(paper, layout, [1])) == 134_820_214
        assert count_parameters(Discriminator(paper, layout)) == 2_905_089
        everything = ValueEnsemble(paper, layout, [256, 1, 1])
        assert count_parameters(everything) == 135_865_204 + 2 * 134_820_214


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_and_arm_constructs_without_memory(preset):
    layout = PRESETS[preset].task.layout
    counts = {}
    for arm in ARMS:
        networks = arm_networks(arm, PRESETS[preset])
        with torch.device("meta"):
            counts[arm] = count_deployed(TrackingPolicy(networks, layout))
            ValueEnsemble(networks, layout, [networks.latent, 1, 1])
            Discriminator(networks, layout)
    filter_size = counts["prism"] - counts["mlp"]
    assert filter_size == (555_768 if preset == "paper" else 139_500)
    assert abs(counts["mlp-matched"] - counts["prism"]) <= 1e-3 * filter_size
    assert counts["mlp-large"] > counts["prism"] or preset != "paper"
    if preset == "paper":
        assert (counts["mlp"], counts["prism"], counts["mlp-large"]) == (
            32_109_477, 32_665_245, 49_260_453,
        )  # fmt: skip


def test_an_ensemble_is_its_members():
    layer, norm, squash = EnsembleLinear(5, 3, 4), EnsembleNorm(5, 4), EnsembleNormTanh(5, 4)
    for parameter in [*layer.parameters(), *norm.parameters(), *squash.parameters()]:
        nn.init.normal_(parameter)
    shared, own = torch.randn(7, 5), torch.randn(4, 7, 5)
    for member in range(4):
        weight, bias = layer.weight[member], layer.bias[member, 0]
        for x in (shared, own):
            found, one = layer(x)[member], x if x is shared else x[member]
            assert torch.allclose(found, one @ weight + bias, atol=1e-5)
        scale, shift = norm.weight[member, 0], norm.bias[member, 0]
        expected = nn.functional.layer_norm(own[member], (5,), scale, shift)
        assert torch.allclose(norm(own)[member], expected, atol=1e-5)
        scale, shift = squash.weight[member, 0], squash.bias[member, 0]
        expected = nn.functional.layer_norm(own[member], (5,), scale, shift).tanh()
        assert torch.allclose(squash(own)[member], expected, atol=1e-6)


def test_gradients_of_the_fast_tanh_are_those_of_tanh():
    layer = EnsembleNormTanh(6, 2)
    x = torch.randn(2, 4, 6, requires_grad=True)
    plain = torch.addcmul(layer.bias, nn.functional.layer_norm(x, (6,)), layer.weight).tanh()
    inputs = [x, layer.weight, layer.bias]
    seed = torch.randn(2, 4, 6)
    found = torch.autograd.grad(layer(x), inputs, seed)
    expected = torch.autograd.grad(plain, inputs, seed)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("config", [SMALL, RESIDUAL])
@pytest.mark.parametrize("kind", ["none", "prism", "mlp"])
def test_networks_of_an_ensemble_share_nothing(config, kind):
    config = TrackingNetworkConfig(**{**vars(config), "filter": kind, "critic_history": True})
    values = ValueEnsemble(config, LAYOUT, [config.latent, 1, 1])
    inputs = torch.randn(5, LAYOUT.size), torch.randn(5, config.latent), torch.randn(5, 29)
    outputs = values(*inputs)
    assert [tuple(one.shape) for one in outputs] == [(2, 5, config.latent), (2, 5, 1), (2, 5, 1)]
    for network in range(3):
        values.zero_grad()
        values(*inputs)[network].sum().backward()
        members = slice(2 * network, 2 * network + 2)
        for part in (values.embed_latent, values.embed_action, values.trunk):
            for parameter in part.parameters():
                gradient = parameter.grad.clone()
                assert gradient[members].any()
                gradient[members] = 0
                assert not gradient.any()
        for other in range(3):
            for parameter in [
                *values.inputs[other].parameters(),
                *values.heads[other].parameters(),
            ]:
                touched = parameter.grad is not None and bool(parameter.grad.any())
                assert not touched or other == network
    # The views of the networks' parameters cover each number once.
    views = [view for network in range(3) for view in values.split_parameters(network)]
    assert sum(view.numel() for view in views) == count_parameters(values)
    for view in views:
        view.data.fill_(7.0)
    assert all((parameter == 7.0).all() for parameter in values.parameters())


def test_streams_that_a_network_must_not_see_do_not_matter():
    policy = TrackingPolicy(SMALL, LAYOUT)
    values = ValueEnsemble(SMALL, LAYOUT, [1])
    x, z, a = torch.randn(4, LAYOUT.size), torch.randn(4, SMALL.latent), torch.randn(4, 29)
    changed = {name: x.clone() for name in LAYOUT.columns}
    for name, columns in LAYOUT.columns.items():
        changed[name][:, columns] += 1.0
    before = policy(x, z), policy.encode(x), values(x, z, a)[0]
    seen = {
        name: [
            not torch.equal(old, new)
            for old, new in zip(
                before, (policy(y, z), policy.encode(y), values(y, z, a)[0]), strict=True
            )
        ]
        for name, y in changed.items()
    }
    assert seen == {
        "state": [True, True, True],
        "last_action": [True, False, True],
        "history": [True, False, False],
        "privileged": [False, True, True],
    }


def test_filters_change_the_history_alone_and_keep_its_size():
    for kind in ("prism", "mlp"):
        made = make_filter(TrackingNetworkConfig(filter=kind), 372)
        assert made(torch.randn(3, 372)).shape == (3, 372)
        # Both end with a norm whose scale starts at one.
        assert made(torch.randn(3, 372)).square().mean().item() == pytest.approx(1.0, abs=1e-3)
    assert isinstance(make_filter(TrackingNetworkConfig(), 372), nn.Identity)


def test_initial_weights_are_orthogonal():
    values, actor = ValueEnsemble(SMALL, LAYOUT, [1]), TrackingActor(SMALL, LAYOUT)
    for module in values.modules():
        if isinstance(module, EnsembleLinear):
            for member in module.weight:
                gram = (
                    member.T @ member if member.shape[0] >= member.shape[1] else member @ member.T
                )
                assert torch.allclose(gram, 2 * torch.eye(len(gram)), atol=1e-4)
            assert not module.bias.any()
    first = actor.embed[0]
    assert isinstance(first, nn.Linear)
    assert torch.allclose(first.weight @ first.weight.T, torch.eye(len(first.weight)), atol=1e-4)


def test_backward_codes_are_on_the_sphere_and_actions_within_one():
    policy = TrackingPolicy(SMALL, LAYOUT)
    codes = policy.encode(100 * torch.randn(6, 3, LAYOUT.size))
    assert codes.shape == (6, 3, SMALL.latent)
    assert torch.allclose(codes.norm(dim=-1), torch.tensor(SMALL.latent**0.5), atol=1e-4)
    assert policy(100 * torch.randn(6, LAYOUT.size), codes[:, 0]).abs().max() <= 1


def test_an_odd_width_is_refused():
    with pytest.raises(InputError, match="must be even"):
        TrackingNetworkConfig(width=65)
