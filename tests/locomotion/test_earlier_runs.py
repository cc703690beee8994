"""A policy trained by version 0.1.0, as it lies on users' disks: another solver, other names."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from prism_motor.cli import main
from prism_motor.domains import open_run

EARLIER = Path(__file__).parent / "earlier" / "g1-prism"


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(EARLIER, tmp_path / "g1-prism"))


def test_it_keeps_its_physics_and_gait(run):
    _, domain, config = open_run(run)
    assert (domain.name, config.arm, config.task.simulation.solver) == ("locomotion", "prism", 1)
    assert config.task.gait.stride == ()


def test_it_was_sealed_by_its_checkpoint_only_which_is_no_error(run, capsys):
    main(["verify", str(run)])
    assert "not sealed" in capsys.readouterr().out


def test_its_episodes_count_and_it_walks_as_it_did(run, capsys):
    words = ("--conditions", "nominal", "--seeds", "101", "--envs")
    main(["eval", str(run), *words, "100"])
    assert "200 episodes already done" in capsys.readouterr().out
    main(["eval", str(run), *words, "4", "--episodes", "1", "--out", str(run.parent / "again")])
    stored, again = (
        json.loads((folder / "evaluations" / "nominal-101.json").read_text())["episodes"]
        for folder in (run, run.parent / "again")
    )
    assert all(episode["survived"] for episode in again)
    for measure in ("linear_error", "yaw_error", "speed_ratio", "swing_apex"):
        before = np.array([e[measure] for e in stored if e[measure] is not None])
        now = np.array([e[measure] for e in again])
        assert abs(now.mean() - before.mean()) < 2 * before.std()


def test_it_is_exported_with_its_own_gait(run, tmp_path):
    main(["export", str(run), "--out", str(tmp_path / "export")])
    contract = json.loads((tmp_path / "export" / "contract.json").read_text())
    assert "strides" not in json.dumps(contract)
