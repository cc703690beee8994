import json
import shutil

import numpy as np
import pytest

from prism_motor.analysis.probe.probes import ANY_ARM, ProbeSubjects
from prism_motor.analysis.probe.summary import collect_gains, collect_rows, measure_leakage
from prism_motor.analysis.probe.walking import (
    TARGETS,
    WalkingProbeConfig,
    probe_walking,
    untrained,
)
from prism_motor.analysis.subjects import load_subjects
from prism_motor.cli import main

SMALL = {"envs": 10, "seconds": 1.2}


@pytest.fixture(scope="module")
def subjects(make_run):
    paths = [make_run("mlp"), make_run("prism"), make_run("prism", seed=2)]
    found, left_out = load_subjects(paths)
    assert left_out == []
    return found


@pytest.fixture(scope="module")
def shared(subjects):
    return probe_walking(ProbeSubjects(subjects, subjects), WalkingProbeConfig(**SMALL))


def test_all_arms_are_probed_on_the_same_windows(shared):
    assert [p.features for p in shared.probes if p.arm == ANY_ARM] == ["raw"]
    counts = {tuple(p.sums[:, 0, 0]) for p in shared.probes}
    assert len(counts) == 1
    assert shared.units == 12  # ten, shared by three policies
    seeds = [(p.arm, p.training_seed) for p in shared.probes if p.features == "hidden_1"]
    assert seeds == [("mlp", 1), ("prism", 1), ("prism", 2)]


def test_rows_put_training_seeds_together(shared):
    rows = {(row.arm, row.features): row for row in collect_rows(shared)}
    assert next(iter(rows)) == (ANY_ARM, "raw")
    gated = rows["prism", "polynomial"]
    assert [p.training_seed for p in gated.probes] == [1, 2]
    values = [p.sums[:, 0, 6].sum() / p.sums[:, 0, 0].sum() for p in gated.probes]
    found = gated.scores["mse"][0]
    assert found.value == pytest.approx(np.mean(values))
    assert found.high - found.value == pytest.approx(np.std(values, ddof=1))
    assert "±" in found.write(3)
    assert "[" in rows["mlp", "hidden_1"].scores["mse"][0].write(3)


def test_gains_compare_arms_with_the_first_one_on_common_seeds(shared):
    gains = collect_gains(collect_rows(shared), across=True)
    assert [one.title for one in gains] == [
        "prism: polynomial vs first_order",
        "prism conditioner vs mlp hidden_1",
        "prism hidden_2 vs mlp hidden_2",
    ]
    assert [one.changes["mse"][0].seeds for one in gains] == [2, 1, 1]


def test_a_random_split_would_have_flattered_these_policies(shared):
    leakage = measure_leakage(shared)
    assert leakage.median < 0
    assert leakage.clear > leakage.count / 2
    assert "% lower" in str(leakage)


def test_on_their_own_states_arms_have_raw_features_of_their_own(subjects):
    study = probe_walking(ProbeSubjects(subjects[:2], []), WalkingProbeConfig(own=True, **SMALL))
    raw = [p for p in study.probes if p.features == "raw"]
    assert [p.arm for p in raw] == ["mlp", "prism"]
    assert not np.allclose(raw[0].sums, raw[1].sums)
    gains = collect_gains(collect_rows(study), across=False)
    assert [one.title for one in gains] == ["prism: polynomial vs first_order"]


def test_untrained_networks_keep_the_normaliser_alone(make_policy):
    policy = make_policy("prism")
    other = untrained(policy)
    before, after = policy.actor.state_dict(), other.actor.state_dict()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert {"mlp.4.weight", "encoder.interaction.gate"} <= changed  # what the fixture changed
    assert not any("normalizer" in name for name in changed)


def test_command_writes_what_it_says(make_run, tmp_path, capsys):
    runs = [str(make_run("mlp")), str(make_run("prism"))]
    options = ["--envs", "10", "--seconds", "1.2", "--out", str(tmp_path / "probe"), "--untrained"]
    main(["probe", *runs, *options])
    said = capsys.readouterr().out
    assert "Leakage: with windows split at random" in said
    data = json.loads((tmp_path / "probe" / "probe.json").read_text())
    assert {"title", "caption", "table", "gains", "leakage", "runs", "provenance"} <= set(data)
    assert [run["training_seed"] for run in data["runs"]] == [1, 1]
    assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    assert any(row[0] == "prism (untrained)" for row in data["table"]["rows"])
    probe = data["probes"][0]
    assert set(probe["targets"]) == {target.name for target in TARGETS}
    assert probe["targets"]["slip_velocity"]["mse"]["low"] > 0
    assert "nothing here says how training seeds differ" in data["caption"]
    assert (tmp_path / "probe" / "probe.png").read_bytes()[1:4] == b"PNG"


def test_one_policy_can_walk_for_all(make_run, tmp_path, capsys):
    runs = [str(make_run("mlp")), str(make_run("prism"))]
    options = ["--envs", "8", "--seconds", "1.2", "--out", str(tmp_path), "--reference", runs[1]]
    main(["probe", *runs, *options])
    data = json.loads((tmp_path / "probe.json").read_text())
    assert data["recorded"] == runs[1:]
    assert [run["arm"] for run in data["runs"]] == ["mlp", "prism"]
    with pytest.raises(SystemExit):
        main(["probe", *runs, "--reference", str(make_run("mlp", "laptop"))])
    assert "No run has the same observations" in capsys.readouterr().err


def test_command_repeats_itself_exactly(make_run, tmp_path, capsys):
    for name in ("one", "two"):
        options = ["--envs", "8", "--seconds", "1.2", "--out", str(tmp_path / name)]
        main(["probe", str(make_run("mlp")), *options])
    one, two = (json.loads((tmp_path / n / "probe.json").read_text()) for n in ("one", "two"))
    assert one["probes"] == two["probes"]


def test_runs_that_cannot_be_probed_are_left_out_and_named(make_run, tmp_path, capsys):
    empty = tmp_path / "empty"
    shutil.copytree(make_run("mlp"), empty)
    shutil.rmtree(empty / "checkpoints")
    runs = [str(make_run("prism")), str(empty), str(make_run("mlp", "laptop"))]
    main(["probe", *runs, "--envs", "8", "--seconds", "1.2", "--out", str(tmp_path / "out")])
    data = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert [run["run"] for run in data["runs"]] == runs[:1]
    assert "no complete checkpoint" in data["left_out"][0]
    assert "differs" in data["left_out"][1]
    assert "robot" in data["left_out"][1]
    assert data["left_out"][1] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be from 1"),
        ({"seconds": 0.5}, "seconds must be from 1 to 600"),
        ({"condition": "windy"}, "Unknown condition 'windy'"),
        ({"seed": -1}, "seed must be from 0"),
        ({"directions": 0}, "directions must be from 1"),
    ],
)
def test_settings_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        WalkingProbeConfig(**options)
