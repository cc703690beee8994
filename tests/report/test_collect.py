"""Run folders, whole and damaged, as records."""

import json

import pytest

from prism_motor.report.collect import collect
from prism_motor.runs import Run, RunError

from .folders import edit_json, write_evaluation, write_run

NOMINAL = {"nominal": [{}, {"survived": False}]}


def test_a_run_is_read_with_everything_that_traces_it(tmp_path):
    config = write_run(tmp_path / "deep" / "er" / "run", seed=3, rows=NOMINAL)
    (run,) = collect(tmp_path).runs
    assert run.name == "deep/er/run"
    assert run.config == config
    assert run.domain.name == "locomotion"
    assert run.finished
    assert (run.updates, len(run.metrics), len(run.episodes("nominal"))) == (20, 20, 2)
    assert run.episodes("payload") == []
    marker = json.loads((run.path / "checkpoints/00000020/complete.json").read_text())
    assert run.checkpoint_sha256 == marker["files"]["tensors.safetensors"]["sha256"]
    assert len(run.config_sha256) == 64
    assert run.provenance["packages"]["torch"]
    assert collect(tmp_path).problems == ()


def test_a_run_may_itself_be_given(tmp_path):
    write_run(tmp_path / "only", rows=NOMINAL)
    (run,) = collect(tmp_path / "only").runs
    assert run.name == "only"


def test_hidden_folders_and_folders_inside_runs_are_not_searched(tmp_path):
    write_run(tmp_path / "run")
    write_run(tmp_path / ".cache" / "run")
    write_run(tmp_path / "run" / "analysis" / "copy")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model": "something else"}')
    found = collect(tmp_path)
    assert [run.name for run in found.runs] == ["run"]
    assert found.problems == ()


def test_unfinished_runs_know_their_progress(tmp_path):
    write_run(tmp_path / "run", updates=5, planned=20)
    (run,) = collect(tmp_path).runs
    assert not run.finished
    assert (run.updates, run.budget) == (5, 20)


def test_a_run_that_went_on_longer_has_a_larger_budget(tmp_path):
    write_run(tmp_path / "run", updates=30, planned=20)
    (run,) = collect(tmp_path).runs
    assert run.finished
    assert run.budget == 30


def test_records_without_checkpoints_are_read_and_empty_ones_are_said(tmp_path):
    write_run(tmp_path / "fresh", updates=0)
    config = write_run(tmp_path / "stripped", rows=NOMINAL)
    for file in sorted((tmp_path / "stripped" / "checkpoints").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    found = collect(tmp_path)
    fresh, stripped = found.runs
    assert fresh.updates == 0
    assert stripped.updates == config.updates
    assert len(stripped.evaluations) == 1
    assert stripped.checkpoint_sha256 is None
    assert found.problems == (
        "fresh: neither a complete checkpoint nor an evaluation in the folder.",
    )


def test_evaluations_of_another_checkpoint_are_left_out(tmp_path):
    config = write_run(tmp_path / "run", rows=NOMINAL)
    write_evaluation(Run.open(tmp_path / "run"), config, "payload", [{}], 10)
    found = collect(tmp_path)
    assert [one.condition for one in found.runs[0].evaluations] == ["nominal"]
    assert "payload, seed 101, was evaluated after 10 updates" in found.problems[0]


def test_evaluations_of_two_policies_are_not_mixed(tmp_path):
    config = write_run(tmp_path / "run", rows=NOMINAL)
    write_evaluation(Run.open(tmp_path / "run"), config, "payload", [{}], 20, policy_sha256="f")
    found = collect(tmp_path)
    assert found.runs[0].evaluations == ()
    assert "2 different policies" in found.problems[0]


def test_changed_files_are_named_and_never_count_silently(tmp_path):
    for name in ("settings", "episodes", "metrics", "provenance", "whole"):
        write_run(tmp_path / name, rows={"nominal": [{}]}, seed=len(name))
    for file, old, new in (
        ("settings/config.json", '"updates": ', '"updates": 1'),
        ("episodes/evaluations/nominal-101.json", '"survived": true', '"survived": false'),
        ("metrics/metrics.jsonl", '"seconds": ', '"seconds": 1'),
        ("provenance/provenance.json", '"prism": "', '"prism": "9'),
    ):
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new))
    found = collect(tmp_path)
    states = {run.name: (run.integrity, len(run.evaluations)) for run in found.runs}
    assert states == {
        "episodes": ("changed", 0),
        "metrics": ("changed", 1),
        "provenance": ("changed", 1),
        "whole": ("intact", 1),
    }
    said = "\n".join(found.problems)
    assert "settings: config.json was changed after the run had begun" in said
    assert "episodes/evaluations/nominal-101.json is left out: it was changed" in said
    assert "metrics: metrics.jsonl is missing or has changed" in said
    assert "provenance: provenance.json is missing or has changed" in said
    assert len(found.problems) == 4


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda file: file.write_text(file.read_text()[:200]), "no readable JSON"),
        (lambda file: edit_json(file, schema=99), "schema 99, this prism reads 1"),
        (lambda file: edit_json(file, episodes=[{"steps": 3}]), "it has no 'survived'"),
        (lambda file: edit_json(file, episodes=[]), "no episodes"),
    ],
)
def test_damaged_evaluations_are_named_and_left_out(tmp_path, damage, message):
    write_run(tmp_path / "run", rows={**NOMINAL, "payload": [{}]})
    damage(tmp_path / "run" / "evaluations" / "nominal-101.json")
    found = collect(tmp_path)
    assert [one.condition for one in found.runs[0].evaluations] == ["payload"]
    assert found.problems[0].startswith("run/evaluations/nominal-101.json is left out")
    assert message in found.problems[0]


