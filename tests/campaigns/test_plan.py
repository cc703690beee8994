"""The plan: order, folders, settings, and what is prepared before."""

import pytest

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.plan import Plan

from .conftest import DOMAINS, HANDLING, campaign, plan


def test_a_cut_campaign_is_balanced(tmp_path):
    runs = plan(tmp_path, variants=[{"name": "a"}, {"name": "b"}])
    assert [run.path.relative_to(tmp_path).as_posix() for run in runs] == [
        "a/mlp-1", "a/prism-1", "b/mlp-1", "b/prism-1",
        "a/mlp-2", "a/prism-2", "b/mlp-2", "b/prism-2",
    ]  # fmt: skip
    assert [run.title for run in runs[:2]] == ["a/mlp-1", "a/prism-1"]
    assert plan(tmp_path)[0].path == tmp_path / "mlp-1"


def test_folders_have_the_name_in_the_file_and_runs_the_present_one(tmp_path):
    run = plan(tmp_path, arms=[{"name": "gated", "actor": "gated"}])[0]
    assert (run.title, run.arm, run.config.arm) == ("gated-1", "gated", "prism")


def test_the_more_special_settings_win(tmp_path):
    changed = plan(
        tmp_path,
        overrides={"envs": 4, "ppo.epochs": 2, "ppo.gamma": 0.9},
        variants=[
            {"name": "a", "overrides": {"ppo.epochs": 3, "ppo.gamma": 0.8}},
            {"name": "b", "like": "a", "overrides": {"ppo.epochs": 4}},
        ],
        arms=[{"name": "x", "arm": "mlp", "overrides": {"ppo.gamma": 0.7}}],
    )
    settings = [(run.config.envs, run.config.ppo.epochs, run.config.ppo.gamma) for run in changed]
    assert settings == [(4, 3, 0.7), (4, 4, 0.7)] * 2
    assert {run.config.arm for run in changed} == {"x"}
    assert {run.config.threads for run in changed} == {1}


def test_plugins_of_the_campaign_are_those_of_its_runs(tmp_path):
    assert plan(tmp_path, plugins=["colorsys"])[0].config.plugins == ("colorsys",)


def test_overrides_are_checked_before_anything_runs(tmp_path):
    wrong = [{"name": "a", "arm": "mlp", "overrides": {"actor.gate_init": 0.1}}]
    with pytest.raises(CampaignError, match=r"a-1: Unknown setting 'actor.gate_init'"):
        plan(tmp_path, arms=wrong)
    calm = {"name": "calm", "overrides": {"task.randomisation.push_every": 0.0}}
    with pytest.raises(CampaignError, match=r"calm/mlp-1: .*without pushes"):
        plan(tmp_path, variants=[calm], evaluation={"conditions": ["pushes"]})


@pytest.fixture
def metaworld():
    pytest.importorskip("metaworld", reason="Meta-World is not installed")


@pytest.mark.usefixtures("metaworld")
class TestPreparation:
    def test_demonstrations_are_recorded_once_per_variant(self, tmp_path):
        push = {"name": "push", "overrides": {"task.name": "push-v3"}}
        made = campaign("manipulation", variants=[*HANDLING["variants"], push], seeds=[1, 2])
        work = Plan(made, tmp_path)
        assert [one.title for one in work.preparations] == ["demos/reach", "demos/push"]
        assert work.preparations[0].log == tmp_path / "logs/demos/reach.log"
        runs = work.reported({"linear": {}, "prism": {}}, unprepared=["push"])
        assert [run.title for run in runs[:5]] == [
            "reach/linear-1", "reach/prism-1", "push/linear-1", "push/prism-1", "reach/linear-2"
        ]  # fmt: skip
        assert runs[0].config.demos == str(tmp_path / "demos" / "reach")
        assert [run.waiting for run in runs[:4]] == [False, False, True, True]

    def test_demonstrations_that_are_named_are_used(self, tmp_path):
        made = campaign("manipulation", overrides={"demos": "somebody/reach"})
        work = Plan(made, tmp_path)
        assert work.preparations == []
        first = work.reported({"linear": {}, "prism": {}})[0]
        assert (first.config.demos, first.prepared) == ("somebody/reach", ())

    def test_a_campaign_may_have_no_variants(self, tmp_path):
        (one,) = Plan(campaign("manipulation", variants=[]), tmp_path).preparations
        assert one.title == "demos/metaworld-reach-v3"

    def test_settings_are_checked_before_anything_runs(self, tmp_path):
        with pytest.raises(CampaignError, match=r"reach/linear: .*bathc"):
            plan(tmp_path, "manipulation", overrides={"bathc": 3})
        wrong = [{"name": "reach", "suite": "metaworld", "task": "reach-v4"}]
        with pytest.raises(CampaignError, match="Did you mean 'reach-v3'"):
            plan(tmp_path, "manipulation", tasks=wrong)
        sizes = [
            {"name": str(size), "arm": "linear", "overrides": {"network": {"image_size": size}}}
            for size in (32, 64)
        ]
        with pytest.raises(
            CampaignError, match=r"different images \(32 pixels fast, 64 pixels fast"
        ):
            plan(tmp_path, "manipulation", preset="laptop", arms=sizes)


@pytest.mark.usefixtures("metaworld")
@pytest.mark.parametrize("kind", DOMAINS)
def test_runs_of_every_domain_are_planned_alike(kind, tmp_path):
    for run in plan(tmp_path, kind):
        assert run.domain.name == kind
        assert (run.total, run.evaluations, run.config.updates) == (4, 1, 4)
        assert run.path == tmp_path / run.place
