"""Compliance at execution time: the MCC baselines around any policy."""

from prism.manipulation.compliance.config import COMPLIANCE, ComplianceConfig, find_compliance
from prism.manipulation.compliance.corrector import ComplianceCorrector, make_corrector
from prism.manipulation.compliance.force import exerted_force

__all__ = [
    "COMPLIANCE",
    "ComplianceConfig",
    "ComplianceCorrector",
    "exerted_force",
    "find_compliance",
    "make_corrector",
]
