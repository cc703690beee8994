"""Shipped policies: made from a run, opened by name, copied before anything is written."""

import json
import os
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from prism_motor.cli import main
from prism_motor.locomotion.evaluation import Protocol
from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.presets import make_config
from prism_motor.runs import Run, RunError
from prism_motor.runs.keep import thin
from prism_motor.runs.shipped import SHIPPED, resolve, shipped_names, working_copy
from prism_motor.train import walking_session as session
from prism_motor.train.ship import LARGEST, folder_size, ship
from prism_motor.train.walking_evaluations import Evaluations

PROTOCOL = Protocol(2, 1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two updates, with an evaluation of the newest weights and one of older ones."""
    config = make_config("laptop", "gated", seed=3)
    ppo = replace(config.ppo, steps=4, epochs=1, minibatches=2)
    config = replace(config, ppo=ppo, envs=4, checkpoint_every=1, iterations=2)
    short = replace(config.task.terminations, duration=0.2)
    config = replace(config, task=replace(config.task, terminations=short))
    path = tmp_path_factory.mktemp("ship") / "trained"
    run, trainer = session.start(config, path)
    session.train(run, trainer, 2)
    Evaluations(path, PROTOCOL).measure("nominal", 101)
    Evaluations(path, PROTOCOL, step=1).measure("nominal", 102)
    provenance = json.loads((path / "provenance.json").read_text())
    provenance["command"] = ["prism", "train", "--out", "/home/me/deep/run/", "--x=/home/me/y", "a"]
    (path / "provenance.json").write_text(json.dumps(provenance))
    return path


@pytest.fixture
def package(trained, tmp_path, monkeypatch):
    """A package that ships ``tiny``, and a working directory of one's own."""
    folder = tmp_path / "package"
    for module in ("runs.shipped", "learn.ship"):
        monkeypatch.setattr(f"prism.{module}.SHIPPED", folder)
    ship(trained, "tiny", folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def contents(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


# Making -----------------------------------------------------------------------------------------


def test_the_policy_is_the_same_and_the_rest_of_the_checkpoint_is_gone(trained, package):
    one, two = load_policy(trained), load_policy("tiny")
    assert (two.step, two.config) == (2, one.config)
    for name, tensor in one.actor.state_dict().items():
        assert torch.equal(two.actor.state_dict()[name], tensor), name
    x = torch.randn(5, 235)
    assert torch.equal(one(x), two(x))
    assert all(name.startswith("actor.") for name in Run.open("tiny").load().tensors)
    assert folder_size(package) < 0.3 * folder_size(trained)


def test_evaluations_of_these_weights_are_kept_and_of_others_not(trained, package):
    assert os.listdir(package / "tiny" / "evaluations") == ["nominal-101.json"]
    assert Evaluations("tiny", PROTOCOL).read("nominal", 101) == Evaluations(
        trained, PROTOCOL
    ).read("nominal", 101)


def test_the_record_names_no_folder_of_the_machine_it_was_made_on(package, trained):
    provenance = json.loads((package / "tiny" / "provenance.json").read_text())
    assert provenance["command"] == ["prism", "train", "--out", "run", "--x=y", "a"]
    assert provenance["kept"] == "2 of 2 rows of metrics"
    assert provenance["commit"] == json.loads((trained / "provenance.json").read_text())["commit"]


def test_thinned_metrics_keep_both_ends_and_even_steps():
    rows = [{"iteration": i} for i in range(1, 951)]
    kept = [row["iteration"] for row in thin(rows, 200)]
    assert (len(kept), kept[0], kept[-1]) == (200, 1, 950)
    assert {b - a for a, b in pairwise(kept)} <= {4, 5}
    assert thin(rows[:150], 200) == rows[:150]


def test_a_policy_of_the_same_name_is_replaced_only_by_a_whole_one(trained, package, tmp_path):
    before = contents(package)
    with pytest.raises(ValueError, match="lower-case"):
        ship(trained, "../tiny", package)
    with pytest.raises(RunError, match="no run at"):
        ship(tmp_path / "nowhere", "tiny", package)
    assert contents(package) == before
    ship(trained, "tiny", package)
    assert contents(package).keys() == before.keys()
    assert os.listdir(package) == ["tiny"]


def test_too_large_a_policy_is_refused(trained, package, monkeypatch):
    monkeypatch.setattr("prism_motor.train.ship.LARGEST", 1000)
    with pytest.raises(RunError, match="smaller network"):
        ship(trained, "large", package)
    assert os.listdir(package) == ["tiny"]


# Opening ----------------------------------------------------------------------------------------


def test_a_folder_wins_over_a_shipped_name_and_unknown_names_list_what_there_is(trained, package):
    assert shipped_names() == ["tiny"]
    assert resolve("tiny") == package / "tiny"
    with pytest.raises(RunError, match=r"no run at tinny; these come with prism: tiny\."):
        resolve("tinny")
    Run.create("tiny", {"mine": True})
    assert Run.open("tiny").config == {"mine": True}


def test_a_copy_is_made_once_used_again_and_never_taken_for_another_policy(trained, package):
    assert working_copy(trained) == trained
    copy = working_copy("tiny")
    assert str(copy) == "outputs/tiny"
    assert contents(copy) == contents(package / "tiny")
    (copy / "mine").write_text("kept")
    assert working_copy(package / "tiny") == copy  # by its path it is a shipped policy too
    assert (copy / "mine").read_text() == "kept"
    marker = next(copy.glob("checkpoints/*/complete.json"))
    marker.write_text(marker.read_text().replace('"step": 2', '"step": 1'))
    with pytest.raises(RunError, match="Move it away"):
        working_copy("tiny")


def test_evaluating_never_writes_into_the_package(package):
    before = contents(package)
    evaluations = Evaluations("tiny", PROTOCOL)
    assert evaluations.plan(["nominal"], [101]) == []
    with pytest.raises(RunError, match=r"working_copy\('tiny'\)"):
        evaluations.plan(["nominal"], [101, 103])
    with pytest.raises(RunError, match=r"working_copy\('tiny'\)"):
        evaluations.measure("nominal", 103)
    assert contents(package) == before


def test_training_does_not_go_on_from_a_shipped_policy(package):
    for run in ("tiny", working_copy("tiny")):
        with pytest.raises(RunError, match="start a new run"):
            session.resume(run)


def test_eval_takes_the_name_and_writes_into_the_copy(package, capsys):
    before = contents(package)
    main(["eval", "tiny", "--seeds", "101", "103", "--envs", "2", "--episodes", "1"])
    said = capsys.readouterr().out
    assert "tiny comes with prism; this goes to its copy in outputs/tiny.\n" in said
    assert "1 evaluations are done already" in said
    assert os.path.exists("outputs/tiny/evaluations/nominal-103.json")
    assert contents(package) == before
    with pytest.raises(SystemExit):
        main(["eval", "tinny"])
    assert "these come with prism: tiny." in capsys.readouterr().err


@pytest.mark.slow
def test_export_and_video_take_the_name_and_write_into_the_copy(package):
    before = contents(package)
    main(["export", "tiny"])
    assert os.path.exists("outputs/tiny/export/policy.onnx")
    main(["video", "tiny", "--seconds", "0.1", "--width", "96", "--height", "72"])
    assert os.path.exists("outputs/tiny/videos/00000002-nominal.mp4")
    main(["video", "tiny", "--out", "film.gif", "--seconds", "0.1"])
    assert contents(package) == before


# What this package ships ------------------------------------------------------------------------


@pytest.mark.skipif(not shipped_names(), reason="this package ships no policy yet")
def test_what_is_shipped_is_small_loads_and_has_its_evaluations():
    for name in shipped_names():
        assert folder_size(SHIPPED / name) <= LARGEST, name
        evaluations = Evaluations(name)
        action = evaluations.policy(torch.zeros(1, evaluations.policy.module.input_size))
        assert torch.isfinite(action).all()
        files = sorted((SHIPPED / name / "evaluations").glob("*.json"))
        assert files, name
        for file in files:
            condition, seed = file.stem.rsplit("-", 1)
            assert evaluations.read(condition, int(seed)), file
        assert "/" not in " ".join(
            json.loads((SHIPPED / name / "provenance.json").read_text())["command"]
        )
