"""An explanation as a whole, and ``prism explain``."""

import json
from dataclasses import replace

import numpy as np
import pytest

from prism_motor.analysis.explain.explanation import ExplainConfig
from prism_motor.analysis.explain.finding import make_finding
from prism_motor.analysis.explain.names import GROUPS
from prism_motor.analysis.explain.study import count_work, explain
from prism_motor.analysis.study import write_finding
from prism_motor.cli import main
from tests.analysis.policies import small_policy

QUICK = ExplainConfig(envs=4, seconds=1.0, states=60, top=3, draws=3, closed_loop=False)


@pytest.fixture(scope="module", params=["prism", "prism-residual"])
def explanation(request):
    return explain(small_policy(request.param, "quadruped", degree=3), QUICK)


def test_products_are_sorted_and_all_there(explanation):
    distances = [entry.effect.distance for entry in explanation.products]
    assert distances == sorted(distances, reverse=True)
    expected = {f"{i}" for i in range(6)}
    if explanation.about["arm"] == "prism-residual":
        expected = {f"{i}, stage {k}" for i in range(6) for k in (2, 3)}
    assert {entry.product.feature for entry in explanation.products} == expected
    assert all(entry.effect.absolute <= entry.effect.distance for entry in explanation.products)


def test_intervals_are_of_the_shown_products_and_contain_them(explanation):
    for rank, entry in enumerate(explanation.products):
        if rank < QUICK.top:
            low, high = entry.interval
            assert low <= entry.effect.distance * 1.02
            assert high >= entry.effect.distance * 0.98
        else:
            assert entry.interval is None


def test_the_curve_ends_at_the_effect_of_all(explanation):
    curve = explanation.curve
    assert curve.counts[-1] == len(explanation.products)
    assert curve.by_effect[-1] == pytest.approx(curve.random[-1])
    # It is measured on every second robot, so it is close and not equal.
    assert curve.by_effect[-1] == pytest.approx(explanation.removed.distance, rel=0.5)


def test_gates_start_where_they_started(explanation):
    if explanation.about["arm"] == "prism-residual":
        assert explanation.gates is None
        assert make_finding(explanation).data["gates"] is None
    else:
        gates = make_finding(explanation).data["gates"]
        assert gates["start"] == 0.01
        assert np.shape(gates["values"]) == (2, 6)
        moved = np.abs(np.array(gates["values"]) - 0.01)
        assert gates["mean_moved"] == pytest.approx(moved.mean())


def test_the_file_holds_table_caption_and_everything(explanation, tmp_path):
    finding = make_finding(explanation)
    files = write_finding("explain", finding, QUICK, [], tmp_path)
    assert [file.name for file in files] == [
        "explain.json", "groups.png", "firing.png", "removal.png",
    ]  # fmt: skip
    data = json.loads(files[0].read_text())
    assert data["table"] == finding.tables[""].to_dict()
    assert len(data["table"]["rows"]) == 3
    assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    assert len(data["products"]) == len(explanation.products)
    assert data["groups"]["names"] == list(GROUPS)
    assert [len(row) for row in data["groups"]["effect_rad"]] == [1, 2, 3, 4, 5, 6, 7]
    assert len(data["firing"]["traces"][0]["change_rad"]) == len(data["firing"]["seconds"])
    assert set(data["firing"]["contacts"]) == {
        f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")
    }
    assert data["about"]["policy_sha256"]
    assert all(file.stat().st_size > 5000 for file in files[1:])


def test_closed_loop_is_a_table_of_its_own():
    policy = small_policy("prism", "quadruped", duration=1.0)
    reports = []
    config = replace(QUICK, envs=2, closed_loop=True)
    finding = make_finding(explain(policy, config, report=lambda *_: reports.append(1)))
    assert len(reports) == count_work(policy, config)
    rows, walked = finding.tables["closed_loop"].rows, finding.data["closed_loop"]
    assert [row[0] for row in rows] == list(walked)
    assert rows[0][0] == "whole policy"
    assert rows[0][1] == f"{walked['whole policy']['survived']} of 2"


def test_the_same_seed_gives_the_same_explanation(tmp_path):
    policy = small_policy("prism", "quadruped")
    one, two = (make_finding(explain(policy, QUICK)).data for _ in "ab")
    for data in (one, two):
        data["about"].pop("provenance")
    assert one == two


def test_policies_that_fall_at_once_are_refused():
    policy = small_policy(duration=0.05)  # shorter than its history
    with pytest.raises(ValueError, match="before their observation history was full"):
        explain(policy, QUICK)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"condition": "ice"}, "Unknown condition 'ice'"),
        ({"envs": 1}, "envs must be from 2"),
        ({"seconds": 0.1}, "seconds must be from 1 to 600, got 0.1"),
        ({"seed": -1}, "seed must be from 0"),
        ({"top": 0}, "top must be from 1"),
    ],
)
def test_settings_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        ExplainConfig(**wrong)


def run_cli(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    return caught.value.code, capsys.readouterr().err


def test_mlps_are_refused_before_anything_starts(make_run, capsys, monkeypatch, tmp_path):
    def build(*_, **__):
        raise AssertionError("a simulation was started")

    monkeypatch.setattr("prism_motor.analysis.recording.VelocityEnv", build)
    out = tmp_path / "out"
    code, message = run_cli(capsys, "explain", make_run("mlp"), "--out", out)
    assert code == 2
    assert "a plain MLP forms no explicit products" in message
    assert "prism actor (prism, prism-residual, ...)" in message
    assert not out.exists()
    code, message = run_cli(capsys, "explain", tmp_path / "nowhere")
    assert code == 2
    assert "nowhere" in message


def test_the_command_writes_into_the_run(make_run, capsys):
    run = make_run("prism")
    words = ["--envs", "2", "--seconds", "1", "--states", "20", "--draws", "2", "--top", "4"]
    main(["explain", str(run), *words, "--no-closed-loop"])
    shown = capsys.readouterr().out
    assert "Learned products of prism (quadruped, training seed 1, update 0)" in shown
    assert "Gates started at 0.01" in shown
    data = json.loads((run / "analysis" / "explain" / "explain.json").read_text())
    assert data["closed_loop"] is None
    assert data["table"]["rows"][0][0] in shown
