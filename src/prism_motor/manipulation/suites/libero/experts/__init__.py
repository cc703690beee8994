"""Scripted experts for LIBERO: small programs of readable skills over privileged state."""

from prism_motor.manipulation.suites.libero.experts.expert import LiberoExpert
from prism_motor.manipulation.suites.libero.experts.programs import (
    NoExpertError,
    Step,
    derive_program,
)

__all__ = ["LiberoExpert", "NoExpertError", "Step", "derive_program"]
