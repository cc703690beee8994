import json

import pytest

from prism_motor.analysis.compliance import SweepConfig, make_finding, run_sweep
from prism_motor.analysis.study import write_finding
from prism_motor.analysis.subjects import load_same_task
from prism_motor.cli import main
from prism_motor.manipulation.compliance import choose_trial, find_compliance


@pytest.fixture(scope="module")
def subjects(make_pusher):
    return load_same_task([make_pusher("linear")])[0]


def test_settings_are_tried_from_the_same_random_resets(subjects, short_scene, tmp_path):
    config = SweepConfig("mcc-oracle", (0.0, 0.045), (0.5,), (0.5,), episodes=2)
    reports, resets = [], []
    reset = short_scene.reset

    def watched(**options):
        resets.append(options)
        return reset(**options)

    short_scene.reset = watched
    try:
        trials = run_sweep(subjects, short_scene, config, lambda: reports.append(1))
    finally:
        del short_scene.reset
    assert len(reports) == 4
    assert all(options.get("initial_state") is None for options in resets)
    seeds = [options["seed"] for options in resets]
    assert seeds[:2] == seeds[2:]
    assert [trial.episodes for trial in trials] == [2, 2]
    finding = make_finding(trials, subjects, config)
    (file,) = write_finding("compliance", finding, config, [], tmp_path)
    data = json.loads(file.read_text())
    assert find_compliance(str(file)) == choose_trial(trials).config
    assert sum("*" in row[0] for row in data["table"]["rows"]) == 1
    assert data["runs"][0]["arm"] == "linear"
    assert "not among the fixed initial states" in data["caption"]


def test_a_baseline_that_cannot_work_is_refused(make_pusher, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["compliance", str(make_pusher("linear")), "--out", str(tmp_path)])
    assert "no actuated joints" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["contact", str(make_pusher("linear")), "--stiffness", "50", "--out", str(tmp_path)])
    assert "has no option stiffness" in capsys.readouterr().err
    with pytest.raises(ValueError, match="episodes must be from 1"):
        SweepConfig(episodes=0)
