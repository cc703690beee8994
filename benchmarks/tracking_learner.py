"""Time of one update of the tracking learner against its matrix products alone.

    python benchmarks/tracking_learner.py [--arm prism] [--rounds N] [--precision bf16]

Every matrix product of an update is recorded (operands' shapes and strides) and repeated without
anything else; both are timed in turn, in CPU time of one thread, so that a busy machine slows both
alike, and the ratio compares lower quartiles. Lines read, for example::

    laptop mlp    update 110.2 ms  products 88.0 ms (6.1 GFLOP, 69 GFLOP/s)  ratio 1.25
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from prism_motor.tracking.learning.experts import ExpertClip, ExpertClips
from prism_motor.tracking.learning.latents import project
from prism_motor.tracking.learning.learner import TrackingLearner
from prism_motor.tracking.learning.replay import ReplayBuffer, transition_fields
from prism_motor.tracking.presets import ARMS, PRESETS, arm_networks

TARGET = 1.3
"""Most that an update may take, in units of its matrix products."""

_PRODUCTS: dict[Any, tuple[Callable[..., Tensor], int]] = {
    torch.ops.aten.mm.default: (torch.mm, 0),
    torch.ops.aten.addmm.default: (torch.mm, 1),
    torch.ops.aten.bmm.default: (torch.bmm, 0),
    torch.ops.aten.baddbmm.default: (torch.bmm, 1),
}
"""Kinds of products, and which argument is the first factor."""


class Recorder(TorchDispatchMode):
    """Notes the operands of every matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[tuple[Callable[..., Tensor], Tensor, Tensor]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Note a product and go on."""
        if func in _PRODUCTS:
            product, first = _PRODUCTS[func]
            a, b = (_like(one) for one in args[first : first + 2])
            self.products.append((product, a, b))
        return func(*args, **(kwargs or {}))


def _like(value: Tensor) -> Tensor:
    """Return random values with the same shape and strides; repeated entries stay repeated."""
    places = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True)) + 1
    stored = torch.randn(places, dtype=torch.float32).to(value.dtype)
    return stored.as_strided(value.shape, value.stride())


def make(arm: str, precision: str) -> tuple[TrackingLearner, ReplayBuffer, ExpertClips]:
    """Make a laptop-sized learner with a buffer and clips of random numbers."""
    preset = PRESETS["laptop"]
    settings = preset.settings
    settings = replace(
        settings,
        networks=arm_networks(arm, preset),
        # As after the first updates, where the actor waits for the values.
        learner=replace(settings.learner, actor_delay=0),
    )
    layout = preset.task.layout
    sizes = transition_fields(layout, settings.networks.latent, len(settings.auxiliary.weights))
    replay = ReplayBuffer(100, preset.envs, sizes)
    for _ in range(100):
        values = {name: torch.randn(preset.envs, size) for name, size in sizes.items()}
        values["latent"] = project(values["latent"])
        replay.add(ends=torch.rand(preset.envs) < 0.01, **values)
    clips = [ExpertClip(str(i), torch.randn(500, layout.size)) for i in range(8)]
    learner = TrackingLearner(settings, layout, precision=precision)
    learner.drop_anchor()
    return learner, replay, ExpertClips(clips, settings.latents.window)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--arm", choices=ARMS, default="mlp")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    learner, replay, experts = make(options.arm, options.precision)
    for _ in range(3):
        learner.learn(replay, experts)
    # The discriminator has its step in every second update or so: time whole rounds of it.
    every = learner.settings.discriminator.every
    with Recorder() as recorder:
        for _ in range(every):
            learner.learn(replay, experts)
    products = recorder.products
    flops = sum(2 * a.numel() * b.shape[-1] for _, a, b in products) / every

    def update() -> None:
        for _ in range(every):
            learner.learn(replay, experts)

    def multiply() -> None:
        for product, a, b in products:
            product(a, b)

    times: dict[str, list[float]] = {"update": [], "products": []}
    for _ in range(options.rounds):
        for name, step in (("update", update), ("products", multiply)):
            start = time.process_time()
            step()
            times[name].append(time.process_time() - start)
    quartile = {name: statistics.quantiles(one, n=4)[0] / every for name, one in times.items()}
    ratio = quartile["update"] / quartile["products"]
    print(
        f"laptop {options.arm:<11} {options.precision}  update {1e3 * quartile['update']:.1f} ms  "
        f"products {1e3 * quartile['products']:.1f} ms ({flops / 1e9:.1f} GFLOP, "
        f"{flops / quartile['products'] / 1e9:.0f} GFLOP/s)  ratio {ratio:.2f}   "
        f"target <= {TARGET}: {'met' if ratio <= TARGET else 'MISSED'}"
    )


if __name__ == "__main__":
    main()
