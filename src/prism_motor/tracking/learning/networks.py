"""Actor, forward map, critics, backward map and discriminator.

Forward map and critics have the same shape, two members each; all of them are one ensemble of
batched matrices, so that a pass through them is a handful of large products. They share nothing but
the call. The history passes one filter per network: it sits behind the normaliser and in front of
everything else, and both members of a network share it. (The paper does not say where it sits in
forward map and critics.) Every network takes normalised observations of all streams and picks its
own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prism_motor.nn import PolynomialConditioner, matched_mlp
from prism_motor.tracking.learning.latents import project
from prism_motor.tracking.observations import HISTORY, LAST_ACTION, STREAMS, Layout

if TYPE_CHECKING:
    from prism_motor.tracking.config import TrackingNetworkConfig

MEMBERS = 2
"""Members of the forward map, and of each critic."""

ACTOR_STREAMS = ("state", LAST_ACTION, HISTORY)
GOAL_STREAMS = ("state", "privileged")
"""What backward map and discriminator see: the clips have it."""


class EnsembleLinear(nn.Module):
    """One affine map per member: (members, N, in) or (N, in) -> (members, N, out)."""

    def __init__(self, in_features: int, out_features: int, members: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(members, 1, out_features))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the maps."""
        if x.dim() == 2:
            x = x.expand(len(self.weight), -1, -1)
        return torch.baddbmm(self.bias, x, self.weight)


class EnsembleNorm(nn.Module):
    """LayerNorm with its own scale and shift per member."""

    def __init__(self, features: int, members: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, features))
        self.bias = nn.Parameter(torch.zeros(members, 1, features))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        return torch.addcmul(self.bias, F.layer_norm(x, x.shape[-1:]), self.weight)


class _NormTanh(torch.autograd.Function):
    """tanh(scale * norm(x) + shift), with as few passes over memory as torch's operations allow.

    tanh(x) = 2 sigmoid(2x) - 1 to float32 precision, and takes a quarter of the time on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        x = x.float()
        normal, mean, inverse = torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)
        y = torch.addcmul(2 * shift, normal, 2 * scale).sigmoid_()
        torch.add(y.new_tensor(-1.0), y, alpha=2, out=y)  # in place: no second array to fill
        ctx.save_for_backward(x, normal, mean, inverse, y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, normal, mean, inverse, y, scale = ctx.saved_tensors
        gradient = torch.ops.aten.tanh_backward(gradients[0].float(), y)
        to_scale = (gradient * normal).sum(1, keepdim=True) if ctx.needs_input_grad[1] else None
        to_shift = gradient.sum(1, keepdim=True) if ctx.needs_input_grad[2] else None
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x, _, _ = torch.ops.aten.native_layer_norm_backward(
                gradient.mul_(scale), x, x.shape[-1:], mean, inverse, None, None,
                [True, False, False],
            )  # fmt: skip
        return to_x, to_scale, to_shift


class EnsembleNormTanh(EnsembleNorm):
    """tanh behind the norm."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension and squash it."""
        return _NormTanh.apply(x, self.weight, self.bias)  # type: ignore[return-value]


def _linear(in_features: int, out_features: int, members: int) -> nn.Module:
    if members:
        return EnsembleLinear(in_features, out_features, members)
    return nn.Linear(in_features, out_features)


def _norm(features: int, members: int) -> nn.Module:
    return EnsembleNorm(features, members) if members else nn.LayerNorm(features)


