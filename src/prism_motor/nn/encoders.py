"""What actors have in front of their trunk: the residual encoder, and a by-pass around any encoder.

The encoder of ``prism`` is :class:`prism_motor.nn.PolynomialConditioner`.
"""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError, check_degree
from prism_motor.nn.conditioner import make_activation
from prism_motor.nn.reading import Interaction, strongest_pairs
from prism_motor.nn.warmup import Warmup


class ResidualEncoder(nn.Module):
    """``activation(R(x) + s * O(p_K))``: linear skip plus a polynomial branch.

    .. code-block:: text

        h = P(x);  p_1 = A_1(h);  p_k = p_{k-1} + gate_k * A_k(h) * S_{k-1}(p_{k-1})

    with s rising from 0 to 1 over ``warmup`` updates (always 1 when ``warmup=0``), and without
    gates unless ``gate_init`` is given.

    Args:
        in_features: Size of the input.
        out_features: Width of both branches.
        degree: Polynomial degree K of the branch.
        activation: Activation of the output by name.
        warmup: Updates over which the branch fades in; 0 for none.
        gate_init: Initial value of learned gates, one per feature and product; ``None`` for none.
    """

    degree: Final[int]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        degree: int = 2,
        *,
        activation: str = "elu",
        warmup: int = 500,
        gate_init: float | None = None,
    ) -> None:
        super().__init__()
        self.degree = check_degree("ResidualEncoder", degree)
        self.lift = nn.Linear(in_features, out_features)
        self.factors = nn.ModuleList(nn.Linear(out_features, out_features) for _ in range(degree))
        self.states = nn.ModuleList(
            nn.Linear(out_features, out_features) for _ in range(degree - 1)
        )
        self.branch_out = nn.Linear(out_features, out_features)
        self.skip = nn.Linear(in_features, out_features)
        self.activation = make_activation(activation)
        self.warmup = Warmup(warmup) if warmup else None
        self.gate_init = gate_init
        self.gate: nn.Parameter | None
        gate = None
        if gate_init is not None and degree > 1:
            gate = nn.Parameter(torch.full((degree - 1, out_features), gate_init))
        self.register_parameter("gate", gate)

    def features(self, x: Tensor) -> Tensor:
        """Return the polynomial features p_K."""
        lifted = self.lift(x)
        # Zipped by hand: TorchScript unrolls one ModuleList loop, with the index it needs.
        projected = [factor(lifted) for factor in self.factors]
        gate = self.gate
        p = projected[0]
        for k, state in enumerate(self.states):
            product = projected[k + 1] * state(p)
            if gate is not None:
                product = gate[k] * product
            p = p + product
        return p

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        branch = self.branch_out(self.features(x))
        if self.warmup is not None:
            branch = branch * self.warmup().to(branch.dtype)
        return self.activation(self.skip(x) + branch)

    @torch.jit.unused
    @torch.no_grad()
    def interactions(
        self,
        names: Sequence[str] | None = None,
        top: int | None = 10,
        *,
        input_scale: Tensor | Sequence[float] | None = None,
    ) -> list[Interaction]:
        """List the strongest learned products by input name, as :class:`PolynomialLayer` does.

        The linear maps in front of a product are composed, so that it is named by inputs. Products
        of stage k are listed as factors (1, k): the first-order part of ``S_{k-1}(p_{k-1})``, and
        ``A_k(h)``. What p_{k-1} has beyond first order (from degree 3 on) is left out.
        """
        weights = [factor.weight @ self.lift.weight for factor in self.factors]  # type: ignore[operator]
        scale = 1.0 if self.warmup is None else float(self.warmup())
        found: list[Interaction] = []
        for k, state in enumerate(self.states):
            pair = torch.stack([state.weight @ weights[0], weights[k + 1]])  # type: ignore[operator]
            gate = torch.ones_like(pair[0, :, 0]) if self.gate is None else self.gate[k]
            found += strongest_pairs(pair, scale * gate, (1, k + 2), names, top, input_scale)
        found.sort(key=lambda entry: -entry.strength)
        return found if top is None else found[:top]


class Bypass(nn.Module):
    """``[encoder(x), c]``: the inputs c join behind an encoder that sees only the others, x.

    Section 3.1 of the paper, ``o = (x, c)``.

    Args:
        encoder: The encoder of the inputs that are not by-passed.
        in_features: Number of all inputs.
        passed: Indices of the by-passed inputs.

    State dict: ``encoder.*``.
    """

    kept: Tensor
    passed: Tensor

    def __init__(self, encoder: nn.Module, in_features: int, passed: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder
        kept = [i for i in range(in_features) if i not in {*passed}]
        self.register_buffer("kept", torch.tensor(kept), persistent=False)
        self.register_buffer("passed", torch.tensor(list(passed)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., encoder's outputs + passed inputs)."""
        return self.join(self.encoder(self.select(x)), x)

    def select(self, x: Tensor) -> Tensor:
        """Return the inputs that the encoder sees."""
        return x.index_select(-1, self.kept)

    def join(self, encoded: Tensor, x: Tensor) -> Tensor:
        """Put the by-passed inputs behind the encoder's output."""
        return torch.cat([encoded, x.index_select(-1, self.passed)], dim=-1)


def check_bypass(bypass: Sequence[int | str], in_features: int) -> list[int]:
    """Return the indices of by-passed inputs, in order; raise if they cannot be."""
    for one in bypass:
        if isinstance(one, bool) or not isinstance(one, int):
            raise InputError(
                f"actor.bypass: {one!r} is a name, and this network knows its inputs only by "
                "number. Give indices; walking tasks turn names of observations into them."
            )
        if not 0 <= one < in_features:
            raise InputError(f"actor.bypass: inputs go from 0 to {in_features - 1}, got {one}.")
    if len({*bypass}) < len(bypass):
        raise InputError("actor.bypass: an input is listed twice.")
    if len(bypass) == in_features:
        raise InputError(
            f"actor.bypass: all {in_features} inputs by-pass the polynomial; leave it some."
        )
    return sorted(int(one) for one in bypass)
