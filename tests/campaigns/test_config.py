"""Campaigns: what they may say, by present and former names, and what is refused."""

import json
from pathlib import Path

import pytest

from prism_motor._checks import InputError
from prism_motor.campaigns.config import Arm, CampaignError, read_campaign
from prism_motor.runs import ConfigError, to_dict

from .conftest import DOMAINS, TUNING, WALKING, campaign


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": [1]}, "unknown key 'seed'.*Did you mean 'seeds'"),
        ({"arms": []}, "at least one arm"),
        ({"arms": {"mlp": {}}}, "arms must be a list of tables"),
        ({"arms": ["mlp"]}, "arms must be a list of tables"),
        ({"arms": [{"arm": "mlp"}]}, "name must be given"),
        ({"arms": [{"name": "a", "arm": "mpl"}]}, "Did you mean 'mlp'"),
        ({"arms": [{"name": "a"}]}, "Unknown arm 'a'"),
        ({"arms": [{"name": "a", "arm": "mlp"}] * 2}, "names must be unique; repeated: a"),
        ({"arms": [{"name": "prism"}, {"name": "gated"}]}, "names must be unique; repeated: prism"),
        ({"arms": [{"name": "../a", "arm": "mlp"}]}, "names a folder"),
        ({"name": "../a"}, "cannot be the name of a campaign"),
        ({"preset": "labtop"}, "Did you mean 'laptop'"),
        ({"plugins": "mine"}, "plugins must be a list of names"),
        ({"seeds": []}, "campaign.seeds must have 1 to 10000 values, got 0"),
        ({"seeds": [1, 1]}, "seeds must be unique; repeated: 1"),
        ({"seeds": [-1]}, "must be from 0 to"),
        ({"updates": 0}, "updates must be from 1 to"),
        ({"preparation": {"episodes": 3}}, "nothing to prepare"),
        ({"variants": [{"name": "tuning"}]}, "cannot be the name of a variant"),
        ({"variants": [{"name": "b", "like": "a"}]}, "Unknown variant"),
        ({"variants": [{"name": "a"}, {"name": "a"}]}, "variants' names must be unique"),
        ({"evaluation": {"conditions": ["nominl"]}}, "Did you mean 'nominal'"),
        ({"evaluation": {"envs": 0}}, "envs must be from 1"),
        ({"evaluation": {"env": 1}}, "unknown key 'env'"),
        ({"evaluations": [{}]}, "arms must be given"),
        ({"evaluations": [{"arms": []}]}, "evaluations.arms: give at least one"),
        ({"evaluations": [{"arms": ["mpl"]}]}, "Unknown arm of .*Did you mean 'mlp'"),
        ({"evaluations": [{"arms": ["mlp"]}]}, "mlp would be evaluated twice in the same way"),
        (
            {"evaluations": [{"arms": ["mlp"], "overrides": {"condition": ["payload"]}}]},
            "evaluations.* of mlp: Unknown setting 'condition'.*Did you mean 'conditions'",
        ),
        (
            {
                "evaluations": [{"arms": ["mlp"], "overrides": {"seeds": [901]}}],
                "tuning": TUNING,
            },
            r"evaluation.seeds share \[901\]",
        ),
        (
            {"variants": [{"name": "a", "each": {"envs": 4}}]},
            "each.envs of variant 'a' needs a list",
        ),
        (
            {"variants": [{"name": "a", "each": {"envs": []}}]},
            "each.envs of variant 'a' needs a list",
        ),
        ({"variants": [{"name": "a", "each": {"envs": [1, 1]}}]}, "unique; repeated: a-1"),
        ({"variants": [{"name": "a", "each": {"x": ["../b"]}}]}, "names a folder"),
        ({"tuning": {"sweep": {}}}, "seeds must be given"),
        ({"tuning": {**TUNING, "seeds": [2, 3]}}, r"tuning.seeds and seeds share \[2\]"),
        ({"tuning": {**TUNING, "seeds": [101]}}, r"evaluation.seeds share \[101\]"),
        ({"tuning": {**TUNING, "fraction": 1.5}}, "at most 1"),
        ({"tuning": {**TUNING, "sweep": {}}}, "nothing to sweep"),
        ({"tuning": {**TUNING, "sweep": {"ppo.epochs": 3}}}, "needs a list"),
        ({"tuning": {**TUNING, "sweep": {"updates": [1, 2]}}}, "updates cannot be swept"),
        ({"tuning": {**TUNING, "sweep": {"task.robot": ["g1", "../../x"]}}}, "part of a folder"),
    ],
)
def test_what_cannot_be_run_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        campaign(**changes)


