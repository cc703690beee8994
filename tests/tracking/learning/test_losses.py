"""Losses against independent computation, and what their minima mean."""

import math

import numpy as np
import pytest
import torch

from prism_motor.tracking.learning import losses


def test_forward_backward_loss_is_its_formula():
    forward, backward = torch.randn(2, 5, 3), torch.randn(5, 3)
    target, gamma = torch.randn(5, 5), 0.9
    expected = 0.0
    for member in forward.numpy():
        off, on = 0.0, 0.0
        for i in range(5):
            for j in range(5):
                d = float(np.dot(member[i], backward[j].numpy())) - gamma * float(target[i, j])
                if i == j:
                    on += d
                else:
                    off += d * d
        expected += 0.5 * off / 20 - on / 5
    found = losses.forward_backward_loss(forward, backward, target, gamma)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_the_fixed_point_is_the_successor_measure():
    # A chain of three states; each transition is in the batch as often as it is likely.
    counts = np.array([[20, 20, 0], [0, 0, 40], [10, 0, 30]])
    moves = [(s, x) for s in range(3) for x in range(3) for _ in range(counts[s, x])]
    now, later = (torch.tensor(column) for column in zip(*moves, strict=True))
    gamma = 0.8
    torch.manual_seed(0)
    forward = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    backward = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([forward, backward], lr=0.02)
    for step in range(1500):
        with torch.no_grad():
            measure = forward.mean(0)[later] @ backward[later].T
        loss = losses.forward_backward_loss(forward[:, now], backward[later], measure, gamma)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1000:
            optimizer.param_groups[0]["lr"] = 0.002
    chance = counts / counts.sum(1, keepdims=True)
    density = counts.sum(0) / counts.sum()
    successor = np.linalg.solve(np.eye(3) - gamma * chance, chance)
    for member in forward.detach().numpy():
        found = member @ backward.detach().numpy().T * density
        # The batch is finite: a state is never its own off-diagonal partner.
        assert np.allclose(found, successor, rtol=0.06, atol=0.03)


def test_orthonormality_is_its_formula_and_is_at_rest_where_codes_are_orthonormal():
    codes = torch.randn(6, 4)
    products = codes.numpy() @ codes.numpy().T
    off = products[~np.eye(6, dtype=bool)]
    expected = 0.5 * np.mean(off**2) - np.mean(np.diag(products))
    assert losses.orthonormality_loss(codes).item() == pytest.approx(expected, rel=1e-5)
    # Codes on the sphere, each axis equally often: E[B B^T] = 1. The part of the gradient along
    # the sphere vanishes; the radial one is what the projection takes away.
    codes = (torch.eye(4, dtype=torch.float64) * 2).repeat(50, 1).requires_grad_(True)
    loss = losses.orthonormality_loss(torch.nn.functional.normalize(codes, dim=-1) * 2)
    (gradient,) = torch.autograd.grad(loss, codes)
    assert gradient.abs().max() < 1e-12
    tilted = codes.detach().clone()
    tilted[:, 0] += 0.5
    tilted.requires_grad_(True)
    loss = losses.orthonormality_loss(torch.nn.functional.normalize(tilted, dim=-1) * 2)
    (gradient,) = torch.autograd.grad(loss, tilted)
    assert gradient.abs().max() > 1e-4


def test_discriminator_loss_is_binary_cross_entropy():
    expert, policy = torch.randn(7), torch.randn(7)
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    expected = entropy(expert, torch.ones(7)) + entropy(policy, torch.zeros(7))
    assert losses.discriminator_loss(expert, policy).item() == pytest.approx(expected.item())


def test_gradient_penalty_of_a_linear_score():
    weight = torch.tensor([3.0, -4.0], requires_grad=True)
    real, fake, share = torch.randn(6, 2), torch.randn(6, 2), torch.rand(6, 1)
    penalty = losses.gradient_penalty(lambda x: x @ weight, real, fake, share)
    assert penalty.item() == pytest.approx((5 - 1) ** 2)
    (gradient,) = torch.autograd.grad(penalty, weight)
    assert torch.allclose(gradient, 2 * 4 * weight.detach() / 5)


def test_gradient_penalty_looks_between_the_pairs():
    real, fake = torch.ones(3, 2), torch.zeros(3, 2)
    share = torch.tensor([[0.0], [0.5], [1.0]])
    # The gradient of |x|^2 / 2 is x, so its norm tells where it was taken.
    found = losses.gradient_penalty(lambda x: 0.5 * x.square().sum(-1), real, fake, share)
    norms = [0.0, 0.5 * math.sqrt(2), math.sqrt(2)]
    assert found.item() == pytest.approx(np.mean([(n - 1) ** 2 for n in norms]))


def test_rewards_of_the_discriminator_are_bounded():
    odds = torch.tensor([-50.0, -1.0, 0.0, 2.0, 50.0])
    assert losses.discriminator_reward(odds, "log-odds", 3.0).tolist() == [-3, -1, 0, 2, 3]
    # p clamped to [1e-7, 1 - 1e-7] is what the paper's code does.
    p = torch.sigmoid(odds.double()).clamp(1e-7, 1 - 1e-7)
    expected = torch.log(p / (1 - p))
    found = losses.discriminator_reward(odds.double(), "log-odds", 16.118)
    assert torch.allclose(found, expected, atol=1e-3)
    soft = losses.discriminator_reward(odds.double(), "softplus", 3.0)
    inner = odds.double().clamp(-3, 3)
    assert torch.allclose(soft, -torch.log(1 - torch.sigmoid(inner)))
    assert (soft > 0).all()


def test_pessimism_is_mean_minus_share_of_gap_and_half_is_the_minimum():
    pair = torch.randn(2, 9)
    assert torch.allclose(losses.pessimistic(pair, 0.0), pair.mean(0))
    assert torch.allclose(losses.pessimistic(pair, 0.5), pair.amin(0), atol=1e-6)


def test_critic_loss_is_half_the_squared_error_of_every_member():
    values, target = torch.randn(2, 4), torch.randn(4)
    expected = sum(0.5 * np.mean((v - target.numpy()) ** 2) for v in values.numpy())
    assert losses.critic_loss(values, target).item() == pytest.approx(expected, rel=1e-5)


def test_actor_loss_scales_the_others_without_a_gradient_through_the_scale():
    value = torch.tensor([1.0, -3.0], requires_grad=True)
    other = torch.tensor([2.0, 6.0], requires_grad=True)
    loss = losses.actor_loss(value, (0.05, other))
    assert loss.item() == pytest.approx(1.0 - 0.05 * 2.0 * 4.0)
    gradients = torch.autograd.grad(loss, [value, other])
    assert gradients[0].tolist() == [-0.5, -0.5]
    assert gradients[1].tolist() == pytest.approx([-0.05, -0.05])


def test_running_scale_is_the_bias_corrected_deviation():
    scale = losses.RunningScale()
    torch.manual_seed(1)
    batches = [2 + 3 * torch.randn(64) for _ in range(30)]
    weights = np.array([0.99 ** (29 - i) for i in range(30)])
    weights /= weights.sum()
    for batch in batches:
        last = scale(batch)
    mean = sum(w * b.double().mean().item() for w, b in zip(weights, batches, strict=True))
    square = sum(
        w * b.double().square().mean().item() for w, b in zip(weights, batches, strict=True)
    )
    assert scale.deviation == pytest.approx(math.sqrt(square - mean**2), rel=1e-5)
    assert torch.allclose(last * scale.deviation, batches[-1], atol=1e-5)
    constant = losses.RunningScale()
    assert torch.isfinite(constant(torch.full((4,), 5.0))).all()
