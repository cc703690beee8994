"""The exact polynomial behind a product of affine factors.

A feature is prod_k (c_k + a_k . x). With a constant input 1 in front of x this is a product of K
linear forms, and its coefficients are found by multiplying the forms one after the other on the
multisets of input indices (index 0 is the constant).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prism_motor._checks import InputError

_MAX_COEFFICIENTS = 20_000_000
"""Largest full expansion: features times monomials (160 MB)."""

_MAX_READ = 200_000_000
"""Largest expansion of a readout: monomials times inputs, or times rows (1.6 GB for a moment)."""

_MAX_MONOMIALS = 300_000
"""Monomials of one feature that a top-k search looks at; enough for degree 2 of 705 inputs."""


@dataclass(frozen=True)
class Terms:
    """All kept monomials of one degree."""

    monomials: Tensor
    """Input indices, ascending: (out, M, degree), or (1, M, degree) if all features share them."""
    coefficients: Tensor
    """Float64 coefficients, (out, M)."""


@dataclass(frozen=True)
class Expansion:
    """Polynomial coefficients of every feature, per degree; callable on an input."""

    terms: dict[int, Terms]
    """Degree 0 (the constant) up to the layer's degree."""
    in_features: int
    """Number of inputs."""
    exhaustive: bool
    """False if a top-k search looked only at each feature's inputs with the largest weights."""

    def __call__(self, x: Tensor) -> Tensor:
        """Evaluate the kept terms: (..., in_features) -> (..., out_features), in float64."""
        x = x.double()
        total = torch.zeros((), dtype=torch.float64)
        for terms in self.terms.values():
            products = x[..., terms.monomials].prod(-1)  # (..., 1 or out, M)
            total = total + (products * terms.coefficients).sum(-1)
        return total

    def coefficient(self, feature: int, *inputs: int) -> float:
        """Return the coefficient of the product of ``inputs`` (repeat an index for a power)."""
        terms = self.terms.get(len(inputs))
        if terms is None:
            return 0.0
        monomials = terms.monomials[feature if terms.monomials.shape[0] > 1 else 0]
        wanted = torch.tensor(sorted(inputs), dtype=monomials.dtype)
        match = (monomials == wanted).all(-1)
        return float(terms.coefficients[feature][match].sum())

    def describe(self, feature: int, names: Sequence[str] | None = None, top: int = 8) -> str:
        """Write the largest terms of one feature as a formula."""
        labels = [f"x{i}" for i in range(self.in_features)] if names is None else list(names)
        entries: list[tuple[float, str]] = []
        for terms in self.terms.values():
            monomials: list[list[int]] = terms.monomials[
                feature if terms.monomials.shape[0] > 1 else 0
            ].tolist()
            values: list[float] = terms.coefficients[feature].tolist()
            for monomial, value in zip(monomials, values, strict=True):
                entries.append((value, "*".join(labels[i] for i in monomial)))
        entries.sort(key=lambda entry: -abs(entry[0]))
        text = " ".join(f"{v:+.4g}{'*' if label else ''}{label}" for v, label in entries[:top])
        return text.removeprefix("+")


