"""Conditions that separate, matched samples, and ``prism embed``."""

import json
from pathlib import Path

import numpy as np
import pytest

from prism_motor.analysis.embed import EmbedConfig, NotComparableError, embed, make_table
from prism_motor.analysis.subjects import Subject
from prism_motor.cli import main
from tests.analysis.policies import small_policy

ROBOTS = np.tile(np.repeat(np.arange(20), 15), 3)
LABELS = np.repeat(np.arange(3), 300)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"conditions": ("nominal",)}, "at least two conditions"),
        ({"conditions": ("nominal", "nominal")}, "each only once"),
        ({"conditions": ("nominal", "ice")}, "Unknown condition 'ice'"),
        ({"envs": 4}, "envs must be from 5 to 100000, got 4"),
        ({"samples": 5}, "too few for a perplexity"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_settings_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        EmbedConfig(**wrong)


def test_policies_without_enough_matches_are_named():
    policy = small_policy("prism", "quadruped")
    subject = Subject(Path("somewhere"), policy, "prism")
    config = EmbedConfig(("nominal", "payload"), envs=5, seconds=1.0, samples=1000)
    with pytest.raises(NotComparableError, match="1000 steps of 5 robots are needed"):
        embed(subject, config)


def test_the_command_compares_arms(make_run, capsys, tmp_path):
    runs = [make_run("prism"), make_run("mlp")]
    out = tmp_path / "embed"
    words = ["--envs", "6", "--seconds", "1", "--samples", "30", "--out", str(out)]
    main(["embed", *map(str, runs), str(tmp_path / "nowhere"), *words])
    shown = capsys.readouterr().out
    assert "nowhere is left out" in shown
    data = json.loads((out / "embed.json").read_text())
    assert [policy["feature"] for policy in data["policies"]] == ["conditioner", "hidden_1"]
    assert data["chance"] == pytest.approx(1 / 3)
    assert len(data["table"]["rows"]) == 2
    assert np.shape(data["policies"][0]["points"]) == (3, 30, 2)
    assert len(data["policies"][0]["shuffled"]) == 5
    assert (out / "embed.png").stat().st_size > 5000
    assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    assert make_table([]).to_dict() == {"columns": data["table"]["columns"], "rows": []}


def test_without_any_policy_there_is_nothing_to_do(capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main(["embed", str(tmp_path / "nowhere")])
    assert caught.value.code == 2
    assert "There is no policy to analyse" in capsys.readouterr().err