@pytest.mark.parametrize("key", ["name", "seeds"])
def test_what_is_missing_is_named(key):
    with pytest.raises(ConfigError, match=f"small: {key} must be given"):
        read_campaign({name: value for name, value in WALKING.items() if name != key}, "small")
    with pytest.raises(ValueError, match="Unknown domain 'flying'"):
        read_campaign({**WALKING, "kind": "flying"}, "small")
    with pytest.raises(CampaignError, match="expected a table of settings, got list"):
        read_campaign([], "small")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "g1"}, "Unknown preset 'g1'"),
        ({"arms": [{"name": "a", "conditioner": "prsm"}]}, "Did you mean 'prism'"),
        ({"tasks": [{"name": "demos", "suite": "metaworld", "task": "0"}]}, "cannot be the name"),
        ({"evaluation": {"conditions": ["nominal"]}}, "Unknown condition 'nominal'"),
        ({"demonstrations": {"noise": -0.1}}, "noise must be from 0 to 100, got -0.1"),
        ({"preparation": {"episode": 1}}, "preparation: unknown key 'episode'"),
        ({"tuning": {"seeds": [901]}}, "nothing to sweep"),
    ],
)
def test_what_the_domain_knows_is_checked_by_the_domain(changes, message):
    with pytest.raises(ValueError, match=message):
        campaign("manipulation", **changes)


def test_unequal_tuning_budgets_are_refused():
    sweep = {"ppo.learning_rate.times": [0.5, 1, 2], "actor.gate_init": [0.01, 0.1]}
    arms = [{"name": "mlp"}, {"name": "prism", "sweep": sweep}]
    with pytest.raises(CampaignError, match=r"same number of tuning runs.*mlp 2, prism 6"):
        campaign(arms=arms, tuning=TUNING)
    rates = {"ppo.learning_rate": [1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3]}
    campaign(arms=arms, tuning={**TUNING, "sweep": rates})


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_campaign_is_the_same_after_writing_and_reading(kind):
    made = campaign(kind)
    assert read_campaign(json.loads(json.dumps(to_dict(made))), "written") == made
    assert isinstance(made.evaluation, made.domain.evaluation)


def test_defaults_are_those_of_the_domain():
    arms = [{"name": "prism"}]
    walking = read_campaign({"name": "a", "seeds": [1], "arms": arms}, "a")
    assert (walking.kind, walking.preset) == ("locomotion", "laptop")
    assert walking.evaluation.seeds == (101, 102, 103)
    given = {"kind": "manipulation", "name": "a", "seeds": [1], "arms": arms}
    handling = read_campaign(given, "a")
    assert (handling.preset, handling.preparation.episodes) == ("state", 50)


def test_a_variant_of_each_value_has_its_own_name():
    each = {"task": {"observations": {"actor_frames": [5, 15]}}, "envs": [4, 8]}
    plain = {"name": "plain", "overrides": {"envs": 2}}
    made = campaign(
        variants=[{"name": "long", "overrides": {"ppo.epochs": 2}, "each": each}, plain]
    )
    assert [variant.name for variant in made.variants] == [
        "long-5-4", "long-5-8", "long-15-4", "long-15-8", "plain"
    ]  # fmt: skip
    assert made.variant_overrides(made.variants[1]) == {
        "ppo.epochs": 2,
        "task.observations.actor_frames": 5,
        "envs": 8,
    }
    assert read_campaign(json.loads(json.dumps(to_dict(made))), "written") == made


