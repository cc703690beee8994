"""Shipped policies: made from a run, opened by name, copied before anything is written."""

import json
import os
import sys

import pytest
import torch

from prism_motor.cli import main
from prism_motor.domains import DOMAINS, open_run
from prism_motor.runs import Run, RunError
from prism_motor.runs.configs import to_flags
from prism_motor.runs.shipped import SHIPPED, resolve, shipped_names, working_copy
from prism_motor.train import session
from prism_motor.train.evaluations import Evaluations
from prism_motor.train.ship import LARGEST, folder_size, ship


def measure(path, evaluation, step=None):
    evaluations = Evaluations(path, evaluation, step)
    for pair in evaluation.pairs:
        evaluations.measure(*pair, evaluations.missing(*pair))
    evaluations.close()


@pytest.fixture(scope="module")
def trained(case, tmp_path_factory):
    """A run of two updates, with an evaluation of the newest weights and one of older ones."""
    path = tmp_path_factory.mktemp("ship") / "trained"
    words = ["prism", "train", "--out", "/home/me/deep/run/", "--x=/home/me/y", "a"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        session.train(*session.start(case.make(updates=2, checkpoint_every=1), path))
    measure(path, case.evaluation(seeds=(101,)))
    measure(path, case.evaluation(seeds=(102,)), step=1)
    return path


@pytest.fixture
def package(trained, tmp_path, monkeypatch):
    """A package that ships ``tiny``, and a working directory of one's own."""
    folder = tmp_path / "package"
    for module in ("runs.shipped", "train.ship"):
        monkeypatch.setattr(f"prism_motor.{module}.SHIPPED", folder)
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


def test_the_policy_is_the_same_and_the_rest_of_the_checkpoint_is_gone(case, trained, package):
    prefix = DOMAINS[case.name].weights
    (one, _, config), (two, _, shipped) = open_run(trained), open_run("tiny")
    assert (two.checkpoint_step(), shipped) == (2, config)
    mine, theirs = one.weights(prefix), two.weights(prefix)
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        assert torch.equal(theirs[name], tensor), name
    assert not any(name.startswith("optimizer") for name in two.load().tensors)
    assert folder_size(package) < 0.5 * folder_size(trained)


def test_a_shipped_policy_acts_as_the_trained_one(case, trained, package):
    evaluation = case.evaluation(seeds=(103,))
    copy = working_copy("tiny")
    for path in (trained, copy):
        measure(path, evaluation)
    one, two = (Evaluations(path, evaluation).found() for path in (trained, copy))
    (trained / "evaluations" / f"{case.conditions[0]}-103.json").unlink()
    assert one == two


def test_evaluations_of_these_weights_are_kept_and_of_others_not(case, trained, package):
    plain, evaluation = case.conditions[0], case.evaluation()
    assert os.listdir(package / "tiny" / "evaluations") == [f"{plain}-101.json"]
    one, two = (Evaluations(path, evaluation).read(plain, 101) for path in ("tiny", trained))
    assert one == two
    assert len(one) == 2


def test_the_record_names_no_folder_of_the_machine_it_was_made_on(package, trained):
    provenance = json.loads((package / "tiny" / "provenance.json").read_text())
    assert provenance["command"] == ["prism", "train", "--out", "run", "--x=y", "a"]
    assert provenance["kept"] == "2 of 2 rows of metrics"
    assert provenance["commit"] == json.loads((trained / "provenance.json").read_text())["commit"]


def test_a_policy_of_the_same_name_is_replaced_only_by_a_whole_one(trained, package, tmp_path):
    before = contents(package)
    with pytest.raises(ValueError, match="lower-case"):
        ship(trained, "../tiny", package)
    with pytest.raises(RunError, match="No run found at"):
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
    with pytest.raises(RunError, match=r"at tinny; policies shipped with prism: tiny\."):
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


def test_evaluating_never_writes_into_the_package(case, package):
    before = contents(package)
    evaluations = Evaluations("tiny", case.evaluation(seeds=(101, 103)))
    plain = case.conditions[0]
    assert evaluations.missing(plain, 101) == []
    with pytest.raises(RunError, match=r"working_copy\('tiny'\)"):
        evaluations.measure(plain, 103, evaluations.missing(plain, 103))
    assert contents(package) == before


def test_training_does_not_go_on_from_a_shipped_policy(package):
    for run in ("tiny", working_copy("tiny")):
        with pytest.raises(RunError, match="start a new run"):
            session.resume(run)


def test_eval_takes_the_name_and_writes_into_the_copy(case, package, capsys):
    before = contents(package)
    size = to_flags(case.evaluation(seeds=(101, 103)))
    main(["eval", "tiny", *size])
    said = capsys.readouterr().out
    assert "tiny ships with prism; writing to its copy in outputs/tiny.\n" in said
    assert "2 episodes already done" in said
    assert os.path.exists(f"outputs/tiny/evaluations/{case.conditions[0]}-103.json")
    assert contents(package) == before
    with pytest.raises(SystemExit):
        main(["eval", "tinny"])
    assert "policies shipped with prism: tiny." in capsys.readouterr().err


@pytest.mark.slow
def test_export_and_video_take_the_name_and_write_into_the_copy(case, package):
    before = contents(package)
    main(["export", "tiny"])
    if case.name == "manipulation":
        assert os.path.exists("outputs/tiny/pretrained/model.safetensors")
    else:
        assert os.path.exists("outputs/tiny/export/policy.onnx")
    if case.name == "locomotion":
        main(["video", "tiny", "--seconds", "0.1", "--width", "96", "--height", "72"])
        assert os.path.exists("outputs/tiny/videos/00000002-nominal-forward0.5-seed1.mp4")
        main(["video", "tiny", "--out", "film.gif", "--seconds", "0.1"])
    assert contents(package) == before


# What this package ships ------------------------------------------------------------------------


@pytest.mark.skipif(not shipped_names(), reason="this package ships no policy")
@pytest.mark.parametrize("name", shipped_names())
def test_what_is_shipped_is_small_loads_and_names_no_machine(name):
    assert folder_size(SHIPPED / name) <= LARGEST
    _, domain, _ = open_run(name)
    policy = domain.load_policy(name)
    weights = getattr(policy, "module", policy).state_dict()
    assert weights
    assert all(torch.isfinite(value).all() for value in weights.values())
    provenance = json.loads((SHIPPED / name / "provenance.json").read_text())
    assert "/" not in " ".join(provenance["command"])