def test_runs_of_another_version_are_named_and_the_rest_is_read(tmp_path):
    write_run(tmp_path / "good", rows=NOMINAL)
    write_run(tmp_path / "newer", rows=NOMINAL)
    edit_json(tmp_path / "newer" / "config.json", shiny_new_key=1)
    write_run(tmp_path / "torn", rows=NOMINAL)
    file = tmp_path / "torn" / "config.json"
    file.write_text(file.read_text()[:100])
    found = collect(tmp_path)
    assert [run.name for run in found.runs] == ["good"]
    assert "newer: this version of prism cannot read the run" in found.problems[0]
    assert "'shiny_new_key'" in found.problems[0]
    assert "It was made by prism" in found.problems[0]
    assert "torn: config.json is damaged" in found.problems[1]


def test_tuning_runs_of_a_campaign_are_not_reported_and_missing_runs_are_counted(tmp_path):
    write_run(tmp_path / "prism-1", rows=NOMINAL)
    write_run(tmp_path / "tuning" / "prism" / "rate-901")
    write_run(tmp_path / "plain" / "tuning" / "run")  # a folder of that name outside a campaign
    plan = {"arms": [{"name": "prism"}, {"name": "mlp"}], "seeds": [1, 2], "variants": []}
    (tmp_path / "campaign.json").write_text(json.dumps(plan))
    found = collect(tmp_path)
    assert [run.name for run in found.runs] == ["plain/tuning/run", "prism-1"]
    assert found.plans[0].seeds == {"prism": (1, 2), "mlp": (1, 2)}
    assert "2 of 4 runs of the campaign have begun" in found.problems[0]


def test_old_names_of_arms_are_read_as_the_present_ones(tmp_path):
    write_run(tmp_path / "a", "gated", actor="prism", rows=NOMINAL)
    write_run(tmp_path / "b", "mlp-larger", actor="mlp-matched", rows=NOMINAL)
    plan = {"arms": [{"name": "gated"}, {"name": "mlp-larger"}], "seeds": [1]}
    (tmp_path / "campaign.json").write_text(json.dumps(plan))
    found = collect(tmp_path)
    assert [run.config.arm for run in found.runs] == ["prism", "mlp-matched"]
    assert found.plans[0].seeds == {"prism": (1,), "mlp-matched": (1,)}


def test_an_unknown_kind_of_run_is_named(tmp_path):
    write_run(tmp_path / "run")
    edit_json(tmp_path / "run" / "config.json", kind="juggling")
    (problem,) = collect(tmp_path).problems
    assert "run: this version of prism cannot read the run" in problem
    assert "Unknown domain 'juggling'" in problem


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(RunError, match="No such folder"):
        collect(tmp_path / "nowhere")
    assert collect(tmp_path).runs == ()
