"""Settings of RL Baselines3 Zoo for the five environments, as data.

From ``hyperparams/ppo.yml`` and ``hyperparams/sac.yml`` of github.com/DLR-RM/rl-baselines3-zoo (as
of 2.x), which tuned them on the environments' versions 3 and 4; version 5 has the same robots and
tasks with corrections. What the zoo does not name is Stable-Baselines3's default. Where the zoo has
a budget of its own (Humanoid), so have we.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prism_motor.gymnasium_control.config import LearnerConfig, PPOSettings, SACSettings


@dataclass(frozen=True)
class ZooSettings:
    """What the zoo says about an algorithm in an environment."""

    learner: LearnerConfig
    """The algorithm."""
    hidden: tuple[int, ...] = (64, 64)
    """Hidden widths of actor and critics."""
    activation: str = "tanh"
    """Activation of actor and critics."""
    samples: int = 1_000_000
    """Steps of the environment."""


def _wide(samples: int = 1_000_000, **learner: float) -> ZooSettings:
    """Return tuned settings of PPO with two layers of 256."""
    settings = PPOSettings(steps=512, log_std=-2.0, orthogonal=False, **learner)  # type: ignore[arg-type]
    return ZooSettings(settings, (256, 256), "relu", samples)


_PPO = {
    "HalfCheetah-v5": _wide(
        batch=64,
        gamma=0.98,
        learning_rate=2.0633e-5,
        entropy_weight=0.000401762,
        clip=0.1,
        epochs=20,
        gae_lambda=0.92,
        gradient_norm=0.8,
        value_weight=0.58096,
    ),
    "Hopper-v5": _wide(
        batch=32,
        gamma=0.999,
        learning_rate=9.80828e-5,
        entropy_weight=0.00229519,
        clip=0.2,
        epochs=5,
        gae_lambda=0.99,
        gradient_norm=0.7,
        value_weight=0.835671,
    ),
    "Walker2d-v5": ZooSettings(
        PPOSettings(
            steps=512,
            batch=32,
            gamma=0.99,
            learning_rate=5.05041e-5,
            entropy_weight=0.000585045,
            clip=0.1,
            epochs=20,
            gae_lambda=0.95,
            gradient_norm=1.0,
            value_weight=0.871923,
        )
    ),
    "Ant-v5": ZooSettings(PPOSettings()),
    "Humanoid-v5": _wide(
        samples=10_000_000,
        batch=256,
        gamma=0.95,
        learning_rate=3.56987e-5,
        entropy_weight=0.00238306,
        clip=0.3,
        epochs=5,
        gae_lambda=0.9,
        gradient_norm=2.0,
        value_weight=0.431892,
    ),
}


def _sac(samples: int = 1_000_000) -> ZooSettings:
    return ZooSettings(SACSettings(learning_starts=10_000), (256, 256), "relu", samples)


ENVIRONMENTS = tuple(_PPO)
"""The five environments."""

ZOO: Mapping[str, Mapping[str, ZooSettings]] = {
    "ppo": _PPO,
    "sac": {env: _sac(2_000_000 if env == "Humanoid-v5" else 1_000_000) for env in ENVIRONMENTS},
}
"""Settings by algorithm and environment."""

OTHERS: Mapping[str, ZooSettings] = {"ppo": ZooSettings(PPOSettings()), "sac": _sac()}
"""Settings of environments that the zoo does not tune, by algorithm."""


def zoo_settings(algorithm: str, env: str) -> ZooSettings:
    """Return the settings of an algorithm in an environment."""
    return ZOO[algorithm].get(env, OTHERS[algorithm])
