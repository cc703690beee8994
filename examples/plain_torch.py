"""A product as a feature: learn mechanical power, torque * velocity, and read the product back.

python examples/plain_torch.py
"""

import argparse

import torch
from torch import Tensor, nn

from prism_motor.nn import PolynomialLayer, parameter_groups

NAMES = ["torque", "velocity", "position", "height", "pitch", "current"]


def sample(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw sensor readings and the power they imply; four of the six channels do not matter."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, len(NAMES), generator=generator)
    return x, x[:, 0] * x[:, 1]


def train(degree: int, steps: int, seed: int) -> tuple[PolynomialLayer, float]:
    """Fit one layer and a linear readout; return the layer and its error on unseen data."""
    torch.manual_seed(seed)
    layer = PolynomialLayer(len(NAMES), 8, degree)
    model = nn.Sequential(layer, nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(parameter_groups(model, weight_decay=1e-3), lr=1e-2)
    x, y = sample(2048, seed)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x, y = sample(2048, seed + 1000)
        return layer, nn.functional.mse_loss(model(x).squeeze(-1), y).item()


def main() -> None:
    """Compare degree 1 (a linear map) with degree 2 on the same data, steps and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="optimiser steps per model")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads cost more than they give in networks this small

    for degree in (1, 2):
        layer, error = train(degree, args.steps, args.seed)
        print(f"degree {degree}: mean squared error on unseen data {error:.2g}")
        for interaction in layer.interactions(NAMES, top=3):
            print(f"  {interaction}")


if __name__ == "__main__":
    main()
