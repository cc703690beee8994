"""Tuning: equal budgets, scores by formula, winners that go into the reported runs."""

import json

import pytest

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.ledger import Ledger, read_state
from prism_motor.campaigns.plan import Plan
from prism_motor.campaigns.tuning import judge, plan_tuning, score

from .conftest import DOMAINS, TUNING, campaign, fake, tuned

PRISM = {
    "name": "prism",
    "overrides": {"actor.latent": 8},
    "sweep": {"actor.gate_init": [0.01, 0.1]},
}
ARMS = [{"name": "mlp"}, PRISM]


def sweep_of(made, folder):
    return plan_tuning(Plan(made, folder))


def test_every_arm_gets_the_same_number_of_runs_and_the_same_budget(tmp_path):
    made = campaign(arms=ARMS, tuning={**TUNING, "seeds": [901, 902]})
    runs = sweep_of(made, tmp_path)
    assert [(run.arm, run.seed, run.setting) for run in runs] == [
        ("mlp", 901, {"ppo.learning_rate": 0.0005}),
        ("prism", 901, {"actor.gate_init": 0.01}),
        ("mlp", 901, {"ppo.learning_rate": 0.001}),
        ("prism", 901, {"actor.gate_init": 0.1}),
        ("mlp", 902, {"ppo.learning_rate": 0.0005}),
        ("prism", 902, {"actor.gate_init": 0.01}),
        ("mlp", 902, {"ppo.learning_rate": 0.001}),
        ("prism", 902, {"actor.gate_init": 0.1}),
    ]
    reported = Plan(made, tmp_path).reported({"mlp": None, "prism": None})[0].config
    for run in runs:
        assert run.config.updates == 2
        assert run.config.ppo.decay_samples == 0.5 * reported.ppo.decay_samples
        assert run.protocols == ()
    assert not {run.seed for run in runs} & {*made.seeds, *made.evaluation.seeds}


def test_factors_keep_whole_numbers_whole(tmp_path):
    residual = {"name": "prism-residual"}
    sweep = {"actor.warmup.times": [0, 0.5]}
    made = campaign(arms=[residual], tuning={**TUNING, "sweep": sweep}, overrides={})
    runs = sweep_of(made, tmp_path)
    assert [run.setting for run in runs] == [{"actor.warmup": 0}, {"actor.warmup": 75}]
    assert isinstance(runs[1].config.actor.warmup, int)
    wrong = campaign(tuning={**TUNING, "sweep": {"ppo.schedule.times": [1, 2]}})
    with pytest.raises(CampaignError, match=r"multiplies ppo.schedule.*'linear'"):
        sweep_of(wrong, tmp_path)


@pytest.mark.parametrize("kind", DOMAINS)
def test_the_score_is_the_mean_over_the_last_tenth(kind, tmp_path):
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    first, second, *_ = sweep_of(tuned(kind), tmp_path)
    fake(first, [float(i) for i in range(40)])
    assert score(first) == (36 + 37 + 38 + 39) / 4
    fake(second, [])
    with pytest.raises(CampaignError, match="cannot be scored"):
        score(second)
    file = first.path / "metrics.jsonl"
    file.write_text(file.read_text().replace("38.0", "58.0"))
    with pytest.raises(CampaignError, match=r"cannot be scored: metrics\.jsonl .* has changed"):
        score(first)


def test_schedules_shrink_with_the_run_in_handling_too(tmp_path):
    pytest.importorskip("metaworld", reason="Meta-World is not installed")
    made = tuned("manipulation")
    reported = Plan(made, tmp_path).reported({"linear": {}, "prism": {}})[0].config
    for run in sweep_of(made, tmp_path):
        assert (run.total, run.variant) == (2, "reach")
        assert run.config.optimiser.warmup == reported.optimiser.warmup / 2
    sweep = judge(Plan(made, tmp_path), [], {})
    assert sweep["criterion"].startswith("loss over the last 10 % of updates")
    assert sweep["criterion"].endswith("lower is better")


def test_the_best_mean_over_seeds_wins_and_goes_into_the_reported_runs(tmp_path):
    made = campaign(arms=ARMS, tuning={**TUNING, "seeds": [901, 902]})
    runs = sweep_of(made, tmp_path)
    rewards = [1.0, 1.0, 3.0, 5.0, 4.0, 2.0, 3.5, 5.0]
    for run, reward in zip(runs[:-1], rewards, strict=False):
        fake(run, [reward])
    ledger = Ledger(made, tmp_path)
    assert ledger.sweep["arms"]["mlp"]["chosen"] == {"ppo.learning_rate": 0.001}  # 3.25 against 2.5
    assert ledger.sweep["arms"]["prism"]["chosen"] is None  # one run is still missing
    assert [run.waiting for run in ledger.reported] == [False, True] * 2
    assert {run.config.ppo.learning_rate for run in ledger.reported if run.arm == "mlp"} == {0.001}
    fake(runs[-1], [rewards[-1]])
    ledger.refresh(runs[-1])
    assert ledger.sweep["arms"]["prism"]["chosen"] == {"actor.gate_init": 0.1}
    assert [run.config.actor.gate_init for run in ledger.reported if run.arm == "prism"] == [
        0.1
    ] * 2
    ledger.write()
    table = json.loads((tmp_path / "tuning.json").read_text())
    assert table == ledger.sweep
    assert [row["score"] for row in table["arms"]["mlp"]["settings"]] == [2.5, 3.25]
    assert table["runs_per_arm"] == 4


def test_a_setting_that_diverged_cannot_win_and_is_not_tried_again(tmp_path):
    made = campaign(arms=ARMS[:1], tuning=TUNING)
    first, second = sweep_of(made, tmp_path)
    fake(first, [100.0], diverged=True)
    fake(second, [1.0])
    states = {run.path: read_state(run) for run in (first, second)}
    assert states[first.path].step is None
    sweep = judge(Plan(made, tmp_path), [first, second], states)
    assert sweep["arms"]["mlp"]["chosen"] == {"ppo.learning_rate": 0.001}
    assert [row["runs"][0]["state"] for row in sweep["arms"]["mlp"]["settings"]] == [
        "diverged", "trained",
    ]  # fmt: skip


def test_an_arm_whose_settings_all_diverged_is_said_to_have_none(tmp_path):
    made = campaign(arms=ARMS[:1], tuning=TUNING)
    for run in sweep_of(made, tmp_path):
        fake(run, [100.0], diverged=True)
    ledger = Ledger(made, tmp_path)
    assert ledger.sweep["arms"]["mlp"] | {"settings": None} == {
        "chosen": None, "complete": True, "settings": None,
    }  # fmt: skip
    assert all(run.waiting for run in ledger.reported)


def test_winners_found_in_one_variant_are_used_in_all(tmp_path):
    variants = [{"name": "a", "overrides": {"ppo.learning_rate": 0.01}}, {"name": "b"}]
    made = campaign(arms=ARMS[:1], tuning=TUNING, variants=variants)
    runs = sweep_of(made, tmp_path)
    assert [run.setting for run in runs] == [
        {"ppo.learning_rate": 0.005}, {"ppo.learning_rate": 0.01},
    ]  # fmt: skip
    for run, reward in zip(runs, (2.0, 1.0), strict=True):
        fake(run, [reward])
    assert {r.config.ppo.learning_rate for r in Ledger(made, tmp_path).reported} == {0.005}