class NormBlock(nn.Module):
    """LayerNorm, Linear and, except in a head, Mish; with equal sizes the input can be added."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        members: int,
        *,
        residual: bool = False,
        head: bool = False,
    ) -> None:
        super().__init__()
        self.norm = _norm(in_features, members)
        self.linear = _linear(in_features, out_features, members)
        self._residual, self._head = residual, head

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        y = self.linear(self.norm(x))
        if self._head:
            return y
        return x + F.mish(y) if self._residual else F.mish(y)


def _embedding(
    config: TrackingNetworkConfig, in_features: int, depth: int, members: int
) -> nn.Sequential:
    """Return ``depth`` layers that end at half of the width."""
    width = config.width
    if config.blocks == "residual":
        middle = [NormBlock(width, width, members, residual=True) for _ in range(depth - 2)]
        first = NormBlock(in_features, width, members)
        return nn.Sequential(first, *middle, NormBlock(width, width // 2, members))
    squash = (EnsembleNormTanh(width, members),) if members else (nn.LayerNorm(width), nn.Tanh())
    layers = [_linear(in_features, width, members), *squash]
    for _ in range(depth - 2):
        layers += [_linear(width, width, members), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, _linear(width, width // 2, members), nn.ReLU(inplace=True))


def _trunk(config: TrackingNetworkConfig, members: int) -> nn.Sequential:
    """Return the layers behind the embeddings, without the head."""
    width = config.width
    if config.blocks == "residual":
        blocks = [NormBlock(width, width, members, residual=True) for _ in range(config.layers)]
        return nn.Sequential(*blocks)
    layers: list[nn.Module] = []
    for _ in range(config.layers):
        layers += [_linear(width, width, members), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def _head(config: TrackingNetworkConfig, out_features: int, members: int) -> nn.Module:
    if config.blocks == "residual":
        return NormBlock(config.width, out_features, members, head=True)
    return _linear(config.width, out_features, members)


def make_filter(config: TrackingNetworkConfig, size: int) -> nn.Module:
    """Return the filter of a history of ``size`` entries; its output has the same size."""
    if config.filter == "none":
        return nn.Identity()
    prism = PolynomialConditioner.bfm_zero(size, config.filter_degree)
    if config.filter == "prism":
        return prism
    # The control has the same norm and as many layers; the rest is matched without the norm.
    norm, prism.output_norm = prism.output_norm, nn.Identity()
    mlp = matched_mlp(prism, hidden=(size, size), activation="mish")
    return nn.Sequential(mlp, norm)


class _Inputs(nn.Module):
    """Picks the streams of a network and filters the history."""

    def __init__(
        self, config: TrackingNetworkConfig, layout: Layout, streams: Sequence[str]
    ) -> None:
        super().__init__()
        self._layout, self._streams = layout, tuple(streams)
        self.size = layout.width(streams)
        filtered = HISTORY in streams and config.filter != "none"
        self.filter = make_filter(config, layout.sizes[HISTORY]) if filtered else None

    def forward(self, observations: Tensor) -> Tensor:
        if self.filter is None:
            return self._layout.select(observations, self._streams)
        columns = self._layout.columns
        history = self.filter(observations[:, columns[HISTORY]])
        parts = [
            history if stream == HISTORY else observations[:, columns[stream]]
            for stream in self._streams
        ]
        return torch.cat(parts, dim=1)


class TrackingActor(nn.Module):
    """pi(a | o, z): the mean action, between -1 and 1.

    Shape: observations (N, size), latents (N, d) -> (N, actions).
    """

    def __init__(self, config: TrackingNetworkConfig, layout: Layout) -> None:
        super().__init__()
        self.outputs = layout.actions
        self.inputs = _Inputs(config, layout, ACTOR_STREAMS)
        size, depth = self.inputs.size, config.actor_embedding
        self.embed_latent = _embedding(config, size + config.latent, depth, members=0)
        self.embed = _embedding(config, size, depth, members=0)
        self.trunk = _trunk(config, members=0)
        self.head = _head(config, layout.actions, members=0)
        _initialise(self)

    def forward(self, observations: Tensor, latents: Tensor) -> Tensor:
        """Return the mean action."""
        return self.act(self.features(observations, latents))

    def features(self, observations: Tensor, latents: Tensor) -> Tensor:
        """Return both embeddings (N, width): the features behind the filter."""
        return self.join(self.inputs(observations), latents)

    def act(self, features: Tensor) -> Tensor:
        """Return the mean action of both embeddings."""
        return torch.tanh(self.head(self.trunk(features)))

    def join(self, seen: Tensor, latents: Tensor) -> Tensor:
        """Return both embeddings of its streams (N, width), the history filtered, and a latent."""
        with_latent = self.embed_latent(torch.cat([seen, latents], dim=1))
        return torch.cat([self.embed(seen), with_latent], dim=1)


class ValueEnsemble(nn.Module):
    """Networks of observation, latent and action: the forward map and critics, two members each.

    Shape: (N, size), (N, d), (N, actions) -> per network (members, N, outputs).

    Args:
        config: Sizes.
        layout: The observations.
        outputs: Outputs of every network: d for the forward map, 1 for a critic.
    """

    def __init__(
        self, config: TrackingNetworkConfig, layout: Layout, outputs: Sequence[int]
    ) -> None:
        super().__init__()
        streams = [name for name in STREAMS if name != HISTORY or config.critic_history]
        members = MEMBERS * len(outputs)
        self.inputs = nn.ModuleList(_Inputs(config, layout, streams) for _ in outputs)
        size, depth = layout.width(streams), config.critic_embedding
        self.embed_latent = _embedding(config, size + config.latent, depth, members)
        self.embed_action = _embedding(config, size + layout.actions, depth, members)
        self.trunk = _trunk(config, members)
        self.heads = nn.ModuleList(_head(config, count, MEMBERS) for count in outputs)
        self._filtered = config.critic_history and config.filter != "none"
        _initialise(self)

    def forward(self, observations: Tensor, latents: Tensor, actions: Tensor) -> list[Tensor]:
        """Return the values of all networks."""
        inputs = self.inputs if self._filtered else self.inputs[:1]
        seen = [one(observations) for one in inputs]
        with_action = self.embed_action(_join(seen, actions))
        with_latent = self.embed_latent(_join(seen, latents))
        features = self.trunk(torch.cat([with_action, with_latent], dim=-1))
        parts = features.split(MEMBERS)
        return [head(part) for head, part in zip(self.heads, parts, strict=True)]

    def split_parameters(self, network: int) -> list[Tensor]:
        """Return views of the parameters that belong to one network."""
        views = [*self.inputs[network].parameters(), *self.heads[network].parameters()]
        members = slice(MEMBERS * network, MEMBERS * (network + 1))
        for part in (self.embed_latent, self.embed_action, self.trunk):
            views += [parameter.data[members] for parameter in part.parameters()]
        return views


def _join(seen: Sequence[Tensor], others: Tensor) -> Tensor:
    """Return inputs with others beside them: one for all members, or the one of each network."""
    joined = [torch.cat([one, others], dim=1) for one in seen]
    if len(joined) == 1:
        return joined[0]
    return torch.stack(joined).repeat_interleave(MEMBERS, dim=0)


class BackwardMap(nn.Module):
    """B(s) on the sphere of radius sqrt(d), from state and privileged state."""

    def __init__(self, config: TrackingNetworkConfig, layout: Layout) -> None:
        super().__init__()
        width = config.backward_width
        self.layers = nn.Sequential(
            nn.Linear(layout.width(GOAL_STREAMS), width),
            nn.LayerNorm(width),
            nn.Tanh(),
            nn.Linear(width, config.latent),
        )
        _initialise(self)

    def forward(self, goals: Tensor) -> Tensor:
        """Map goal observations (N, streams of a goal) to latents (N, d)."""
        return project(self.layers(goals))


class Discriminator(nn.Module):
    """Log-odds (N,) that a goal observation is an expert's, given the latent."""

    def __init__(self, config: TrackingNetworkConfig, layout: Layout) -> None:
        super().__init__()
        width = config.discriminator_width
        first = nn.Linear(config.latent + layout.width(GOAL_STREAMS), width)
        layers: list[nn.Module] = [first, nn.LayerNorm(width), nn.Tanh()]
        for _ in range(config.discriminator_layers - 1):
            layers += [nn.Linear(width, width), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))
        _initialise(self)

    def forward(self, latents: Tensor, goals: Tensor) -> Tensor:
        """Return the log-odds."""
        return self.joint(torch.cat([latents, goals], dim=1))

    def joint(self, inputs: Tensor) -> Tensor:
        """Return the log-odds of latents and goals that are side by side already."""
        return self.layers(inputs).squeeze(-1)


def _initialise(network: nn.Module) -> None:
    """Make weights orthogonal, biases zero; filters keep their own initialisation."""
    for name, module in network.named_modules():
        if "filter" in name.split("."):
            continue
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, EnsembleLinear):
            for member in module.weight.data:
                nn.init.orthogonal_(member, gain=math.sqrt(2))


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Within this, gradients pass through a network but are not those of its parameters."""
    network.requires_grad_(False)
    try:
        yield
    finally:
        network.requires_grad_(True)


_Network = TypeVar("_Network", bound=nn.Module)


def frozen_copy(network: _Network) -> _Network:
    """Return a copy that is not trained: a target."""
    return copy.deepcopy(network).requires_grad_(False)
