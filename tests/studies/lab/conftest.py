"""A tiny laboratory that the tests share."""

import pytest

from prism_motor.studies.lab.config import LabConfig
from prism_motor.studies.lab.runner import run_lab

TINY = LabConfig(
    problems=("gain-schedule", "linear"),
    arms=("prism-gate1",),
    sizes=(600,),
    samples=(200,),
    seeds=2,
    tuning_seeds=1,
    learning_rates=(5e-3, 2e-2),
    updates=6,
    batch=64,
    held_out=50,
)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished laboratory; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("lab") / "tiny"
    run_lab(folder, TINY)
    return folder
