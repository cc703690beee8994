"""Every network of the paper by name, with the parameter count it must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from prism_motor.nn import PolynomialConditioner, build_actor, count_parameters
from prism_motor.tracking.config import TrackingNetworkConfig
from prism_motor.tracking.learning.networks import Discriminator, ValueEnsemble
from prism_motor.tracking.observations import Layout
from prism_motor.tracking.policy import TrackingPolicy, count_deployed
from prism_motor.tracking.presets import PRESETS, arm_networks

CRITIC_HIDDEN = (768, 256, 128)
"""Hidden widths of the locomotion critic, the same for all arms."""


@dataclass(frozen=True)
class NamedNetwork:
    """One row of ``prism params``."""

    name: str
    """What the network is called in this package."""
    build: Callable[[], nn.Module]
    """Makes the network."""
    expected: int
    """Its exact parameter count, derived from the paper and the authors' release."""
    printed: str
    """What the paper prints for it, if anything."""
    measure: Callable[[nn.Module], int] = count_parameters
    """What is counted."""

    def count(self) -> int:
        """Build the network without allocating memory and count its parameters."""
        with torch.device("meta"):
            return self.measure(self.build())


def _g1(actor: str, **options: object) -> Callable[[], nn.Module]:
    return partial(build_actor, actor, 705, 12, **options)


def _mlp(in_features: int, hidden: tuple[int, ...], out_features: int) -> Callable[[], nn.Module]:
    return partial(build_actor, "mlp", in_features, out_features, hidden=hidden, activation="silu")


def _deployed(arm: str) -> Callable[[], nn.Module]:
    return partial(TrackingPolicy, arm_networks(arm, PRESETS["paper"]), Layout())


def _values(outputs: int) -> Callable[[], nn.Module]:
    return partial(ValueEnsemble, TrackingNetworkConfig(), Layout(), [outputs])


NETWORKS: tuple[NamedNetwork, ...] = (
    NamedNetwork("g1/mlp", _g1("mlp"), 527_244, "527K (Table 8)"),
    NamedNetwork("g1/mlp-large", _g1("mlp", hidden=(816, 352, 160)), 922_092, "922K (Table 8)"),
    NamedNetwork("g1/mlp-matched", _g1("mlp", hidden=(648, 328, 160)), 724_932, ""),
    NamedNetwork("g1/mlp-wide", _g1("mlp", hidden=(928, 384, 224)), 1_100_844, ""),
    NamedNetwork("g1/mlp-deep", _g1("mlp", hidden=(768, 512, 256, 128)), 1_101_708, ""),
    NamedNetwork("g1/prism-degree1", _g1("prism", degree=1), 543_884, ""),
    NamedNetwork("g1/prism", _g1("prism"), 724_876, ""),
    NamedNetwork("g1/prism-degree3", _g1("prism", degree=3), 905_868, ""),
    NamedNetwork("g1/prism-r334", _g1("prism", latent=334, hidden=(513, 256, 128)), 921_715, ""),
    NamedNetwork("g1/prism-residual-degree1", _g1("prism-residual", degree=1), 790_412, ""),
    NamedNetwork("g1/prism-residual", _g1("prism-residual"), 921_996, "922K (Table 8)"),
    NamedNetwork("g1/prism-residual-degree3", _g1("prism-residual", degree=3), 1_053_580, ""),
    NamedNetwork("g1/prism-residual-gated", _g1("prism-residual-gated"), 922_252, ""),
    NamedNetwork("g1/prism-after", _g1("prism-after"), 560_396, ""),
    NamedNetwork(
        "g1/critic", partial(build_actor, "mlp", 219, 1, hidden=CRITIC_HIDDEN), 398_849, ""
    ),
    NamedNetwork("diffusion/prism", PolynomialConditioner.diffusion_policy, 79_408, ""),
    NamedNetwork("smolvla/linear", _mlp(32, (), 960), 31_680, "450.046M whole policy"),
    NamedNetwork(
        "smolvla/prism", PolynomialConditioner.smolvla, 1_910_400, "451.925M whole policy"
    ),
    NamedNetwork(
        "smolvla/mlp-large", _mlp(32, (2048, 2048), 960), 6_230_976, "456.245M whole policy"
    ),
    NamedNetwork("bfm-zero/prism", PolynomialConditioner.bfm_zero, 555_768, "32.665M whole policy"),
    NamedNetwork(
        "bfm-zero/deployed-mlp", _deployed("mlp"), 32_109_477, "32.109M (Table 11)", count_deployed
    ),
    NamedNetwork(
        "bfm-zero/deployed-prism",
        _deployed("prism"),
        32_665_245,
        "32.665M (Table 11)",
        count_deployed,
    ),
    NamedNetwork(
        "bfm-zero/deployed-mlp-matched", _deployed("mlp-matched"), 32_664_965, "", count_deployed
    ),
    NamedNetwork(
        "bfm-zero/deployed-mlp-large",
        _deployed("mlp-large"),
        49_260_453,
        "49.260M (Table 11)",
        count_deployed,
    ),
    NamedNetwork("bfm-zero/forward-map", _values(256), 135_865_204, ""),
    NamedNetwork("bfm-zero/critic", _values(1), 134_820_214, ""),
    NamedNetwork(
        "bfm-zero/discriminator",
        partial(Discriminator, TrackingNetworkConfig(), Layout()),
        2_905_089,
        "",
    ),
)
"""The paper's networks that this package builds."""
