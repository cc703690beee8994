"""Settings of the compliance baselines, and those of the paper by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from prism_motor._errors import InputError
from prism_motor.nn.checks import check_choice
from prism_motor.runs.configs import from_dict

SOURCES = ("actuators", "contacts")
"""Where the force comes from: what the arm itself feels, or what only a simulator knows."""


@dataclass(frozen=True)
class ComplianceConfig:
    """How the executed translation yields to the force at the hand."""

    source: str = "actuators"
    """``actuators``: estimated from the torques of the arm; ``contacts``: told by the simulator."""
    gain: float = 0.015
    """Change of the action per newton, k_f."""
    delay: int = 2
    """Control steps that the force is late, d."""
    smoothing: float = 0.90
    """Share of the past in the moving average of the force."""
    noise: float = 0.15
    """Standard deviation of the noise on every component of the force, N; before the average."""
    damping: float = 1e-4
    """Added to the diagonal of J J^T, epsilon; of no use with ``contacts``."""
    clip: float = 0.05
    """Largest change of every component of the action."""

    def __post_init__(self) -> None:
        check_choice("compliance source", self.source, SOURCES)
        if self.delay < 0:
            raise InputError(f"Compliance: the delay must not be negative, got {self.delay}.")
        if not 0 <= self.smoothing < 1:
            raise InputError(
                f"Compliance: smoothing must be from 0 to below 1, got {self.smoothing}."
            )
        for name in ("gain", "noise", "clip"):
            if getattr(self, name) < 0:
                raise InputError(
                    f"Compliance: {name} must not be negative, got {getattr(self, name)}."
                )
        if self.damping <= 0:
            raise InputError(f"Compliance: damping must be positive, got {self.damping}.")


COMPLIANCE = {
    "mcc-sensorless": ComplianceConfig(),
    "mcc-oracle": ComplianceConfig(source="contacts", delay=0, noise=0.0),
}
"""The two baselines of the paper by name; the second cannot be deployed."""


def find_compliance(name: str) -> ComplianceConfig:
    """Return a baseline by name, or what ``prism compliance`` chose and wrote to a file."""
    if not name.endswith(".json"):
        return COMPLIANCE[check_choice("compliance baseline", name, COMPLIANCE)]
    try:
        return from_dict(ComplianceConfig, json.loads(Path(name).read_text())["chosen"], where=name)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{name} holds no settings of prism compliance: {error}. Give such a file, or one of "
            f"{', '.join(COMPLIANCE)}."
        ) from error


def compliance_label(name: str) -> str:
    """Return what tables and files call a baseline: its name, or that of the tuned one."""
    config = find_compliance(name)
    if name in COMPLIANCE:
        return name
    known = {one.source: label for label, one in COMPLIANCE.items()}
    return f"{known[config.source]}-tuned"
