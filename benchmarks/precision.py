"""Speed of PPO's update by precision: ratios from one run.

    python benchmarks/precision.py [--quick] [--preset laptop] [--arm prism]

- update/bf16: processor time of an update with ``--precision bf16`` over that with fp32.
- update/compiled: the same for bf16 networks that ``torch.compile`` has compiled. Training does not
  offer it: its graphs break at the checks that name a value which is not finite.
- rollout/bf16: time of the policy's passes in rollouts.

Variants take turns on the same samples, so that other load on the machine strikes all of them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from dataclasses import replace

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch

from prism_motor.locomotion.presets import make_config
from prism_motor.locomotion.trainer import WalkingTrainer


def measure(trainer: WalkingTrainer) -> tuple[float, float]:
    """Return the seconds of processor time of an update, and of the passes of a rollout."""
    timer: dict[str, float] = defaultdict(float)
    with torch.inference_mode():
        trainer._collect(timer)
    start = time.process_time()
    trainer.ppo.update()
    return time.process_time() - start, timer["policy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--arm", default="prism")
    options = parser.parse_args()
    plain = replace(make_config(options.preset, options.arm), threads=1)
    half = replace(plain, precision="bf16")
    trainers = {name: WalkingTrainer(c) for name, c in (("fp32", plain), ("bf16", half))}
    trainers["compiled"] = WalkingTrainer(half)
    trainers["compiled"].ppo.compile("default")
    count = 1 + (5 if options.quick else 20)
    rounds = [[measure(trainer) for trainer in trainers.values()] for _ in range(count)]
    seconds = np.array(rounds[1:])  # the first one compiles
    update, rollout = np.median(seconds / seconds[:, :1], axis=0).T
    size = plain.samples_per_update
    print(f"{options.preset}, {options.arm}: {size:,} samples per update, one thread")
    print(f"update fp32 {np.median(seconds[:, 0, 0]):.3f} s of processor time")
    for index, name in enumerate(trainers):
        if index:
            print(f"update/{name} {update[index]:.2f}   rollout/{name} {rollout[index]:.2f}")


if __name__ == "__main__":
    main()
