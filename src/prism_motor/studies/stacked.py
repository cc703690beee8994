"""Several networks of one shape as one: parameters in one tensor, every layer one batched product.

Small matrices leave a core idle between calls. ``torch.vmap`` over whole networks would do the same
and is what layers of an unknown kind get, but it takes about twice as long at these sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from prism_motor.nn.factors import FactorLayer


class StackedNetworks:
    """Networks of one shape, called and changed together.

    Args:
        networks: The networks, all made in the same way.
    """

    def __init__(self, networks: Sequence[nn.Sequential]) -> None:
        self._networks = networks
        stacked, _ = stack_module_state(list(networks))
        self._shapes = {name: value.shape for name, value in stacked.items()}
        self._sizes = [value[0].numel() for value in stacked.values()]
        self.flat = torch.cat([value.detach().flatten(1) for value in stacked.values()], 1)
        """All parameters (networks, parameters), with gradients."""
        self.flat.requires_grad_()

    def per_parameter(self, special: str, value: float) -> Tensor:
        """Return one number per parameter: ``value`` for those of a name, one for all others."""
        factors = [value if name.split(".")[-1] == special else 1.0 for name in self._shapes]
        return torch.tensor(factors).repeat_interleave(torch.tensor(self._sizes))

    def __call__(self, x: Tensor) -> Tensor:
        """Map (networks, rows, inputs) to (networks, rows, outputs)."""
        values = self._parameters()
        for name, layer in self._networks[0].named_children():
            start = f"{name}."
            own = {key[len(start) :]: v for key, v in values.items() if key.startswith(start)}
            x = _call_layer(layer, own, x)
        return x

    @torch.no_grad()
    def write_back(self) -> None:
        """Give the networks their present parameters."""
        for name, values in self._parameters().items():
            for network, value in zip(self._networks, values, strict=True):
                network.get_parameter(name).copy_(value)

    def _parameters(self) -> dict[str, Tensor]:
        parts = self.flat.split(self._sizes, dim=1)
        named = zip(self._shapes.items(), parts, strict=True)
        return {name: part.view(shape) for (name, shape), part in named}


class _Combine(nn.Module):
    """What a product layer does with its factors, as a module of its own."""

    def __init__(self, layer: FactorLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, factors: list[Tensor]) -> Tensor:
        return self.layer.combine(factors)


def _call_layer(layer: nn.Module, values: dict[str, Tensor], x: Tensor) -> Tensor:
    if not values:
        return layer(x)
    if isinstance(layer, nn.Linear):
        return _affine(values["weight"], values["bias"], x)
    if isinstance(layer, FactorLayer):
        bias = values["bias"].flatten(1) if "bias" in values else None
        factors = _affine(values["weight"].flatten(1, 2), bias, x).chunk(layer.degree, dim=-1)
        named = {f"layer.{name}": value for name, value in values.items()}
        whole = _Combine(layer)
        return vmap(lambda own, parts: functional_call(whole, own, (parts,)))(named, list(factors))
    return vmap(lambda own, rows: functional_call(layer, own, (rows,)))(values, x)


def _affine(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """Apply one affine map per network: (networks, out, in) to (networks, rows, in)."""
    transposed = weight.transpose(1, 2)
    return torch.bmm(x, transposed) if bias is None else bias.unsqueeze(1).baddbmm(x, transposed)
