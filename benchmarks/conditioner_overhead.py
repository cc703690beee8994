"""What the conditioner costs in a training step and in an inference of Diffusion Policy.

    python benchmarks/conditioner_overhead.py [--quick] [--rounds N] [--threads N] [--json FILE]

Paper size: batch 64, two cameras of 128 px, U-Net 128-256-512, ten inference steps; ``--quick``
takes batch 8 and 64 px. The policies differ in their conditioner alone. In every round each does
one step, in random order, and what is measured is processor time, so that a busy machine disturbs
little; a ratio is the median over rounds of prism/linear. As a whole step varies by more than the
conditioner costs, its own forward and backward pass with its part of the optimiser step is timed in
the same rounds too ("alone"). Lines read, for example::

    training   prism/linear 1.006 (0.991 to 1.021)   alone 0.0011   target <= 1.03: met
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from torch import Tensor

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismDiffusionPolicy

TARGET = 1.03
"""Most that a step with PRISM may take, relative to LeRobot's."""
STATE, ACTION, CAMERAS = 8, 7, ("observation.images.front", "observation.images.wrist")


@dataclass(frozen=True)
class Size:
    """Size of the measured step."""

    batch: int
    """Samples of a training step; inference has one."""
    pixels: int
    """Height and width of the images."""
    rounds: int
    """Training steps of each policy."""
    inferences: int
    """Inferences of each policy."""


PAPER = Size(batch=64, pixels=128, rounds=5, inferences=40)
QUICK = Size(batch=8, pixels=64, rounds=15, inferences=40)


def make_policy(conditioner: str, size: Size) -> PrismDiffusionPolicy:
    images = {
        name: PolicyFeature(FeatureType.VISUAL, (3, size.pixels, size.pixels)) for name in CAMERAS
    }
    config = PrismDiffusionConfig(
        conditioner=conditioner,
        input_features={"observation.state": PolicyFeature(FeatureType.STATE, (STATE,)), **images},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (ACTION,))},
        down_dims=(128, 256, 512),
        num_inference_steps=10,
        device="cpu",
    )
    torch.manual_seed(0)
    return PrismDiffusionPolicy(config)


def make_batch(size: Size) -> dict[str, Tensor]:
    images = {name: torch.rand(size.batch, 2, 3, size.pixels, size.pixels) for name in CAMERAS}
    return {
        "observation.state": torch.rand(size.batch, 2, STATE) * 2 - 1,
        "action": torch.rand(size.batch, 16, ACTION) * 2 - 1,
        "action_is_pad": torch.zeros(size.batch, 16, dtype=torch.bool),
        **images,
    }


def training_step(policy: PrismDiffusionPolicy, batch: dict[str, Tensor]) -> Callable[[], None]:
    policy.train()
    optimizer = policy.config.get_optimizer_preset().build(policy.get_optim_params())
    assert isinstance(optimizer, torch.optim.Optimizer)

    def step() -> None:
        loss, _ = policy.forward(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def conditioner_step(policy: PrismDiffusionPolicy, batch: dict[str, Tensor]) -> Callable[[], None]:
    conditioner = policy.diffusion.conditioner
    assert conditioner is not None
    state = batch["observation.state"].flatten(1)
    gradient = torch.randn_like(conditioner(state))
    optimizer = torch.optim.AdamW(conditioner.parameters(), lr=1e-4)

    def step() -> None:
        conditioner(state).backward(gradient)
        optimizer.step()
        optimizer.zero_grad()

    return step


def inference(policy: PrismDiffusionPolicy, batch: dict[str, Tensor]) -> Callable[[], None]:
    policy.eval()
    first = {name: values[:1] for name, values in batch.items()}
    observation = {
        "observation.state": first["observation.state"],
        "observation.images": torch.stack([first[name] for name in CAMERAS], dim=-4),
    }

    def infer() -> None:
        with torch.no_grad():
            policy.diffusion.generate_actions(observation)

    return infer


def conditioner_inference(
    policy: PrismDiffusionPolicy, batch: dict[str, Tensor]
) -> Callable[[], None]:
    conditioner = policy.diffusion.conditioner
    assert conditioner is not None
    state = batch["observation.state"][:1].flatten(1)

    def infer() -> None:
        with torch.no_grad():
            conditioner(state)

    return infer


def measure(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Time all steps once a round, in random order, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    order = list(steps)
    for round_ in range(rounds + 1):
        random.shuffle(order)
        for name in order:
            start = time.process_time()
            steps[name]()
            if round_:
                times[name].append(time.process_time() - start)
    return times


def report(what: str, times: dict[str, list[float]]) -> dict[str, object]:
    """Print one line and return it as a record."""
    ratios = [a / b for a, b in zip(times["prism"], times["linear"], strict=True)]
    ratio = statistics.median(ratios)
    alone = statistics.median(times["alone"]) / statistics.median(times["linear"])
    low, _, high = statistics.quantiles(ratios, n=4)
    verdict = "met" if ratio <= TARGET else "MISSED"
    print(
        f"{what:<10} prism/linear {ratio:.3f} ({low:.3f} to {high:.3f})   alone {alone:.4f}   "
        f"target <= {TARGET}: {verdict}   [{statistics.median(times['linear']):.3f} s a step]",
        flush=True,
    )
    quartiles = [round(low, 4), round(high, 4)]
    record = {"what": what, "ratio": round(ratio, 4), "quartiles": quartiles}
    return {**record, "alone": round(alone, 5), "rounds": len(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="batch 8 and 64 px: half a minute")
    parser.add_argument("--rounds", type=int, help="training steps of each policy")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="also write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    random.seed(0)
    size = QUICK if options.quick else PAPER
    policies = {name: make_policy(name, size) for name in ("linear", "prism")}
    batch = make_batch(size)
    print(
        f"batch {size.batch}, 2 x {size.pixels} px, {options.threads} threads, "
        f"torch {torch.__version__}, ratios to LeRobot's Diffusion Policy",
        flush=True,
    )
    training = {name: training_step(policy, batch) for name, policy in policies.items()}
    training["alone"] = conditioner_step(policies["prism"], batch)
    records = [report("training", measure(training, options.rounds or size.rounds))]
    inferring = {name: inference(policy, batch) for name, policy in policies.items()}
    inferring["alone"] = conditioner_inference(policies["prism"], batch)
    records.append(report("inference", measure(inferring, size.inferences)))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
