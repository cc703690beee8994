"""Small untrained policies for the tests."""

from dataclasses import replace

import torch

from prism_motor.locomotion.policy import WalkingPolicy
from prism_motor.locomotion.ppo import make_actor
from prism_motor.locomotion.presets import make_config


def small_policy(arm="prism", preset="laptop", gate=0.5, seed=0, duration=24.0, **options):
    """A policy with random weights, open gates and a normaliser that has seen something."""
    options = {"warmup": 0, **options} if arm in ("prism-residual", "prism-after") else options
    config = make_config(preset, arm, overrides={"actor": options})
    small = {"hidden": (16, 8)} | ({"latent": 6} if hasattr(config.actor, "latent") else {})
    limits = replace(config.task.terminations, duration=duration)
    config = replace(
        config,
        actor=replace(config.actor, **small),
        task=replace(config.task, terminations=limits),
    )
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    actor = make_actor(config).eval()
    normaliser = actor.obs_normalizer
    for name, low, high in (("_mean", -1.0, 1.0), ("_std", 0.2, 2.0)):
        values = getattr(normaliser, name)
        values.copy_(low + (high - low) * torch.rand(values.shape, generator=generator))
    with torch.no_grad():
        for name, parameter in actor.named_parameters():
            if name.endswith("gate"):
                parameter.copy_(gate * torch.randn(parameter.shape, generator=generator))
    return WalkingPolicy(config, 0, actor, actor.as_onnx(verbose=False).eval())
