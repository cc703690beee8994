"""The tree of run folders: what is a run, and what a walk goes through."""

from prism_motor.runs import Run
from prism_motor.runs.layout import is_run, walk_runs


def test_a_run_has_settings_and_provenance_or_checkpoints(tmp_path):
    run = Run.create(tmp_path / "run", {})
    assert is_run(run.path)
    (run.path / "provenance.json").unlink()
    assert is_run(run.path)
    (run.path / "checkpoints").rmdir()
    assert not is_run(run.path)
    assert not is_run(tmp_path)


def test_a_walk_finds_runs_in_order_and_leaves_out_what_is_inside_them(tmp_path):
    for name in ("b", "a/deep", "a/deeper/run", ".hidden/run", "logs/run", "analysis/run"):
        Run.create(tmp_path / name, {})
    Run.create(tmp_path / "b" / "inner", {})
    found = [path.relative_to(tmp_path).as_posix() for path, run in walk_runs(tmp_path) if run]
    assert found == ["a/deep", "a/deeper/run", "b"]
    assert [run for path, run in walk_runs(tmp_path / "b")] == [True]


def test_tuning_runs_of_a_campaign_are_left_out_and_other_folders_of_that_name_are_not(tmp_path):
    for name in ("one/tuning/run", "one/run", "two/tuning/run"):
        Run.create(tmp_path / name, {})
    (tmp_path / "one" / "campaign.json").write_text("{}")
    found = [path.relative_to(tmp_path).as_posix() for path, run in walk_runs(tmp_path) if run]
    assert found == ["one/run", "two/tuning/run"]
