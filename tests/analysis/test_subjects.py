"""Policies that can be compared, and what is said about the others."""

import shutil

import pytest

from prism_motor.analysis.subjects import load_same_task, load_subjects, same_layout
from prism_motor.runs import RunError


def test_nothing_to_study(tmp_path):
    with pytest.raises(RunError, match="There is no policy to analyse"):
        load_subjects([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match="at least one run"):
        load_subjects([])


def test_the_same_run_twice_is_refused(make_run):
    with pytest.raises(ValueError, match="every run only once"):
        load_subjects([make_run(), make_run() / "." / ".." / make_run().name])


def test_runs_of_an_arm_that_differ_in_more_than_the_seed_are_called_by_folder(make_run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(make_run("prism"), other)
    subjects, _ = load_subjects([make_run("prism"), other, make_run("mlp")])
    assert [s.arm for s in subjects] == [str(make_run("prism")), str(other), "mlp"]
    assert same_layout(subjects) == (subjects, [])


def test_runs_of_another_task_are_left_out(make_pusher, make_run, tmp_path):
    other = make_pusher("prism", task="reach-v3")
    found, left_out = load_same_task([make_pusher("prism"), other, make_run("mlp")])
    assert [one.arm for one in found] == ["prism"]
    unlike, foreign = sorted(left_out, key=lambda why: "is a locomotion run" in why)
    assert "reach-v3" in unlike
    assert "is a locomotion run, but this needs a manipulation run" in foreign
    with pytest.raises(RunError, match="no policy to analyse"):
        load_same_task([make_run("mlp")])


def test_training_seeds_of_an_arm_share_its_name(make_pusher):
    seeds, _ = load_same_task([make_pusher("prism"), make_pusher("prism", seed=2)])
    assert [one.arm for one in seeds] == ["prism", "prism"]
    assert [one.seed for one in seeds] == [1, 2]
    with pytest.raises(ValueError, match="every run only once"):
        load_same_task([make_pusher("prism")] * 2)
