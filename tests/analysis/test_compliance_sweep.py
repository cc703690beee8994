import json

import pytest

from prism_motor.analysis.compliance_sweep import SweepConfig, run_sweep, write_sweep
from prism_motor.analysis.manipulators import load_manipulators
from prism_motor.cli import main
from prism_motor.manipulation.compliance import ComplianceGrid, choose_trial, find_compliance


@pytest.fixture(scope="module")
def manipulators(make_pusher):
    return load_manipulators([make_pusher("linear")])[0]


def test_settings_are_tried_from_the_same_random_resets(manipulators, short_scene, tmp_path):
    config = SweepConfig("mcc-oracle", ComplianceGrid((0.0, 0.045), (0.5,), (0.5,)), episodes=2)
    reports, resets = [], []
    reset = short_scene.reset

    def watched(**options):
        resets.append(options)
        return reset(**options)

    short_scene.reset = watched
    try:
        trials = run_sweep(manipulators, short_scene, config, lambda: reports.append(1))
    finally:
        del short_scene.reset
    assert len(reports) == 4
    assert all(options.get("initial_state") is None for options in resets)
    seeds = [options["seed"] for options in resets]
    assert seeds[:2] == seeds[2:]
    assert [trial.episodes for trial in trials] == [2, 2]
    file = write_sweep(trials, manipulators, config, [], tmp_path)
    data = json.loads(file.read_text())
    assert find_compliance(str(file)) == choose_trial(trials).config
    assert sum("*" in row[0] for row in data["table"]["rows"]) == 1
    assert data["runs"][0]["arm"] == "linear"
    assert "none of the fixed initial states" in data["caption"]


def test_a_baseline_that_cannot_work_is_refused(make_pusher, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["compliance", str(make_pusher("linear")), "--out", str(tmp_path)])
    assert "no actuated joints" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["contact", str(make_pusher("linear")), "--stiffness", "50", "--out", str(tmp_path)])
    assert "has no stiffness" in capsys.readouterr().err
    with pytest.raises(ValueError, match="episodes must be at least 1"):
        SweepConfig(episodes=0)
