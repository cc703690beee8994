"""What trained policies learned: studies of run folders, and rollouts to study."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.analysis.features import feature_names, read_features
    from prism_motor.analysis.live import TopInteractions
    from prism_motor.analysis.recording import CommandScript, record
    from prism_motor.analysis.rollouts import Columns, Rollout
    from prism_motor.analysis.study import (
        STUDIES,
        Finding,
        Report,
        ResultTable,
        Study,
        choose_study,
        register_study,
        run_study,
    )
    from prism_motor.analysis.subjects import Subject, load_subjects

__all__ = [
    "STUDIES",
    "Columns",
    "CommandScript",
    "Finding",
    "Report",
    "ResultTable",
    "Rollout",
    "Study",
    "Subject",
    "TopInteractions",
    "choose_study",
    "feature_names",
    "load_subjects",
    "read_features",
    "record",
    "register_study",
    "run_study",
]

# Most of these need torch, which the command line imports as late as it can.
__getattr__ = lazy(
    __name__,
    {
        "STUDIES": "study",
        "Columns": "rollouts",
        "CommandScript": "recording",
        "Finding": "study",
        "Report": "study",
        "ResultTable": "study",
        "Rollout": "rollouts",
        "Study": "study",
        "Subject": "subjects",
        "TopInteractions": "live",
        "choose_study": "study",
        "feature_names": "features",
        "load_subjects": "subjects",
        "read_features": "features",
        "record": "recording",
        "register_study": "study",
        "run_study": "study",
    },
)
