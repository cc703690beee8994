"""The losses of one update, each a function of network outputs alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def forward_backward_loss(
    forward: Tensor, backward: Tensor, target: Tensor, gamma: float
) -> Tensor:
    """Return the loss whose minimum is the successor measure.

    With D = F B^T - gamma T, each member adds half the mean of D_ij^2 over i != j, minus the mean
    of D_ii: state j counts as reached where it is the successor of i, elsewhere by its density.

    Args:
        forward: F(s_i, z_i, a_i) of all members (M, N, d).
        backward: B(s'_j) (N, d).
        target: Measure at the successors by the target networks (N, N), row i, column j.
        gamma: Discount.
    """
    count = len(backward)
    difference = forward @ backward.T - gamma * target
    diagonal = difference.diagonal(dim1=-2, dim2=-1)
    squares = difference.square().sum() - diagonal.square().sum()
    return 0.5 * squares / (count * (count - 1)) - diagonal.sum() / count


def orthonormality_loss(backward: Tensor) -> Tensor:
    """Return the loss whose minimum has E[B B^T] = identity; ``backward`` is (N, d)."""
    count = len(backward)
    products = backward @ backward.T
    diagonal = products.diagonal()
    squares = products.square().sum() - diagonal.square().sum()
    return 0.5 * squares / (count * (count - 1)) - diagonal.mean()


def discriminator_loss(expert: Tensor, policy: Tensor) -> Tensor:
    """Return the cross entropy of telling experts (N,) from the policy (N,) by log-odds."""
    return F.softplus(-expert).mean() + F.softplus(policy).mean()


def gradient_penalty(
    score: Callable[[Tensor], Tensor], expert: Tensor, policy: Tensor, share: Tensor
) -> Tensor:
    """Return the mean squared deviation of the gradient's norm from one, between pairs of rows.

    Args:
        score: Log-odds (N,) of inputs (N, n).
        expert: Inputs of experts.
        policy: Inputs of the policy.
        share: How much of the expert is in each interpolated row (N, 1).
    """
    between = torch.lerp(policy, expert, share).requires_grad_(True)
    (gradient,) = torch.autograd.grad(score(between).sum(), between, create_graph=True)
    return (gradient.norm(dim=-1) - 1).square().mean()


def discriminator_reward(log_odds: Tensor, form: str, bound: float) -> Tensor:
    """Return the reward of log-odds clamped to +-``bound``.

    ``log-odds`` is signed; ``softplus`` is -log(1 - p), between 0 and about the bound.
    """
    bounded = log_odds.clamp(-bound, bound)
    return F.softplus(bounded) if form == "softplus" else bounded


def pessimistic(values: Tensor, pessimism: float) -> Tensor:
    """Return the mean of two members (2, ...) minus a share of their gap."""
    first, second = values
    return 0.5 * (first + second) - pessimism * (first - second).abs()


def critic_loss(values: Tensor, target: Tensor) -> Tensor:
    """Return half the mean squared error, summed over members; values (M, N), target (N,)."""
    return 0.5 * len(values) * (values - target).square().mean()


def actor_loss(value: Tensor, *others: tuple[float, Tensor]) -> Tensor:
    """Return the actor's loss; each other value weighs in units of the mean absolute first one.

    Args:
        value: Forward-backward value of the actions (N,).
        others: Pairs of weight and value (N,), or a scalar.
    """
    unit = value.detach().abs().mean()
    loss = -value.mean()
    for weight, other in others:
        loss = loss - weight * unit * other.mean()
    return loss


def anchor_loss(actions: Tensor, wanted: Tensor, counted: Tensor) -> Tensor:
    """Return the squared error of actions (N, A), summed over joints, mean over counted rows."""
    errors = (actions - wanted).square().sum(dim=-1)
    return (errors * counted).sum() / counted.sum().clamp(min=1)


class RunningScale:
    """Divides rewards by their running standard deviation, without shifting them.

    Exponential averages of mean and mean square, corrected for their start at zero.

    Args:
        decay: Share of the old averages that stays, per batch.
        floor: Smallest variance.
    """

    def __init__(self, decay: float = 0.99, floor: float = 1e-8) -> None:
        self._decay, self._floor = decay, floor
        self.mean, self.square, self.batches = 0.0, 0.0, 0

    def __call__(self, rewards: Tensor) -> Tensor:
        """Take in a batch and return it divided."""
        mean, square = torch.stack([rewards.mean(), rewards.square().mean()]).double().tolist()
        self.mean = self._decay * self.mean + (1 - self._decay) * mean
        self.square = self._decay * self.square + (1 - self._decay) * square
        self.batches += 1
        return rewards / self.deviation

    @property
    def deviation(self) -> float:
        """The running standard deviation."""
        correction = 1 - self._decay**self.batches
        mean, square = self.mean / correction, self.square / correction
        return max(square - mean * mean, self._floor) ** 0.5

    def state(self) -> list[float]:
        """Return the averages."""
        return [self.mean, self.square, self.batches]

    def restore(self, saved: list[float]) -> None:
        """Continue with saved averages."""
        self.mean, self.square, self.batches = saved[0], saved[1], int(saved[2])
