"""Scripted experts for LIBERO: short programs of skills that use privileged state."""

from prism_motor.manipulation.suites.libero.experts.expert import (
    LiberoExpert,
    ProgramStep,
    derive_program,
)

__all__ = ["LiberoExpert", "ProgramStep", "derive_program"]
