"""Settings of SmolVLA around the conditioner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from prism_motor._checks import InputError, check_choice
from prism_motor._ranges import above, between
from prism_motor.manipulation.config import PolicyNetwork
from prism_motor.sim.sensing import RENDERERS

PAPER_VLM = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"
"""The vision-language model of the paper."""


@dataclass(frozen=True)
class SmolVLANetworkConfig(PolicyNetwork):
    """SmolVLA: a frozen vision-language model and an action expert that is trained."""

    backbone: ClassVar[str] = "smolvla"
    inputs: ClassVar[str] = "images"  # type: ignore[misc]
    observation_steps: ClassVar[int] = 1  # type: ignore[misc]
    dropped: ClassVar[int] = 0  # type: ignore[misc]
    derived: ClassVar[Mapping[str, Any]] = {**PolicyNetwork.derived, "lerobot": ""}

    vlm: str = PAPER_VLM
    """Vision-language model: its name on the hub, a folder, or one of random-tiny and
    random-laptop, which are small, have fixed random weights and need no download."""
    vlm_layers: Annotated[int, between(1, 1000)] = 16
    """Number of its language layers that are used, from the first."""
    image_size: Annotated[int, between(1, 4096)] = 256
    """Side of the images, pixels."""
    renderer: str = "fast"
    """How images are drawn in evaluations, which must be as in the demonstrations: fast (without
    shadows, reflections and multisampling), or stock (by the suite's own renderer, as in public
    demonstrations)."""
    drawn_size: Annotated[int, between(0, 4096)] = 0
    """Side of the images as they are drawn, if that is not image_size, to which they are scaled.
    Read from the demonstrations."""
    encoder_size: Annotated[int, between(1, 4096)] = 512
    """Side that images are scaled to for the vision encoder, pixels."""
    horizon: Annotated[int, between(1, 10_000)] = 50
    """Number of actions denoised together."""
    action_steps: Annotated[int, between(1, 10_000)] = 50
    """Number of those actions that are executed."""
    inference_steps: Annotated[int, between(1, 100_000)] = 10
    """Denoising steps when acting."""
    expert_width: Annotated[float, above(0, 16)] = 0.75
    """Width of the action expert relative to the language model."""
    lerobot: str = ""
    """Version of LeRobot, on which the loss of padded actions depends; read from the
    installation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("network.renderer", self.renderer, RENDERERS)
        if self.action_steps > self.horizon:
            raise InputError(
                f"network.action_steps can be at most the horizon, {self.horizon}, got "
                f"{self.action_steps}."
            )
        if not self.vlm or not self.vlm.isprintable():
            raise InputError("network.vlm: give a name on the hub, a folder or random-laptop.")
