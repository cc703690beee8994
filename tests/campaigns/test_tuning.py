"""Tuning: equal budgets, scores by formula, winners that go into the reported runs."""

import json

import pytest

from prism_motor.campaigns.book import Book
from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.plan import plan_runs
from prism_motor.campaigns.state import read_state
from prism_motor.campaigns.tuning import judge, plan_tuning, score
from prism_motor.runs import Run, to_dict

from .conftest import TUNING, campaign

GATED = {
    "name": "gated",
    "actor": "gated",
    "overrides": {"actor.latent": 8},
    "sweep": {"actor.gate_init": [0.01, 0.1]},
}
ARMS = [{"name": "mlp", "actor": "mlp"}, GATED]


def fake(run, rewards, diverged=False):
    """Write what a training leaves behind, as far as tuning looks at it."""
    made = Run.create(run.path, to_dict(run.config))
    for i, reward in enumerate(rewards):
        made.log({"iteration": i + 1, "seconds": float(i), "reward_per_second": reward})
    made.close()
    step = 1 if diverged else run.config.iterations
    made.save(step, {}, {})
    if diverged:
        (run.path / "nonfinite" / "00000001").mkdir(parents=True)
        (run.path / "nonfinite" / "00000001" / "complete.json").write_text("{}")


def test_every_arm_gets_the_same_number_of_runs_and_the_same_budget(tmp_path):
    made = campaign(arms=ARMS, tuning={**TUNING, "seeds": [901, 902]})
    runs = plan_tuning(made, tmp_path)
    assert [(run.arm, run.seed, run.setting) for run in runs] == [
        ("mlp", 901, {"ppo.learning_rate": 0.0005}),
        ("gated", 901, {"actor.gate_init": 0.01}),
        ("mlp", 901, {"ppo.learning_rate": 0.001}),
        ("gated", 901, {"actor.gate_init": 0.1}),
        ("mlp", 902, {"ppo.learning_rate": 0.0005}),
        ("gated", 902, {"actor.gate_init": 0.01}),
        ("mlp", 902, {"ppo.learning_rate": 0.001}),
        ("gated", 902, {"actor.gate_init": 0.1}),
    ]
    reported = plan_runs(made, tmp_path, {"mlp": None, "gated": None})[0].config
    for run in runs:
        assert run.config.iterations == 2
        assert run.config.ppo.decay_samples == 0.5 * reported.ppo.decay_samples
        assert run.evaluation is None
    assert not {run.seed for run in runs} & {*made.seeds, *made.evaluation.seeds}


def test_factors_keep_whole_numbers_whole(tmp_path):
    residual = {"name": "residual", "actor": "residual"}
    sweep = {"actor.warmup.times": [0, 0.5]}
    runs = plan_tuning(
        campaign(arms=[residual], tuning={**TUNING, "sweep": sweep}, overrides={}), tmp_path
    )
    assert [run.setting for run in runs] == [{"actor.warmup": 0}, {"actor.warmup": 75}]
    assert isinstance(runs[1].config.actor.warmup, int)
    wrong = campaign(tuning={**TUNING, "sweep": {"ppo.schedule.times": [1, 2]}})
    with pytest.raises(CampaignError, match=r"multiplies ppo.schedule.*'linear'"):
        plan_tuning(wrong, tmp_path)


def test_the_score_is_the_mean_reward_of_the_last_tenth(tmp_path):
    run = plan_tuning(campaign(tuning=TUNING), tmp_path)[0]
    fake(run, [float(i) for i in range(40)])
    assert score(run) == (36 + 37 + 38 + 39) / 4


def test_the_best_mean_over_seeds_wins_and_goes_into_the_reported_runs(tmp_path):
    made = campaign(arms=ARMS, tuning={**TUNING, "seeds": [901, 902]})
    runs = plan_tuning(made, tmp_path)
    rewards = [1.0, 1.0, 3.0, 5.0, 4.0, 2.0, 3.5, 5.0]
    for run, reward in zip(runs[:-1], rewards, strict=False):
        fake(run, [reward])
    book = Book(made, tmp_path)
    assert book.sweep["arms"]["mlp"]["chosen"] == {"ppo.learning_rate": 0.001}  # 3.25 against 2.5
    assert book.sweep["arms"]["gated"]["chosen"] is None  # one run is still missing
    assert [run.waiting for run in book.reported] == [False, True] * 2
    assert {run.config.ppo.learning_rate for run in book.reported if run.arm == "mlp"} == {0.001}
    fake(runs[-1], [rewards[-1]])
    book.refresh(runs[-1])
    assert book.sweep["arms"]["gated"]["chosen"] == {"actor.gate_init": 0.1}
    assert [run.config.actor.gate_init for run in book.reported if run.arm == "gated"] == [0.1] * 2
    book.write()
    table = json.loads((tmp_path / "tuning.json").read_text())
    assert table == book.sweep
    assert [row["score"] for row in table["arms"]["mlp"]["settings"]] == [2.5, 3.25]
    assert table["runs_per_arm"] == 4


def test_a_setting_that_diverged_cannot_win_and_is_not_tried_again(tmp_path):
    made = campaign(arms=ARMS[:1], tuning=TUNING)
    first, second = plan_tuning(made, tmp_path)
    fake(first, [100.0], diverged=True)
    fake(second, [1.0])
    states = {run.path: read_state(run) for run in (first, second)}
    assert states[first.path].step is None
    sweep = judge(made, [first, second], states)
    assert sweep["arms"]["mlp"]["chosen"] == {"ppo.learning_rate": 0.001}
    assert [row["runs"][0]["state"] for row in sweep["arms"]["mlp"]["settings"]] == [
        "diverged", "trained",
    ]  # fmt: skip


def test_an_arm_whose_settings_all_diverged_is_said_to_have_none(tmp_path):
    made = campaign(arms=ARMS[:1], tuning=TUNING)
    for run in plan_tuning(made, tmp_path):
        fake(run, [100.0], diverged=True)
    book = Book(made, tmp_path)
    assert book.sweep["arms"]["mlp"] | {"settings": None} == {
        "chosen": None, "complete": True, "settings": None,
    }  # fmt: skip
    assert all(run.waiting for run in book.reported)


def test_winners_found_in_one_variant_are_used_in_all(tmp_path):
    variants = [{"name": "a", "overrides": {"ppo.learning_rate": 0.01}}, {"name": "b"}]
    made = campaign(arms=ARMS[:1], tuning=TUNING, variants=variants)
    runs = plan_tuning(made, tmp_path)
    assert [run.setting for run in runs] == [
        {"ppo.learning_rate": 0.005}, {"ppo.learning_rate": 0.01},
    ]  # fmt: skip
    for run, reward in zip(runs, (2.0, 1.0), strict=True):
        fake(run, [reward])
    assert {r.config.ppo.learning_rate for r in Book(made, tmp_path).reported} == {0.005}
