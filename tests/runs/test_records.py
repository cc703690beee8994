"""Records: what is kept of runs, and that a report reads them like the runs."""

import json
from itertools import pairwise

import pytest

from prism_motor.cli import main
from prism_motor.runs import Run, RunError
from prism_motor.runs.records import thin, write_record, write_records


def make_run(path, rows=3):
    run = Run.create(path, {"preset": "laptop", "arm": "prism"})
    for i in range(rows):
        run.log({"update": i + 1, "loss": 1 / (3 + i)})
    run.close()
    provenance = json.loads((path / "provenance.json").read_text())
    provenance["command"] = ["/home/me/bin/prism", "--out=/home/me/run", "x"]
    (path / "provenance.json").write_text(json.dumps(provenance))
    episodes = [{"return": 1 / 3, "survived": True, "environment": 1}]
    run.write_evaluation("nominal-101", {"provenance": provenance, "episodes": episodes})
    return run


def test_a_record_has_everything_but_weights_and_folders(tmp_path):
    run = make_run(tmp_path / "run", rows=500)
    (run.path / "checkpoints" / "00000001").mkdir()
    write_record(run, tmp_path / "record")
    files = {file.relative_to(tmp_path / "record").as_posix() for file in
             (tmp_path / "record").rglob("*") if file.is_file()}  # fmt: skip
    assert files == {
        "config.json", "provenance.json", "metrics.jsonl", "seal.json",
        "evaluations/nominal-101.json",
    }  # fmt: skip
    kept = Run.open(tmp_path / "record")
    assert kept.config == run.config
    rows = kept.metrics()
    assert len(rows) == 200
    assert rows[0]["update"] == 1
    assert rows[-1]["update"] == 500
    assert rows[0]["loss"] == 0.333333
    data = json.loads((tmp_path / "record/evaluations/nominal-101.json").read_text())
    assert data["episodes"] == [{"return": 0.333333, "survived": True, "environment": 1}]
    text = "".join(file.read_text() for file in (tmp_path / "record").rglob("*.json"))
    assert "/home/me" not in text


def test_all_digits_when_asked(tmp_path):
    write_record(make_run(tmp_path / "run"), tmp_path / "record", digits=None)
    assert Run.open(tmp_path / "record").metrics()[0]["loss"] == 1 / 3


def test_a_campaign_keeps_its_tree_without_tuning_runs_and_logs(tmp_path):
    root = tmp_path / "campaign"
    for name in ("prism-1", "variant/mlp-1", "tuning/prism-901"):
        make_run(root / name)
    for name in ("campaign.json", "tuning.json", "report.md", "report.html"):
        (root / name).write_text("{}")
    for name in ("logs/prism-1.log", "analysis/probe/probe.json", "analysis/probe/windows.npz"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}")
    names, left_out = write_records(root, tmp_path / "kept")
    assert left_out == []
    assert sorted(names) == ["prism-1", "variant/mlp-1"]
    kept = {file.relative_to(tmp_path / "kept").as_posix() for file in
            (tmp_path / "kept").rglob("*") if file.is_file()}  # fmt: skip
    assert {"campaign.json", "tuning.json", "report.md", "analysis/probe/probe.json"} <= kept
    assert not any(name.startswith(("tuning/", "logs/")) for name in kept)
    assert "analysis/probe/windows.npz" not in kept
    assert "report.html" not in kept
    before = {file: file.read_bytes() for file in (tmp_path / "kept").rglob("*") if file.is_file()}
    write_records(root, tmp_path / "kept")
    assert before == {file: file.read_bytes() for file in before}


def test_nothing_to_keep_is_an_error(tmp_path, capsys):
    with pytest.raises(RunError, match="No runs found"):
        write_records(tmp_path, tmp_path.parent / "kept")
    with pytest.raises(RunError, match="No such folder"):
        write_records(tmp_path / "nowhere", tmp_path / "kept")
    make_run(tmp_path / "runs/one")
    with pytest.raises(SystemExit):
        main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "runs/kept")])
    assert "inside it" in capsys.readouterr().err


def test_thinned_metrics_keep_both_ends_and_even_steps():
    rows = [{"update": i} for i in range(1, 951)]
    kept = [row["update"] for row in thin(rows, 200)]
    assert (len(kept), kept[0], kept[-1]) == (200, 1, 950)
    assert {b - a for a, b in pairwise(kept)} <= {4, 5}
    assert thin(rows[:150], 200) == rows[:150]
    assert [row["update"] for row in thin(rows[:7], 3)] == [1, 4, 7]


def test_the_command_says_how_many_runs_there_are(tmp_path, capsys):
    make_run(tmp_path / "runs/one")
    main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "kept")])
    assert f"{tmp_path / 'kept'}: 1 run, " in capsys.readouterr().out
    main(["keep", str(tmp_path / "runs"), "--out", str(tmp_path / "kept")])  # its former name
    assert "prism keep is now called prism archive." in capsys.readouterr().err


def test_records_of_runs_from_before_updates_were_called_so(tmp_path):
    run = make_run(tmp_path / "run")
    file = run.path / "metrics.jsonl"
    file.write_text(file.read_text().replace('"update"', '"iteration"'))
    write_record(run, tmp_path / "record")
    assert [row["update"] for row in Run.open(tmp_path / "record").metrics()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("provenance.json", "[]", "should hold a table, not list"),
        ("provenance.json", "{", "cannot be read"),
        ("evaluations/a.json", "{}", "not an evaluation"),
        ("evaluations/a.json", '{"provenance": {}, "episodes": [NaN]}', "NaN, which is no number"),
        ("evaluations/a.json", '{"provenance": 1, "episodes": []}', "not an evaluation"),
        ("evaluations/a.json", "\\udcff", "damaged"),
    ],
)
def test_damaged_files_are_named(file, text, words, tmp_path, capsys):
    run = make_run(tmp_path / "runs/one")
    (run.path / "evaluations").mkdir(exist_ok=True)
    (run.path / file).write_text(text)
    with pytest.raises(SystemExit) as stopped:
        main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "kept")])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert file in said


def test_provenance_without_a_command_is_kept_as_it_is(tmp_path):
    run = make_run(tmp_path / "run")
    (run.path / "provenance.json").write_text('{"prism": "0.1"}')
    write_record(run, tmp_path / "record")
    assert json.loads((tmp_path / "record" / "provenance.json").read_text())["prism"] == "0.1"