def expand_product(constant: Tensor, linear: Tensor, top: int | None = None) -> Expansion:
    """Expand prod_k (constant[k] + linear[k] @ x) into monomials.

    Args:
        constant: (degree, out).
        linear: (degree, out, in).
        top: Keep the ``top`` largest coefficients of each feature and degree; ``None`` keeps all.
    """
    degree, out_features, in_features = linear.shape
    if top is not None and top < 1:
        raise InputError(f"expand: top must be at least 1 or None, got {top}.")
    constant, linear = constant.double().cpu(), linear.double().cpu()
    monomials = math.comb(in_features + degree, degree)
    if top is None and monomials * out_features > _MAX_COEFFICIENTS:
        raise InputError(
            f"expand: {in_features} inputs at degree {degree} give {monomials:,} monomials for "
            f"each of {out_features} features, more than the {_MAX_COEFFICIENTS:,} coefficients "
            "that are held in full. Use top=k to keep the k largest of each feature and degree."
        )
    searched = in_features
    if top is not None:
        while math.comb(searched + degree, degree) > _MAX_MONOMIALS:
            searched -= 1
    multisets, products = _multiply_tables(searched, degree)

    chunk = max(1, _MAX_COEFFICIENTS // (len(multisets) * (searched + 1)))
    pieces: dict[int, list[tuple[Tensor, Tensor]]] = {}
    for start in range(0, out_features, chunk):
        forms, candidates = _linear_forms(
            constant[:, start : start + chunk], linear[:, start : start + chunk], searched
        )
        coefficients = _multiply_forms(forms, products, searched)
        for d, piece in _split_by_degree(coefficients, multisets, candidates, degree, top).items():
            pieces.setdefault(d, []).append(piece)
    terms = {
        d: Terms(
            parts[0][0] if top is None else torch.cat([m for m, _ in parts]),
            torch.cat([c for _, c in parts]),
        )
        for d, parts in pieces.items()
    }
    return Expansion(terms, in_features, exhaustive=searched == in_features)


def expand_readout(constant: Tensor, linear: Tensor, readout: Tensor) -> dict[int, Terms]:
    """Expand readout @ prod_k (constant[k] + linear[k] @ x) into monomials, per degree.

    Features are added up as they are expanded, so that only the sum is held in full.

    Args:
        constant: (degree, out).
        linear: (degree, out, in).
        readout: (rows, out).
    """
    degree, out_features, in_features = linear.shape
    count = math.comb(in_features + degree, degree)
    if count * max(len(readout), in_features + 1) > _MAX_READ:
        raise InputError(
            f"interactions: {in_features} inputs at degree {degree} give {count:,} monomials in "
            f"each of {len(readout)} rows of the readout, more than can be held. Use fewer rows, "
            "or leave out the readout."
        )
    constant, linear, readout = constant.double().cpu(), linear.double().cpu(), readout.double()
    multisets, products = _multiply_tables(in_features, degree)
    chunk = max(1, _MAX_COEFFICIENTS // (len(multisets) * (in_features + 1)))
    total = linear.new_zeros(len(readout), len(multisets))
    for start in range(0, out_features, chunk):
        part = slice(start, start + chunk)
        forms, _ = _linear_forms(constant[:, part], linear[:, part], in_features)
        total += readout[:, part] @ _multiply_forms(forms, products, in_features)
    parts = _split_by_degree(total, multisets, None, degree, None)
    return {d: Terms(*part) for d, part in parts.items()}


def _multisets(inputs: int, size: int) -> Tensor:
    """All ascending index tuples of one size over {0 (constant), 1..inputs}, lexicographic."""
    return torch.combinations(torch.arange(inputs + 1), size, with_replacement=True)


def _multiply_tables(inputs: int, degree: int) -> tuple[Tensor, list[Tensor]]:
    """Where (multiset of size k-1, new index) lands among the multisets of size k, for k = 2..K."""
    base = inputs + 1
    current = _multisets(inputs, 1)
    tables = []
    for size in range(2, degree + 1):
        following = _multisets(inputs, size)
        place = base ** torch.arange(size - 1, -1, -1)
        keys = (following * place).sum(-1)  # ascending, because the order is lexicographic
        joined = torch.cat(
            [
                current.unsqueeze(1).expand(-1, base, -1),
                torch.arange(base).view(1, base, 1).expand(len(current), -1, 1),
            ],
            dim=-1,
        )
        joined = joined.sort(-1).values
        tables.append(torch.searchsorted(keys, (joined * place).sum(-1).flatten()))
        current = following
    return current, tables


def _linear_forms(constant: Tensor, linear: Tensor, searched: int) -> tuple[Tensor, Tensor | None]:
    """Return forms (degree, out, 1 + searched) and, if inputs were left out, which ones remain."""
    candidates = None
    if searched < linear.shape[-1]:
        largest = linear.abs().amax(-1, keepdim=True).clamp_min(1e-300)
        score = (linear.abs() / largest).amax(0)
        candidates = score.topk(searched, dim=-1).indices.sort(-1).values  # (out, searched)
        linear = linear.gather(-1, candidates.expand(len(linear), -1, -1))
    return torch.cat([constant.unsqueeze(-1), linear], dim=-1), candidates


def _multiply_forms(forms: Tensor, tables: list[Tensor], inputs: int) -> Tensor:
    """Multiply the linear forms; returns coefficients over the multisets of size degree."""
    coefficients = forms[0]
    for size, table in enumerate(tables, start=2):
        raised = (coefficients.unsqueeze(-1) * forms[size - 1].unsqueeze(1)).flatten(1)
        count = math.comb(inputs + size, size)
        coefficients = raised.new_zeros(len(raised), count).index_add_(1, table, raised)
    return coefficients


def _split_by_degree(
    coefficients: Tensor, multisets: Tensor, candidates: Tensor | None, degree: int, top: int | None
) -> dict[int, tuple[Tensor, Tensor]]:
    """Sort the coefficients by degree, keep the largest, and name inputs by their own index."""
    order = (multisets > 0).sum(-1)
    result: dict[int, tuple[Tensor, Tensor]] = {}
    for d in range(degree + 1):
        columns = (order == d).nonzero().squeeze(-1)
        values = coefficients[:, columns]
        monomials = multisets[columns][:, degree - d :] - 1  # constants sort first
        if top is None:
            result[d] = (monomials.unsqueeze(0), values)
            continue
        best = values.abs().topk(min(top, len(columns)), dim=-1).indices
        chosen = monomials[best]  # (out, top, d)
        if candidates is not None and d:
            chosen = candidates.gather(-1, chosen.flatten(1)).view_as(chosen)
        result[d] = (chosen, values.gather(-1, best))
    return result
