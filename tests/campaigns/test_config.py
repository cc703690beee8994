"""Campaign files: what they may say, and what is refused before anything runs."""

import pytest

from prism_motor.campaigns.config import Campaign, CampaignError
from prism_motor.campaigns.files import find_campaign, library, write_record
from prism_motor.campaigns.plan import plan_runs
from prism_motor.campaigns.tuning import plan_tuning
from prism_motor.locomotion.presets import PRESETS
from prism_motor.nn import build_actor, count_parameters
from prism_motor.runs import ConfigError

from .conftest import TUNING, campaign


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": [1]}, "unknown key 'seed'.*Did you mean 'seeds'"),
        ({"arms": []}, "at least one arm"),
        ({"arms": [{"name": "a", "actor": "mpl"}]}, "Did you mean 'mlp'"),
        ({"arms": [{"name": "a", "actor": "mlp"}] * 2}, "names must differ; twice: a"),
        ({"arms": [{"name": "../a", "actor": "mlp"}]}, "names a folder"),
        ({"preset": "labtop"}, "Did you mean 'laptop'"),
        ({"seeds": [1, 1]}, "seeds must differ; twice: 1"),
        ({"seeds": [-1]}, "must not be negative"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"variants": [{"name": "tuning"}]}, "cannot be the name of a variant"),
        ({"variants": [{"name": "b", "like": "a"}]}, "Unknown variant"),
        ({"evaluation": {"conditions": ["nominl"]}}, "Did you mean 'nominal'"),
        ({"evaluation": {"envs": 0}}, "at least 1"),
        ({"tuning": {**TUNING, "seeds": [2, 3]}}, r"tuning.seeds and seeds share \[2\]"),
        ({"tuning": {**TUNING, "seeds": [101]}}, r"evaluation.seeds share \[101\]"),
        ({"tuning": {**TUNING, "fraction": 1.5}}, "at most 1"),
        ({"tuning": {**TUNING, "sweep": {}}}, "nothing to sweep"),
        ({"tuning": {**TUNING, "sweep": {"ppo.epochs": 3}}}, "needs a list"),
    ],
)
def test_what_cannot_be_run_is_refused(changes, message):
    with pytest.raises((ConfigError, ValueError), match=message):
        campaign(**changes)


def test_unequal_tuning_budgets_are_refused():
    arms = [
        {"name": "mlp", "actor": "mlp"},
        {
            "name": "gated",
            "actor": "gated",
            "sweep": {"ppo.learning_rate.times": [0.5, 1, 2], "actor.gate_init": [0.01, 0.1]},
        },
    ]
    with pytest.raises(CampaignError, match=r"same number of tuning runs.*mlp 2, gated 6"):
        campaign(arms=arms, tuning=TUNING)
    rates = {"ppo.learning_rate": [1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3]}
    campaign(arms=arms, tuning={**TUNING, "sweep": rates})


def test_overrides_are_checked_before_anything_runs(tmp_path):
    wrong = campaign(arms=[{"name": "a", "actor": "mlp", "overrides": {"actor.gate_init": 0.1}}])
    with pytest.raises(CampaignError, match=r"a-1: Unknown setting 'actor.gate_init'"):
        plan_runs(wrong, tmp_path, {"a": {}})
    calm = {"name": "calm", "overrides": {"task.randomisation.push_every": 0.0}}
    pushed = campaign(variants=[calm], evaluation={"conditions": ["pushes"]})
    with pytest.raises(CampaignError, match=r"calm/mlp-1, condition pushes: .*without pushes"):
        plan_runs(pushed, tmp_path, {"mlp": {}, "gated": {}})


def test_a_campaign_is_found_by_file_name_and_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nseeds = [1]\noverrides.ppo.epochs = 2\n'
        '[[arms]]\nname = "a"\nactor = "mlp"\n'
    )
    found, folder = find_campaign("mine.toml", preset="g1")
    assert (found.name, found.preset, folder) == ("mine", "g1", None)
    (tmp_path / "kept").mkdir()
    write_record(found, tmp_path / "kept")
    assert find_campaign(str(tmp_path / "kept")) == (found, tmp_path / "kept")
    with pytest.raises(CampaignError, match="is of the preset g1"):
        find_campaign(str(tmp_path / "kept"), preset="laptop")
    assert find_campaign("table1-g1")[0] == find_campaign("table1", preset="g1")[0]
    with pytest.raises(ValueError, match="Did you mean 'table1'"):
        find_campaign("tabel1")
    with pytest.raises(CampaignError, match="no campaign file"):
        find_campaign("missing.toml")
    with pytest.raises(CampaignError, match="no campaign folder"):
        find_campaign(str(tmp_path))
    file.write_text("name = ")
    with pytest.raises(CampaignError, match=r"mine.toml cannot be read"):
        find_campaign("mine.toml")


WALKING = sorted(name for name in library() if isinstance(find_campaign(name)[0], Campaign))


@pytest.mark.parametrize("name", WALKING)
@pytest.mark.parametrize("preset", ["laptop", "g1", "paper"])
def test_the_library_can_be_planned_with_every_preset(name, preset, tmp_path):
    made = find_campaign(name, preset)[0]
    assert made.name == name
    assert made.description
    tuning = plan_tuning(made, tmp_path)
    runs = plan_runs(made, tmp_path, {arm.name: None for arm in made.arms})
    assert len({run.path for run in [*tuning, *runs]}) == len(tuning) + len(runs)
    assert {run.config.preset for run in runs} == {preset}
    if name != "smoke":
        assert {run.config.iterations for run in runs} == {PRESETS[preset].iterations}


def test_the_largest_mlp_is_as_large_as_degree_three(tmp_path):
    def parameters(name, arm):
        made = find_campaign(name)[0]
        runs = plan_runs(made, tmp_path, {one.name: {} for one in made.arms})
        config = next(run.config for run in runs if run.arm == arm)
        return count_parameters(build_actor(config.actor, 235, 12))

    assert parameters("capacity", "mlp-largest") == pytest.approx(
        parameters("degrees", "degree3"), rel=1e-3
    )


def test_when_crosses_its_three_factors(tmp_path):
    made = find_campaign("when")[0]
    runs = plan_runs(made, tmp_path, {arm.name: {} for arm in made.arms})
    seen = set()
    for run in runs:
        task = run.config.task
        calm = task.randomisation.push_every == 0 and task.observations.noise == 0
        factors = (calm, task.actions.on_reference, task.observations.actor_frames)
        words = ("none" if calm else "full", "reference" if factors[1] else "plain")
        assert run.variant == f"{words[0]}-{words[1]}-{factors[2]}"
        seen.add(factors)
    assert len(seen) == len(made.variants) == 8


def test_campaigns_of_the_library_can_share_runs(tmp_path):
    def configs(name, variant=""):
        made = find_campaign(name)[0]
        runs = plan_runs(made, tmp_path, {arm.name: {} for arm in made.arms})
        chosen = [run for run in runs if run.variant == variant]
        return {run.config for run in [*plan_tuning(made, tmp_path), *chosen]}

    table = configs("table1")
    assert {c for c in configs("degrees") if c.arm == "gated"} <= table
    assert {c for c in configs("capacity") if c.arm != "mlp-largest"} <= table
    assert configs("when", "full-reference-5") <= table
