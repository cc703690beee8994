"""SmolVLA as a backbone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from prism_motor._checks import InputError
from prism_motor.manipulation.backbones import Backbone, Statistics
from prism_motor.manipulation.demonstrations.dataset import STATE
from prism_motor.manipulation.smolvla import network
from prism_motor.manipulation.smolvla.actor import SmolVLAActor
from prism_motor.manipulation.smolvla.config import SmolVLANetworkConfig
from prism_motor.manipulation.smolvla.vlm import find_vlm, is_random

if TYPE_CHECKING:
    from pathlib import Path

    from prism_motor.manipulation.config import ManipulationConfig
    from prism_motor.manipulation.demonstrations.cache import Demonstrations
    from prism_motor.manipulation.policy import HandlingPolicy
    from prism_motor.manipulation.tasks import Task

_COPIED = "vlm"
"""Folder of a random model in an exported policy."""


class SmolVLABackbone(Backbone):
    """LeRobot's SmolVLA: the conditioner makes the token of the state."""

    name = "smolvla"
    network = SmolVLANetworkConfig
    follows_instructions = True

    def prepare(self, config: ManipulationConfig) -> ManipulationConfig:
        """Note the version of LeRobot, on which the loss depends."""
        return replace(config, network=config.network.change(lerobot=network.lerobot_version()))

    def check_early(self, config: ManipulationConfig) -> None:
        """Raise unless the vision-language model is there."""
        assert isinstance(config.network, SmolVLANetworkConfig)
        find_vlm(config.network.vlm)

    def check(self, config: ManipulationConfig) -> None:
        """Raise unless the model is there and LeRobot is of the version that the run began with."""
        assert isinstance(config.network, SmolVLANetworkConfig)
        noted, found = config.network.lerobot, network.lerobot_version()
        if noted and noted != found:
            raise InputError(
                f"The run was begun with LeRobot {noted} and this is {found}, whose loss treats "
                "padded actions differently: install the former, or start a new run."
            )
        network.make_policy_config(config)

    def check_instructions(self, policy: Any, instructions: Sequence[str]) -> None:
        """Raise if two instructions are the same tokens, as those of unknown words are."""
        tokenizer = policy.model.vlm_with_expert.processor.tokenizer
        seen: dict[tuple[int, ...], str] = {}
        for text in dict.fromkeys(instructions):
            other = seen.setdefault(tuple(tokenizer(text)["input_ids"]), text)
            if other != text:
                raise InputError(
                    f"{policy.config.vlm_model_name} cannot tell {text!r} and {other!r} apart, "
                    "because it does not know their words. Use another network.vlm."
                )

    def make_policy(self, config: ManipulationConfig, device: str = "cpu") -> Any:
        """Build the policy."""
        return network.make_policy(config, device)

    def make_processors(self, policy: Any, statistics: Statistics) -> tuple[Any, Any]:
        """Return LeRobot's pipelines."""
        return network.make_processors(policy, statistics)

    def measure_statistics(self, demonstrations: Demonstrations) -> Statistics:
        """Return mean and deviation of state and action."""
        return network.measure_statistics(demonstrations)

    def make_actor(self, policy: HandlingPolicy, task: Task) -> SmolVLAActor:
        """Return the policy following a task's instruction."""
        return SmolVLAActor(policy, task)

    def frozen(self, policy: Any) -> frozenset[str]:
        """Return the weights of the vision-language model."""
        return frozenset(name for name in policy.state_dict() if name.startswith(network.VLM))

    def describe_frozen(self, policy: Any) -> str:
        """Name the vision-language model."""
        return f"The vision-language model {policy.config.vlm_model_name}"

    def conditioner(self, policy: Any) -> nn.Module | None:
        """Return what makes the token of the state."""
        return policy.model.state_proj

    def conditioner_inputs(self, policy: HandlingPolicy, states: Tensor) -> Tensor:
        """Normalise and pad the states."""
        batch = {STATE: states, "task": [""] * len(states)}
        with torch.no_grad():
            return policy.network.prepare_state(policy.normalise(batch))

    def export(self, policy: HandlingPolicy, folder: Path, final: Path) -> None:
        """Write a LeRobot pretrained folder; a random model's tokenizer and config go with it."""
        settings = policy.network.config
        assert isinstance(policy.config.network, SmolVLANetworkConfig)
        if not is_random(policy.config.network.vlm):
            super().export(policy, folder, final)
            return
        used = settings.vlm_model_name
        shutil.copytree(used, folder / _COPIED)
        there = str(final.resolve() / _COPIED)
        steps = [step for step in policy.normalise.steps if hasattr(step, "tokenizer_name")]
        try:
            for one, name in (
                (settings, "vlm_model_name"),
                *((s, "tokenizer_name") for s in steps),
            ):
                setattr(one, name, there)
            super().export(policy, folder, final)
        finally:
            for one, name in (
                (settings, "vlm_model_name"),
                *((s, "tokenizer_name") for s in steps),
            ):
                setattr(one, name, used)


SMOLVLA = SmolVLABackbone()
"""LeRobot's SmolVLA."""
