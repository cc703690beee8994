"""Tracking through the commands, and what is wrong with clips: said before training starts."""

import json

import numpy as np
import pytest

from prism_motor.cli import main
from prism_motor.domains import DOMAINS, open_run
from prism_motor.runs import Run
from prism_motor.runs.configs import to_dict
from prism_motor.tracking.motions.clip import write_clip
from tests.tracking.robots import cut, replace
from tests.train.cases import CASES, assert_same_run

CASE, DOMAIN = CASES["tracking"], DOMAINS["tracking"]


@pytest.fixture(scope="module", autouse=True)
def short_clips():
    patch = CASE.setup()
    yield
    patch.undo()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two arms, by the command, evaluated under two conditions."""
    folder = tmp_path_factory.mktemp("runs")
    for arm in ("mlp-matched", "prism"):
        words = ["--preset", "tiny", "--arm", arm, "--seed", "3", "--threads", "1"]
        main(["train", "tracking", *words, "--out", str(folder / arm)])
        main(["eval", str(folder / arm), "--conditions", "nominal", "payload"])
    return folder


def test_train_by_preset_config_and_resume_are_the_same_run(trained, tmp_path):
    file = trained / "prism" / "config.json"
    main(["train", "--config", str(file), "--out", str(tmp_path / "again")])
    assert_same_run(trained / "prism", tmp_path / "again")
    main(["train", "--config", str(file), "--updates", "4", "--out", str(tmp_path / "parts")])
    main(["train", "--resume", str(tmp_path / "parts"), "--updates", "6"])
    assert_same_run(trained / "prism", tmp_path / "parts")


def test_units_follow_from_the_clips_and_are_no_part_of_a_plan(trained):
    config = open_run(trained / "prism")[2]
    assert len(config.task.units) == 29
    assert DOMAIN.planned(config).task.units == ()
    assert DOMAIN.prepare(DOMAIN.planned(config)) == config


def test_eval_shows_upright_beside_emd_and_what_needs_no_policy(trained, capsys):
    main(["eval", str(trained / "prism"), "--conditions", "nominal", "payload"])
    said = capsys.readouterr().out
    assert "already done" in said
    rows = [line.split("  ")[0].strip() for line in said.splitlines()]
    measures = [measure.title for measure in DOMAIN.measures]
    for title in measures:
        assert any(row.startswith(title) for row in rows), title
    assert measures.index("upright") < measures.index("EMD")


def test_other_clips_are_kept_apart(trained, capsys):
    run = trained / "mlp-matched"
    before = {f.name: f.read_bytes() for f in (run / "evaluations").glob("*.json")}
    main(["eval", str(run), "--clips", "bow"])
    new = {f.name for f in (run / "evaluations").glob("*.json")} - before.keys()
    assert len(new) == 1
    for name, content in before.items():
        assert (run / "evaluations" / name).read_bytes() == content
    rows = json.loads((run / "evaluations" / new.pop()).read_text())["episodes"]
    assert [row["clip"] for row in rows] == ["bow"]
    main(["report", str(run)])
    assert "it is about other clips than those of the training" in (run / "report.md").read_text()


def test_a_changed_clip_is_evaluated_anew(tmp_path, capsys):
    write_clip(cut("wave", 30), tmp_path)
    clips = [str(tmp_path / "wave.npz")]
    words = ["--preset", "tiny", "--task.clips", *clips, "--threads", "1"]
    main(["train", "tracking", *words, "--out", str(tmp_path / "run")])
    main(["eval", str(tmp_path / "run")])
    capsys.readouterr()
    main(["eval", str(tmp_path / "run")])
    assert "1 episodes already done" in capsys.readouterr().out.replace("episode ", "episodes ")
    write_clip(cut("wave", 30, first=60), tmp_path)
    main(["eval", str(tmp_path / "run")])
    assert "already done" not in capsys.readouterr().out


def test_verify_archive_and_report(trained, tmp_path, capsys):
    main(["verify", str(trained)])
    assert "prism" in capsys.readouterr().out
    main(["archive", str(trained), "--out", str(tmp_path / "kept")])
    kept = tmp_path / "kept"
    assert not list(kept.rglob("*.safetensors"))
    main(["report", str(kept)])
    text = (kept / "report.md").read_text()
    assert "mlp-matched" in text
    assert "payload" in text


# What is wrong with clips ------------------------------------------------------------------------


def refused(tmp_path, capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "tracking", "--preset", "tiny", *words, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert not (tmp_path / "run").exists()
    return capsys.readouterr().err


def damaged(tmp_path, **changes):
    """Write a clip whose file holds something else than it should."""
    file = write_clip(cut("wave", 30), tmp_path)
    with np.load(file, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(str(arrays["header"]))
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value(arrays[name])
        else:
            header[name] = value
    np.savez(file, **{**arrays, "header": np.array(json.dumps(header))})
    return str(file)


def with_nan(joints):
    joints = joints.copy()
    joints[7, 3] = np.nan
    return joints


def test_a_clip_that_is_missing(tmp_path, capsys):
    said = refused(tmp_path, capsys, "--task.clips", "stand", "wavve")
    assert "Unknown motion 'wavve'" in said
    said = refused(tmp_path, capsys, "--task.clips", str(tmp_path / "none.npz"))
    assert "none.npz" in said
    (tmp_path / "empty").mkdir()
    assert "has no motion clips" in refused(tmp_path, capsys, "--task.clips", f"{tmp_path}/empty")


def test_a_clip_of_another_robot(tmp_path, capsys):
    said = refused(tmp_path, capsys, "--task.clips", damaged(tmp_path, robot="h1"))
    assert "h1" in said
    said = refused(tmp_path, capsys, "--task.clips", damaged(tmp_path, joints=lambda q: q[:, :23]))
    assert "29" in said


def test_a_clip_with_nan(tmp_path, capsys):
    said = refused(tmp_path, capsys, "--task.clips", damaged(tmp_path, joints=with_nan))
    assert "wave.npz" in said
    assert "frame 7" in said


def test_a_clip_that_is_too_short(tmp_path, capsys):
    file = write_clip(replace(cut("wave", 8), name="blink"), tmp_path)
    said = refused(tmp_path, capsys, "--task.clips", "stand", str(file))
    assert "at least 9 frames" in said
    assert "blink (8)" in said


def test_settings_that_do_not_fit_together(tmp_path, capsys):
    assert "warm start alone has 2" in refused(tmp_path, capsys, "--updates", "2")
    assert "multiple of latents.window" in refused(tmp_path, capsys, "--learner.batch", "65")
    assert "friction" in refused(tmp_path, capsys, "--task.randomisation.friction", "1", "0.5")


def test_evaluating_refuses_bad_clips_before_it_starts(trained, capsys):
    run = trained / "prism"
    before = sorted((run / "evaluations").iterdir())
    with pytest.raises(SystemExit):
        main(["eval", str(run), "--clips", "wavve"])
    assert "Unknown motion 'wavve'" in capsys.readouterr().err
    assert sorted((run / "evaluations").iterdir()) == before


def test_settings_survive_their_file(trained):
    config = open_run(trained / "prism")[2]
    stored = json.loads((trained / "prism" / "config.json").read_text())
    assert stored == json.loads(json.dumps(to_dict(config)))
    assert Run.open(trained / "prism").steps()[-1] == 6
