"""Scripted experts for LIBERO: small programs of readable skills over privileged state."""

from prism_motor.manipulation.suites.libero.experts.expert import (
    LiberoExpert,
    ProgramStep,
    derive_program,
)

__all__ = ["LiberoExpert", "ProgramStep", "derive_program"]
