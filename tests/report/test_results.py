"""The numbers of the tables against plain computations on the episodes."""

import numpy as np
import pytest
from scipy import stats

from prism_motor.report import chapters, sentences, tables
from prism_motor.report.arms import make_sections
from prism_motor.report.collect import collect
from prism_motor.report.results import Key, compute
from prism_motor.statistics import holm, wilson

from .folders import study, write_run


def results(folder, **options):
    (section,) = make_sections(collect(folder))
    return compute(section, **options)


def cells(table, arm):
    (row,) = [row for row in table.rows if row[0].text == arm]
    return dict(zip(table.columns, row, strict=True))


def test_episodes_are_averaged_within_a_seed_first(tmp_path):
    # Seed 1 has many episodes and seed 2 few; both count the same.
    write_run(tmp_path / "a", seed=1, rows={"nominal": [{"linear_error": 0.1}] * 9})
    write_run(tmp_path / "b", seed=2, rows={"nominal": [{"linear_error": 0.3}]})
    found, key = results(tmp_path), Key("prism", "nominal", "linear_error")
    assert found.means[key] == pytest.approx({1: 0.1, 2: 0.3})
    estimate = found.estimate(key)
    assert estimate.centre == pytest.approx(0.2)
    assert estimate.sd == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert estimate.count == 2


def test_episodes_without_a_value_are_left_out_of_their_mean(tmp_path):
    rows = [{"swing_apex": None}, {"swing_apex": 0.04}, {"swing_apex": 0.06}]
    write_run(tmp_path / "a", rows={"nominal": rows})
    write_run(tmp_path / "b", seed=2, rows={"nominal": [{"swing_apex": None}]})
    means = results(tmp_path).means["prism", "nominal", "swing_apex", False]
    assert means == pytest.approx({1: 5.0})  # cm


def test_unfinished_trainings_count_nowhere(tmp_path):
    rows = {"nominal": [{}]}
    write_run(tmp_path / "a", seed=1, rows=rows)
    write_run(tmp_path / "b", seed=2, rows={"nominal": [{"linear_error": 9.0}]}, updates=5)
    found = results(tmp_path)
    assert found.means["prism", "nominal", "linear_error", False] == pytest.approx({1: 0.13})
    assert found.rate("prism", "nominal") == (1, 1)
    assert tables.main_table(found).rows[0][0].detail == "1 of 2 seeds; 2 at 25%"
    listed = chapters.runs_table(found).rows
    assert [row[3].text for row in listed] == ["20 / 20", "5 / 20"]


def test_comparisons_are_paired_tests_with_holm_over_the_table(tmp_path):
    study(tmp_path, arms=("mlp", "mlp-matched", "prism"), seeds=(1, 2, 3, 4))
    found = results(tmp_path)
    claims = found.claims
    assert {(c.arm, c.reference) for c in claims} == {
        ("mlp", "mlp-matched"),
        ("prism", "mlp-matched"),
    }
    assert [c.measure.field for c in claims[:5]] == [
        "survived", "linear_error", "yaw_error", "episode_return", "seconds"
    ]  # fmt: skip
    raw = []
    for claim in claims:
        ours, theirs = (
            list(found.means[arm, "nominal", claim.measure.field, False].values())
            for arm in (claim.arm, claim.reference)
        )
        differences = np.subtract(ours, theirs)
        assert claim.comparison.difference == pytest.approx(differences.mean(), abs=1e-12)
        same = np.allclose(differences, differences[0])
        raw.append(None if same else stats.ttest_rel(ours, theirs).pvalue)
    assert [c.adjusted for c in claims] == pytest.approx(holm(raw))
    linear = next(c for c in claims if c.arm == "prism" and c.measure.higher_is_better is False)
    assert linear.outcome == "better"  # the error is lower
    assert linear.comparison.difference == pytest.approx(-0.02, abs=0.005)


def test_what_these_seeds_cannot_show_is_said_so(tmp_path):
    study(tmp_path, seeds=(1, 2, 3, 4, 5))
    (comparison,) = [
        f for subject, f in sentences.findings(results(tmp_path)) if "against" in subject
    ]
    assert "over 5 common training seeds" in comparison
    assert "better in linear error (−0.02" in comparison
    assert "no difference that these seeds can show in yaw error" in comparison
    assert "p = <" not in comparison


