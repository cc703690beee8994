"""The record of how often experts succeed."""

import json

import pytest

from prism_motor.manipulation.suites.libero.experts.measure import markdown, measure


def _episodes(wins, losses):
    won = [{"seed": seed, "success": True, "steps": 100 + seed} for seed in range(wins)]
    lost = [{"seed": wins + seed, "success": False, "steps": 280} for seed in range(losses)]
    return won + lost


def test_the_table_counts_good_experts_and_names_missing_ones():
    table = markdown(
        {
            "suite/0": {"name": "first", "episodes": _episodes(16, 4)},
            "suite/1": {"name": "second", "episodes": _episodes(15, 5)},
            "suite/2": {"name": "third", "episodes": [], "problem": "no skill"},
        }
    )

    assert "| suite/0 | 16/20 | 58% to 92% | 108 | first |" in table
    assert "| suite/2 | no expert | | | third: no skill |" in table
    assert "1 of 3 tasks at 80% or more." in table


def test_measured_episodes_are_not_run_again(tmp_path):
    pytest.importorskip("libero", reason="hf-libero is not installed")
    out = tmp_path / "experts.json"
    known = {"libero_goal/7": {"name": "turn_on_the_stove", "episodes": _episodes(3, 1)}}
    out.write_text(json.dumps(known))

    measure("libero_goal", out, tasks=["7"], episodes=4, first_seed=0)

    assert json.loads(out.read_text()) == known
    assert "| libero_goal/7 | 3/4 |" in out.with_suffix(".md").read_text()
    with pytest.raises(ValueError, match="libero_goal has tasks 0 to 9, got 12"):
        measure("libero_goal", out, tasks=["12"])
