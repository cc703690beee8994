"""``prism embed`` and ``prism explain`` of tracking runs."""

import json

import numpy as np
import pytest
import torch

from prism_motor.analysis.embed import NotComparableError
from prism_motor.analysis.explain.removals import remove_each
from prism_motor.analysis.study import choose_study, find_studies
from prism_motor.analysis.subjects import Subject, load_subjects
from prism_motor.analysis.tracking.embed import TrackingEmbedConfig, embed
from prism_motor.analysis.tracking.explain import TrackingExplainConfig
from prism_motor.analysis.tracking.products import filter_products
from prism_motor.analysis.tracking.rollouts import follow, read_clips
from prism_motor.cli import main
from prism_motor.domains import DOMAINS
from prism_motor.tracking.evaluation import cut_pieces
from prism_motor.train import session
from tests.train.cases import CASES

CASE = CASES["tracking"]


@pytest.fixture(scope="module", autouse=True)
def short_clips():
    patch = CASE.setup()
    yield
    patch.undo()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of every arm, after one update."""
    folder = tmp_path_factory.mktemp("tracking")
    for arm in ("mlp", "mlp-matched", "prism"):
        session.train(*session.start(CASE.make(arm, updates=1), folder / arm))
    return folder


@pytest.fixture(scope="module")
def loaded(runs):
    return DOMAINS["tracking"].place_subject(runs / "prism")


def test_a_command_finds_the_study_of_a_run(runs):
    for name in ("embed", "explain"):
        assert [study.domain for study in find_studies(name)] == ["locomotion", "tracking"]
        assert choose_study(name, [runs / "prism"]).domain == "tracking"
    with pytest.raises(ValueError, match=r"tracking run, but prism probe studies"):
        choose_study("probe", [runs / "prism"])


def test_policies_come_with_their_settings(runs):
    subjects, left_out = load_subjects([runs / "mlp", runs / "prism"], domain="tracking")
    assert [subject.arm for subject in subjects] == ["mlp", "prism"]
    assert not left_out
    about = subjects[1].about
    assert (about["training_seed"], about["checkpoint"]) == (3, 1)
    assert about["policy_sha256"] != subjects[0].about["policy_sha256"]


def test_rows_are_what_the_policy_saw_and_did(loaded):
    references = read_clips(loaded)
    pieces = cut_pieces(references, 10.0, 0.02)
    pieces = [pieces[0]._replace(frames=12), pieces[1]]
    rows, tracked = follow(loaded, references, pieces, "nominal")
    assert rows.robots.tolist() == [0] * 11 + [1] * (pieces[1].frames - 1)
    assert rows.steps[:11].tolist() == list(range(11))
    joints = loaded.policy.layout.columns["state"]
    default = references.default_pose
    for row in (0, 5, 10):
        seen = rows.observations[row, joints][:29].numpy() + default
        np.testing.assert_allclose(seen, tracked[0].qpos[row, 7:], atol=1e-5)
    assert rows.upright[0]
    size = loaded.config.networks.latent
    torch.testing.assert_close(rows.latents.norm(dim=1), torch.full((len(rows.steps),), size**0.5))


def test_products_make_the_policys_own_actions_and_nothing_without_gates(loaded):
    products = filter_products(loaded)
    policy = loaded.policy
    generator = torch.Generator().manual_seed(0)
    observations = torch.randn(7, policy.layout.size, generator=generator)
    latents = torch.randn(7, loaded.config.networks.latent, generator=generator)
    with torch.no_grad():
        parts = products.read(products.rows(observations, latents))
        whole = products.targets(parts, products.features(parts))
        wanted = policy(observations, latents) * torch.tensor(loaded.config.task.units)
        torch.testing.assert_close(whole, wanted, atol=1e-5, rtol=1e-4)
        # One product removed is the policy with that gate at zero.
        changes = remove_each(products, parts)
        layer = policy.actor.inputs.filter.interaction
        before = layer.gate.detach().clone()
        layer.gate[0, 5] = 0.0
        other = policy(observations, latents) * torch.tensor(loaded.config.task.units)
        layer.gate.copy_(before)
    torch.testing.assert_close(changes[5], wanted - other, atol=1e-5, rtol=1e-3)
    assert changes.shape == (products.count, 7, 29)
    assert len(products.names()) == policy.layout.sizes["history"] == products.count


def test_names_are_those_of_the_history(loaded):
    names = filter_products(loaded).names()
    texts = {str(name) for name in names}
    assert {"q L knee (t-1)", "dq R hip pitch (t-2)", "gravity x (t-1)", "gyro z (t-2)"} <= texts
    assert {name.lag for name in names} == {1, 2}


@pytest.mark.parametrize(
    ("arm", "why"), [("mlp", "no filter of the history"), ("mlp-matched", "filter is an MLP")]
)
def test_runs_without_products_are_refused_before_anything_runs(runs, capsys, arm, why):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", str(runs / arm)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert why in said
    assert "networks.filter prism" in said
    assert not (runs / arm / "analysis").exists()


def test_explain_by_the_command(runs, tmp_path, capsys):
    words = ["--states", "20", "--draws", "2", "--top", "3", "--out", str(tmp_path)]
    main(["explain", str(runs / "prism"), *words])
    data = json.loads((tmp_path / "explain.json").read_text())
    assert len(data["table"]["rows"]) == 3
    distances = [product["distance"] for product in data["products"]]
    assert distances == sorted(distances, reverse=True)
    assert list(data["closed_loop"]) == [
        "whole policy", "without the strongest (3)", "without random ones (3)", "without any",
    ]  # fmt: skip
    assert (tmp_path / "removal.png").is_file()
    assert "mean |change|" in capsys.readouterr().out


def test_embed_by_the_command(runs, tmp_path):
    words = ["--conditions", "nominal", "payload", "--samples", "20", "--motion", "walk-forward"]
    words += ["--stretches", "5", "--out", str(tmp_path)]
    patch = pytest.MonkeyPatch()
    from prism_motor.tracking import references
    from prism_motor.tracking.motions.library import find_clips

    patch.setattr(references, "find_clips", find_clips)  # half a second is too short
    try:
        main(["embed", str(runs / "prism"), str(runs / "mlp"), *words])
    finally:
        patch.undo()
    data = json.loads((tmp_path / "embed.json").read_text())
    assert data["motion"] == "walk-forward"
    assert [policy["arm"] for policy in data["policies"]] == ["prism", "mlp"]
    for policy in data["policies"]:
        assert np.array(policy["points"]).shape == (2, 20, 2)
        assert policy["width"] == 64
        assert 0 <= policy["accuracies"]["features"]["value"] <= 1
    assert (tmp_path / "embed.png").is_file()


def test_a_motion_that_is_too_short_is_named(loaded, tmp_path):
    subject = Subject(tmp_path, loaded, "prism")
    with pytest.raises(ValueError, match=r"20 stretches of at least 5 do not fit.*--stretches 5"):
        embed(subject, TrackingEmbedConfig())
    with pytest.raises(NotComparableError, match=r"stands for only \d+ steps.*30 are needed"):
        embed(subject, TrackingEmbedConfig(stretches=5))


@pytest.mark.parametrize(
    ("config", "wrong", "message"),
    [
        (TrackingEmbedConfig, {"conditions": ("nominal", "ice")}, "Unknown condition 'ice'"),
        (TrackingEmbedConfig, {"conditions": ("nominal",)}, "at least two conditions"),
        (TrackingEmbedConfig, {"samples": 5}, "too few for a perplexity"),
        (TrackingEmbedConfig, {"stretches": 4}, "stretches must be from 5"),
        (TrackingExplainConfig, {"condition": "pushes"}, "Unknown condition 'pushes'"),
    ],
)
def test_settings_are_checked(config, wrong, message):
    with pytest.raises(ValueError, match=message):
        config(**wrong)