def test_a_single_seed_has_numbers_but_no_claims(tmp_path):
    study(tmp_path, seeds=(1,))
    found = results(tmp_path)
    assert {claim.outcome for claim in found.claims} == {"untested"}
    text = " ".join(f"{s}{f}" for s, f in sentences.findings(found))
    assert "one common training seed, so no interval" in text
    assert "better" not in text
    assert "read every difference as an anecdote" in sentences.summarise_runs([found])
    main = cells(tables.main_table(found), "prism")
    assert main["linear error, m/s\u00a0↓"].detail == ""
    assert "±" not in main["linear error, m/s\u00a0↓"].text
    low, high = wilson(4, 4)
    assert main["survival, %\u00a0↑"].detail == f"[{100 * low:.1f},\u00a0{100 * high:.1f}]*"


def test_equal_seeds_show_the_wilson_interval_instead_of_certainty(tmp_path):
    for seed in (1, 2, 3):
        write_run(tmp_path / str(seed), seed=seed, rows={"nominal": [{}] * 5})
    main = cells(tables.main_table(results(tmp_path)), "prism")
    assert main["survival, %\u00a0↑"].text == "100.0 ± 0.0"
    assert main["survival, %\u00a0↑"].detail == f"[{100 * wilson(15, 15).low:.1f},\u00a0100.0]*"


def test_robustness_by_condition_and_over_all(tmp_path):
    conditions = ("nominal", "low-friction", "payload")
    study(tmp_path, conditions=conditions, seeds=(1, 2, 3))
    found = results(tmp_path)
    assert found.conditions == conditions
    table = tables.conditions_table(found, "linear_error")
    assert table.columns == ("arm", *conditions, "all: IQM")
    values = [
        value
        for condition in conditions
        for value in found.means["prism", condition, "linear_error", False].values()
    ]
    expected = stats.trim_mean(values, 0.25)
    assert cells(table, "prism")["all: IQM"].text == found.spec.measure("linear_error").write(
        expected
    )
    assert {c.condition for c in found.other_claims} == {"low-friction", "payload"}
    assert len(found.other_claims) == 2 * 3


def test_missing_conditions_are_missing_in_the_table(tmp_path):
    write_run(tmp_path / "a", "prism", rows={"nominal": [{}], "payload": [{}]})
    write_run(tmp_path / "b", "mlp-matched", rows={"nominal": [{}]})
    found = results(tmp_path)
    row = cells(tables.conditions_table(found, "survived"), "mlp-matched")
    assert row["payload"].text == "missing"
    assert "all: IQM" not in row  # one seed
    assert row["payload"].kind == "missing"
    claims = tables.claims_table(found.other_claims, "x")
    assert {row[2].text for row in claims.rows} == {"no common seed"}


def test_no_reference_is_said(tmp_path):
    write_run(tmp_path / "a", "prism", rows={"nominal": [{}]})
    ((subject, finding), _) = sentences.findings(results(tmp_path))
    assert subject == "No comparison:"
    assert "there is no arm mlp-matched" in finding
    write_run(tmp_path / "b", "mlp", rows={"nominal": [{}]})
    assert results(tmp_path, reference="mlp").claims[0].arm == "prism"


def test_provenance_names_run_config_code_checkpoint_and_policy(tmp_path):
    study(tmp_path, seeds=(1,))
    found = results(tmp_path)
    table = chapters.provenance_table(found.section.runs)
    for row, run in zip(table.rows, found.section.runs, strict=True):
        row = dict(zip(table.columns, row, strict=True))
        assert row["folder"].text == run.name
        assert row["config"].full == run.config_sha256
        assert row["checkpoint sha256"].full == run.checkpoint_sha256
        assert row["policy sha256"].full == run.evaluations[0].policy_sha256
        assert row["evaluation seeds"].text == "101"
        assert row["evaluation seeds"].detail == "4 × 1 episodes"