def test_some_arms_are_evaluated_further():
    further = [
        {"arms": ["mlp"], "overrides": {"conditions": ["payload"]}},
        {"arms": ["gated", "mlp"], "overrides": {"seeds": [102]}},
    ]
    made = campaign(evaluations=further)  # gated is a former name of prism
    mlp, prism = made.arms
    seen = [(one.conditions, one.seeds, one.envs) for one in made.protocols(mlp)]
    assert seen == [(("nominal",), (101,), 2), (("payload",), (101,), 2), (("nominal",), (102,), 2)]
    assert [one.seeds for one in made.protocols(prism)] == [(101,), (102,)]
    assert read_campaign(json.loads(json.dumps(to_dict(made))), "written") == made


def test_evaluations_have_the_episodes_of_the_preset_unless_the_file_says_otherwise():
    given = {"kind": "manipulation", "name": "a", "seeds": [1], "arms": [{"name": "prism"}]}
    for preset, episodes in (("paper", 10), ("laptop", 20), ("state", 20)):
        assert read_campaign({**given, "preset": preset}, "a").evaluation.episodes == episodes
    said = {**given, "preset": "paper", "evaluation": {"episodes": 20, "conditions": ["delay"]}}
    made = read_campaign(said, "a").evaluation
    assert (made.episodes, made.conditions) == (20, ("delay",))


def test_former_names_are_read():
    old = {
        **{key: value for key, value in WALKING.items() if key != "updates"},
        "iterations": None,
        "overrides": {"iterations": 300},
        "arms": [
            {"name": "mlp-larger", "actor": "mlp-larger"},
            {"name": "gated", "actor": "gated", "sweep": None},
            {"name": "mine", "actor": "residual"},
        ],
    }
    made = read_campaign(old, "old")
    assert (made.updates, made.overrides) == (None, {"updates": 300})
    assert [(arm.name, arm.arm) for arm in made.arms] == [
        ("mlp-larger", "mlp-matched"), ("gated", "prism"), ("mine", "prism-residual"),
    ]  # fmt: skip
    assert [made.label(arm) for arm in made.arms] == ["mlp-matched", "prism", "mine"]


def test_former_files_of_handling_are_read():
    large = {"conditioner": {"mlp_size": "larger"}}
    old = {
        "kind": "manipulation",
        "name": "old",
        "seeds": [1],
        "overrides": {"steps": 5},
        "demonstrations": {"episodes": 2, "seed": 3, "noise": 0.1},
        "tasks": [
            {"name": "a", "suite": "metaworld", "task": "0", "demos": None, "overrides": {}},
            {"name": "b", "suite": "metaworld", "task": "push-v3", "demos": "us/push",
             "overrides": {"batch": 8}},
        ],
        "arms": [
            {"name": "linear", "conditioner": "linear", "overrides": {}},
            {"name": "mlp", "conditioner": "mlp"},
            {"name": "mlp-larger", "conditioner": "mlp", "overrides": large},
        ],
    }  # fmt: skip
    made = read_campaign(old, "old")
    assert made.overrides == {"updates": 5}
    assert (made.preparation.episodes, made.preparation.noise) == (2, 0.1)
    assert [variant.overrides for variant in made.variants] == [
        {"task.suite": "metaworld", "task.name": "0"},
        {"task.suite": "metaworld", "task.name": "push-v3", "demos": "us/push", "batch": 8},
    ]
    assert made.arms[1:] == (Arm("mlp", "mlp-matched"), Arm("mlp-larger", "mlp-large"))


RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*/campaign.*")), ids=str)
def test_campaigns_of_the_results_are_read(file):
    from prism_motor.campaigns.files import find_campaign

    made, _ = find_campaign(str(file.parent if file.suffix == ".json" else file))
    assert all(made.domain.arm_name(arm.arm) in made.domain.arms for arm in made.arms)
