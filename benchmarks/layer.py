"""Speed of PolynomialLayer against the GEMM it cannot beat and against its alternatives.

    python benchmarks/layer.py [--quick] [--threads N] [--json FILE]

All contenders of a row are timed in turn, round after round in random order, so that a busy machine
slows all sides alike; a ratio compares lower quartiles. The floor is ``nn.Linear(d, K*r)``: the
same GEMM and nothing else. Explicit monomials run in rounds of their own with their own floor,
because their 64M weights empty the caches for whoever comes next. Lines read, for example::

    gated/floor  fwd+bwd  K=2  batch=4096  eager     1.17
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from prism_motor.nn import ExplicitLayer, PolynomialLayer, ProductLayer

D, R = 705, 256
TARGETS = {("fwd+bwd", 4096): 1.25, ("fwd+bwd", 1): 1.6}
"""Most that ``gated/floor`` may be, eager."""


class SeparateLinears(nn.Module):
    """The same recursion with one ``nn.Linear`` a factor, as the authors' code does it."""

    def __init__(self, d: int, r: int, degree: int) -> None:
        super().__init__()
        self.factors = nn.ModuleList(nn.Linear(d, r) for _ in range(degree))
        self.gate = nn.Parameter(torch.full((degree - 1, r), 0.01))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the recursion."""
        psi = self.factors[0](x)
        for k, factor in enumerate(list(self.factors)[1:]):
            psi = psi * (1 + self.gate[k] * factor(x))
        return psi


class PublishedCCP(nn.Module):
    """Pi-Net's CCP as published: one bias-free ``nn.Linear`` a factor, then the output map."""

    def __init__(self, d: int, r: int, degree: int) -> None:
        super().__init__()
        self.factors = nn.ModuleList(nn.Linear(d, r, bias=False) for _ in range(degree))
        self.output = nn.Linear(r, r)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the recursion with all gates one."""
        h = self.factors[0](x)
        for factor in list(self.factors)[1:]:
            h = factor(x) * h + h
        return self.output(h)


def contenders(degree: int, compiled: bool) -> dict[str, nn.Module]:
    """Build everything that is compared in one row."""
    models: dict[str, nn.Module] = {
        "floor": nn.Linear(D, degree * R),
        "gated": PolynomialLayer(D, R, degree),
        "separate": SeparateLinears(D, R, degree),
        "ccp": PublishedCCP(D, R, degree),
        "product": ProductLayer(D, R, degree),
    }
    if compiled:
        torch.compiler.reset()  # or the many sizes of this benchmark hit the recompile limit
        models = {name: torch.compile(model) for name, model in models.items()}  # type: ignore[misc]
    return models


def explicit_contenders() -> dict[str, nn.Module]:
    """All 249,570 monomials of degree 2; at batch 4096 the activations alone would take 4 GB."""
    return {"floor": nn.Linear(D, 2 * R), "explicit": ExplicitLayer(D, R, 2, max_monomials=250_000)}


def make_step(model: nn.Module, x: Tensor, backward: bool) -> Callable[[], None]:
    """Return a function that runs the model once."""
    if not backward:

        def forward_only() -> None:
            with torch.no_grad():
                model(x)

        return forward_only
    parameters = list(model.parameters())
    gradient = torch.randn_like(model(x))

    def forward_and_backward() -> None:
        torch.autograd.grad(model(x), parameters, gradient)

    return forward_and_backward


def measure(steps: dict[str, Callable[[], None]], seconds: float) -> dict[str, list[float]]:
    """Time all steps in turn, in random order, until the time is used up (at least 7 rounds)."""
    for step in steps.values():
        step()
        step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    order = list(steps)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["floor"]) < 7:
        random.shuffle(order)
        for name in order:
            start = time.perf_counter()
            steps[name]()
            times[name].append(time.perf_counter() - start)
    return times


def time_row(
    models: dict[str, nn.Module], degree: int, batch: int, mode: str, seconds: float
) -> list[dict[str, object]]:
    """Time and print one group of contenders, forward and forward+backward."""
    rows: list[dict[str, object]] = []
    x = torch.randn(batch, D)
    for what in ("fwd", "fwd+bwd"):
        steps = {name: make_step(model, x, what != "fwd") for name, model in models.items()}
        times = measure(steps, seconds)
        quartile = {name: statistics.quantiles(values, n=4)[0] for name, values in times.items()}
        for name in steps:
            if name == "floor":
                continue
            ratio = quartile[name] / quartile["floor"]
            row = {"contender": name, "what": what, "degree": degree, "batch": batch, "mode": mode}
            rows.append({**row, "ratio": round(ratio, 3), "rounds": len(times["floor"])})
            target = TARGETS.get((what, batch)) if (name, mode) == ("gated", "eager") else None
            note = ""
            if target is not None:
                note = f"   target <= {target}: {'met' if ratio <= target else 'MISSED'}"
            label = f"{name}/floor"
            size = f"K={degree}  batch={batch:<5}"
            print(f"{label:<15} {what:<8} {size} {mode:<9}{ratio:7.2f}{note}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="eager only, a quarter of the time")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    random.seed(0)
    torch.manual_seed(0)
    seconds = 1.0 if options.quick else 4.0
    setting = f"d={D} r={R}, {options.threads} threads, torch {torch.__version__}"
    print(f"{setting}, ratios to nn.Linear(d, K*r)")
    rows: list[dict[str, object]] = []
    for mode in ("eager",) if options.quick else ("eager", "compiled"):
        for degree in (2, 3):
            for batch in (1, 256, 4096):
                models = contenders(degree, mode == "compiled")
                rows += time_row(models, degree, batch, mode, seconds)
    for batch in (1, 256):
        rows += time_row(explicit_contenders(), 2, batch, "eager", seconds)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
