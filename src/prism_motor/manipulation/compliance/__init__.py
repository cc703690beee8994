"""Compliance at execution time: the MCC baselines around any policy."""

from prism_motor.manipulation.compliance.config import (
    COMPLIANCE,
    ComplianceConfig,
    compliance_label,
    find_compliance,
)
from prism_motor.manipulation.compliance.corrector import ComplianceCorrector, make_corrector
from prism_motor.manipulation.compliance.force import exerted_force

__all__ = [
    "COMPLIANCE",
    "ComplianceConfig",
    "ComplianceCorrector",
    "compliance_label",
    "exerted_force",
    "find_compliance",
    "make_corrector",
]
