"""``prism eval``: a table, nothing twice, and mistakes before any simulation."""

import json
import math

import pytest

from prism_motor.cli import main
from prism_motor.runs import Run, to_dict
from prism_motor.train import session
from tests.train.cases import make_walking

TINY = ["--envs", "3", "--episodes", "2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("eval") / "run"
    session.train(*session.start(make_walking(updates=2, checkpoint_every=1), path))
    return path


def error_of(capsys, *words, code=2):
    with pytest.raises(SystemExit) as stopped:
        main(["eval", *map(str, words)])
    assert stopped.value.code == code
    return capsys.readouterr().err


def test_the_command_prints_a_table_and_does_nothing_twice(run, capsys):
    words = ["eval", str(run), "--conditions", "nominal", "low-friction", "--seeds", "101", "102"]
    main([*words, *TINY])
    first = capsys.readouterr().out
    assert "prism on laptop, preset laptop, training seed 3, checkpoint 2" in first
    lines = {line.split("  ")[0]: line for line in first.splitlines()}
    assert lines["episodes"].split() == ["episodes", "12", "12"]
    low = 100 * 12 / (12 + 1.959963984540054**2)  # Wilson, everybody survived
    assert f"100.0 [{low:.1f}, 100.0]" in lines["survival, %"]
    stored = (run / "evaluations" / "nominal-101.json").read_text()
    main([*words, *TINY])
    second = capsys.readouterr().out
    assert "24 episodes already done (--again repeats them)." in second
    assert second.split("\n\n", 1)[1] == first.split("\n\n", 1)[1]
    assert (run / "evaluations" / "nominal-101.json").read_text() == stored
    assert math.isfinite(json.loads(stored)["episodes"][0]["episode_return"])
    main([*words, *TINY, "--again"])
    again = json.loads((run / "evaluations" / "nominal-101.json").read_text())
    assert again["episodes"] == json.loads(stored)["episodes"]


def test_results_go_to_a_copy_on_request(run, tmp_path, capsys):
    out = tmp_path / "kept" / "copy"
    words = ["eval", str(run), "--seeds", "9", *TINY, "--out", str(out)]
    main(words)
    assert f"Writing to a copy of {run} in {out}." in capsys.readouterr().out
    assert (out / "evaluations" / "nominal-9.json").is_file()
    assert not (run / "evaluations" / "nominal-9.json").exists()
    main(words)
    assert "6 episodes already done" in capsys.readouterr().out
    other = tmp_path / "other"
    other.mkdir()
    assert "is not a copy of the run" in error_of(capsys, *words[1:-1], other)


def test_names_of_shipped_policies_are_suggested_and_renamed(capsys):
    said = error_of(capsys, "g1-prsm")
    assert "Did you mean 'g1-prism'?" in said
    with pytest.raises(SystemExit) as stopped:
        main(["eval", "g1-gated", "--help"])
    assert not stopped.value.code
    assert "g1-gated is now called g1-prism." in capsys.readouterr().err


def test_an_earlier_checkpoint(run, capsys):
    main(["eval", str(run), "--checkpoint", "1", "--seeds", "7", *TINY])
    assert "checkpoint 1" in capsys.readouterr().out
    assert json.loads((run / "evaluations" / "nominal-7.json").read_text())["checkpoint"] == 1


def test_mistakes_are_reported_before_any_simulation(run, tmp_path, capsys, monkeypatch):
    def build(*_, **__):
        raise AssertionError("a simulation was started")

    monkeypatch.setattr("prism_motor.locomotion.evaluation.VelocityEnv", build)
    assert "No run found at" in error_of(capsys, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "not a run folder" in error_of(capsys, tmp_path / "empty")
    Run.create(tmp_path / "fresh", to_dict(make_walking()))
    assert "no complete checkpoint yet" in error_of(capsys, tmp_path / "fresh")
    message = error_of(capsys, run, "--conditions", "nominal", "low-frictoin")
    assert "Did you mean 'low-friction'" in message
    assert "has no checkpoint 7; available: [0, 1, 2]" in error_of(capsys, run, "--checkpoint", 7)
    assert "envs must be from 1" in error_of(capsys, run, "--envs", 0)
    assert "threads must be from 1" in error_of(capsys, run, "--threads", 0)
    assert "seeds must be unique; repeated: 101" in error_of(capsys, run, "--seeds", 101, 101)
    assert "seeds[0] must be from 0 to" in error_of(capsys, run, "--seeds", -1)
    assert "--conditions" in error_of(capsys, run, "--condition", "nominal")
    assert "stiffness" in error_of(capsys, run, "--stiffness", 50)  # handling's alone


def test_help_with_and_without_a_run(run, capsys):
    for words, code in (([], 2), (["--help"], 0)):
        with pytest.raises(SystemExit) as stopped:
            main(["eval", *words])
        assert stopped.value.code == code
        shown = capsys.readouterr().out
        assert "locomotion: nominal, low-friction" in shown
        assert "manipulation: none, delay" in shown
    with pytest.raises(SystemExit) as stopped:
        main(["eval", str(run), "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "--envs" in shown
    assert "--stiffness" not in shown
