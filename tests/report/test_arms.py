"""Which runs share a table, and which are seeds of one arm."""

import json

import pytest

from prism_motor.locomotion.presets import make_config
from prism_motor.nn import build_actor, count_parameters
from prism_motor.report.arms import distinct_labels, make_sections
from prism_motor.report.collect import collect

from .folders import write_run


def sections(folder):
    return make_sections(collect(folder))


def test_seed_threads_and_bookkeeping_do_not_make_another_arm(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=2, threads=2, checkpoint_every=3, keep_checkpoints=7)
    (section,) = sections(tmp_path)
    (arm,) = section.arms
    assert (arm.label, list(arm.runs)) == ("prism", [1, 2])


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        ({"actor.degree": 3}, ["prism, degree 2", "prism, degree 3"]),
        (
            {"ppo.learning_rate": 5e-4},
            ["prism, learning_rate 0.0005", "prism, learning_rate 0.0015"],
        ),
        ({"envs": 128}, ["prism, envs 128", "prism, envs 256"]),
    ],
)
def test_any_other_setting_makes_another_arm(tmp_path, change, labels):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=1, **change)
    (section,) = sections(tmp_path)
    assert sorted(arm.label for arm in section.arms) == labels


def test_another_number_of_updates_is_another_arm(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=2, updates=40, planned=40)
    write_run(tmp_path / "c", seed=3, updates=5)  # not finished, but of the same plan as the first
    (section,) = sections(tmp_path)
    assert {arm.label: list(arm.runs) for arm in section.arms} == {
        "prism, 20 updates": [1, 3],
        "prism, 40 updates": [2],
    }


def test_an_unusual_degree_is_always_named(tmp_path):
    write_run(tmp_path / "a", **{"actor.degree": 3})
    assert sections(tmp_path)[0].arms[0].label == "prism, degree 3"


def test_a_name_that_says_the_degree_is_not_told_it_again():
    settings = [{"actor": {"degree": degree}} for degree in (1, 3)]
    assert distinct_labels(["degree1", "cubic"], settings, {"actor.degree": 2}) == [
        "degree1",
        "cubic, degree 3",
    ]


def test_what_by_passes_the_polynomial_is_named_and_counted(tmp_path):
    write_run(tmp_path / "all")
    write_run(tmp_path / "some", **{"actor.bypass": ["command", "clock"]})
    (section,) = sections(tmp_path)
    found = {arm.label: arm.parameters for arm in section.arms}
    assert list(found) == ["prism, bypass none", "prism, bypass command-clock"]
    # Five frames of five numbers leave two factors of 96 and enter a trunk of 256.
    some, every = found["prism, bypass command-clock"], found["prism, bypass none"]
    assert some - every == 25 * (256 - 2 * 96)


def test_different_tasks_never_share_a_section(tmp_path):
    write_run(tmp_path / "laptop")
    write_run(tmp_path / "dog", preset="quadruped")
    write_run(tmp_path / "calm", **{"task.randomisation.push_every": 0.0})
    found = {section.title: [run.name for run in section.runs] for section in sections(tmp_path)}
    assert found == {
        "laptop (g1), push_every 4": ["laptop"],
        "laptop (g1), push_every 0": ["calm"],
        "quadruped (quadruped)": ["dog"],
    }


def test_versions_of_the_contact_solver_share_a_section_and_are_named(tmp_path):
    write_run(tmp_path / "a", arm="mlp-matched", **{"task.simulation.solver": 1})
    write_run(tmp_path / "b")
    (section,) = sections(tmp_path)
    assert sorted(arm.label for arm in section.arms) == ["mlp-matched", "prism"]
    assert any(
        note.endswith("trained with several versions of the contact solver (1: a; 2: b).")
        for note in section.notes
    )


def test_the_same_arm_and_seed_counts_once(tmp_path):
    write_run(tmp_path / "early", updates=5)
    write_run(tmp_path / "whole", rows={"nominal": [{}]})
    write_run(tmp_path / "again")
    (section,) = sections(tmp_path)
    assert section.arms[0].runs[1].name == "whole"
    assert [note.split()[0] for note in section.notes] == ["again", "early"]


def test_arms_come_in_the_usual_order_with_their_size(tmp_path):
    for arm in ("prism", "zebra", "mlp-matched", "mlp"):
        write_run(tmp_path / arm, arm, actor="mlp" if arm == "zebra" else arm)
    (section,) = sections(tmp_path)
    assert [arm.name for arm in section.arms] == ["mlp", "mlp-matched", "prism", "zebra"]
    config = make_config("laptop", "prism")
    assert section.arms[2].parameters == count_parameters(build_actor(config.actor, 235, 12))


def test_missing_seeds_are_those_that_other_arms_have(tmp_path):
    rows = {"nominal": [{}]}
    write_run(tmp_path / "a", "mlp", 1, rows=rows)
    write_run(tmp_path / "b", "mlp", 2, rows=rows)
    write_run(tmp_path / "c", "prism", 2, rows=rows, updates=5)
    write_run(tmp_path / "d", "prism", 3)
    mlp, prism = sections(tmp_path)[0].arms
    assert mlp.missing("nominal") == [3]
    assert prism.missing("nominal") == [1, 2, 3]  # missing, unfinished, not evaluated


def test_runs_that_were_not_evaluated_alike_are_said(tmp_path):
    write_run(tmp_path / "a", seed=1, rows={"nominal": [{}] * 2, "payload": [{}]})
    write_run(tmp_path / "b", seed=2, rows={"nominal": [{}] * 3, "payload": [{}]})
    assert sections(tmp_path)[0].notes == (
        "laptop (g1), nominal: runs were not evaluated alike, but with seed 101: 2 × 1 episodes; "
        "or with seed 101: 3 × 1 episodes.",
    )


def test_arms_of_a_campaign_without_any_run_are_missing(tmp_path):
    write_run(tmp_path / "prism-1", rows={"nominal": [{}]})
    plan = {"arms": [{"name": "prism"}, {"name": "mlp"}], "seeds": [1, 2]}
    (tmp_path / "campaign.json").write_text(json.dumps(plan))
    mlp, prism = sections(tmp_path)[0].arms
    assert (mlp.runs, mlp.parameters, mlp.missing("nominal")) == ({}, None, [1, 2])
    assert prism.missing("nominal") == [2]


def test_the_reference_is_the_one_with_the_nearest_settings(tmp_path):
    fast = {"ppo.learning_rate": 2e-3}
    write_run(tmp_path / "a", "mlp-matched")
    write_run(tmp_path / "b", "mlp-matched", **fast)
    write_run(tmp_path / "c", "mlp-matched", **{"actor.degree": 3})
    write_run(tmp_path / "d", "prism", **fast)
    write_run(tmp_path / "e", "prism", **{"actor.degree": 3})
    (section,) = sections(tmp_path)
    names = {}
    for arm in section.arms:
        reference = section.reference_of(arm, section.reference())
        names[arm.runs[1].name] = reference and reference.runs[1].name
    assert names == {"a": None, "b": None, "c": None, "d": "b", "e": "c"}
    assert section.reference_of(section.arms[0], "nothing") is None


def test_names_stay_unique_whatever_differs():
    many = [{"a": i, "b": i, "c": 0, "d": {"e": i}, "f": i} for i in (1, 2)]
    assert distinct_labels(["x", "x"], many) == [
        "x, a 1, b 1, e 1, 1 more",
        "x, a 2, b 2, e 2, 1 more",
    ]
    assert distinct_labels(["x"] * 3, [{}] * 3) == ["x", "x #2", "x #3"]
