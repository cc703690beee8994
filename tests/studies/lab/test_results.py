"""The numbers of the report, against a computation by hand; and the page."""

import json
import math
import shutil
import statistics

import pytest
from scipy import stats

from prism_motor._checks import PrismError
from prism_motor.cli import main
from prism_motor.studies.lab.arms import REFERENCE, find_arm
from prism_motor.studies.lab.cells import CellKey, CellResult, LabFit
from prism_motor.studies.lab.config import LabConfig
from prism_motor.studies.lab.figures import draw_map
from prism_motor.studies.lab.problems import PROBLEMS
from prism_motor.studies.lab.records import LabRecords
from prism_motor.studies.lab.report import report_lab
from prism_motor.studies.lab.results import Setting, summarise
from prism_motor.studies.lab.structure import Structure

SETTING = Setting(4000, 10_000)
ERRORS = {
    ("gain-schedule", "mlp-matched"): [0.10, 0.12, 0.11],
    ("gain-schedule", "prism"): [0.020, 0.025, 0.021],
    ("gain-schedule", "product"): [0.11, 0.10, None],
    ("linear", "mlp-matched"): [0.001, 0.002, 0.003],
    ("linear", "prism"): [0.002, 0.001, 0.004],
    ("linear", "product"): [0.004, 0.009, 0.011],
}


@pytest.fixture
def folder(tmp_path):
    """A laboratory whose errors are given; extrapolation is ten times as bad."""
    config = LabConfig(
        problems=("gain-schedule", "linear"), arms=("prism", "product"), seeds=3, tuning_seeds=1,
        learning_rates=(1e-2, 2e-2, 4e-2),
    )  # fmt: skip
    (tmp_path / "lab").mkdir()
    records = LabRecords(tmp_path / "lab", config)
    records.add_structure("gain-schedule", Structure(0.2, 0.02, 3))
    records.add_structure("linear", Structure(0.0, 0.0, 2))
    for (problem, arm), errors in ERRORS.items():
        best = 4e-2 if arm == "product" else 2e-2
        tuning = [
            LabFit(901, r, 0.1 if r == best else 0.2, 0.5, 0.5) for r in config.learning_rates
        ]
        seeds = [
            LabFit(s, best, 0.3, e, None if e is None else 10 * e) for s, e in enumerate(errors, 1)
        ]
        key = CellKey(problem, arm, *SETTING)
        records.add(key, CellResult(4000, tuning, seeds, 1.0))
    return tmp_path / "lab"


def logs(problem, arm):
    pairs = zip(ERRORS[problem, arm], ERRORS[problem, "mlp-matched"], strict=True)
    return [math.log(a / b) for a, b in pairs]


def row(summary, problem, arm):
    return summary.row(PROBLEMS[problem], find_arm(arm), SETTING)


def test_ratio_interval_and_holm_by_hand(folder):
    summary = summarise(LabRecords(folder), (1, 2, 3))
    raw = {}
    for problem, arm in (("gain-schedule", "prism"), ("linear", "prism"), ("linear", "product")):
        values = logs(problem, arm)
        mean, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(3)
        half = stats.t.ppf(0.975, 2) * error
        ratio = row(summary, problem, arm).ratio("test")
        assert ratio.centre == pytest.approx(math.exp(mean))
        assert ratio.interval == pytest.approx((math.exp(mean - half), math.exp(mean + half)))
        raw[problem, arm] = 2 * stats.t.sf(abs(mean / error), 2)
    # The diverged arm is not tested, so three comparisons are corrected together.
    highest = 0.0
    for rank, ((problem, arm), p) in enumerate(sorted(raw.items(), key=lambda one: one[1])):
        highest = max(highest, min(1.0, (3 - rank) * p))
        claim = row(summary, problem, arm).claims["test"]
        assert claim.adjusted == pytest.approx(highest)
    assert row(summary, "gain-schedule", "prism").outcome("test") == "better"
    assert row(summary, "linear", "prism").outcome("test") == "open"


def test_errors_are_geometric_means_and_divergence_is_not_hidden(folder):
    summary = summarise(LabRecords(folder), (1, 2, 3))
    found = row(summary, "linear", "mlp-matched").estimate("test")
    assert found.centre == pytest.approx((0.001 * 0.002 * 0.003) ** (1 / 3))
    diverged = row(summary, "gain-schedule", "product")
    assert diverged.estimate("test") is None
    assert diverged.ratio("test") is None
    assert diverged.outcome("test") == "diverged"
    # Ten times as bad for all: the same ratios.
    far = row(summary, "gain-schedule", "prism")
    assert far.ratio("extrapolation").centre == pytest.approx(far.ratio("test").centre)


def test_overall_is_the_mean_over_problems_with_an_interval_over_seeds(folder):
    summary = summarise(LabRecords(folder), (1, 2, 3))
    arm = find_arm("prism")
    both = zip(logs("gain-schedule", "prism"), logs("linear", "prism"), strict=True)
    means = [statistics.fmean(pair) for pair in both]
    half = stats.t.ppf(0.975, 2) * statistics.stdev(means) / math.sqrt(3)
    found = summary.overall(arm, SETTING, "test")
    assert math.log(found.centre) == pytest.approx(statistics.fmean(means))
    assert math.log(found.interval.high) == pytest.approx(statistics.fmean(means) + half)
    only = summary.overall(arm, SETTING, "test", multiplicative=True)
    assert math.log(only.centre) == pytest.approx(statistics.fmean(logs("gain-schedule", "prism")))
    # The problem on which an arm diverged does not count for its mean.
    product = summary.overall(find_arm("product"), SETTING, "test")
    assert math.log(product.centre) == pytest.approx(statistics.fmean(logs("linear", "product")))


def test_problems_are_ordered_by_structure_and_arms_by_table(folder):
    summary = summarise(LabRecords(folder), (1, 2, 3))
    assert [p.name for p in summary.problems] == ["gain-schedule", "linear"]
    assert [a.name for a in summary.arms] == ["mlp-matched", "prism", "product"]
    assert {r.arm.name for r in summary.rows if r.at_edge} == {"product"}
    assert summary.missing == 0


def test_a_cell_without_its_reference_is_left_out_and_counted(folder):
    lines = (folder / "cells.jsonl").read_text().splitlines(keepends=True)
    kept = [x for x in lines if not ('"mlp-matched"' in x and '"linear"' in x)]
    (folder / "cells.jsonl").write_text("".join(kept))
    summary = summarise(LabRecords(folder), (1, 2, 3))
    assert {r.problem.name for r in summary.rows} == {"gain-schedule"}
    assert summary.missing == 3


def test_the_page_has_the_numbers_and_needs_nothing_else(folder):
    made = report_lab(folder)
    page = made.page.read_text()
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    prism = statistics.fmean(logs("gain-schedule", "prism"))
    assert f"×{math.exp(prism):.2f}" in page
    assert "diverged" in page
    assert "A first look, not evidence" in page
    assert "Unfinished" not in page
    assert "better on gain-schedule" in dict(made.findings)["front, gates 0.01 (paper):"]
    numbers = json.loads((folder / "summary.json").read_text())
    stored = {(r["problem"], r["arm"]): r for r in numbers["reported"]}
    found = stored["gain-schedule", "prism"]["comparison"]["test"]
    assert found["ratio"] == pytest.approx(math.exp(prism))
    assert numbers["structures"]["gain-schedule"]["multiplicativity"] == pytest.approx(0.9)
    assert (folder / "map.png").stat().st_size > 10_000
    assert f"×{math.exp(prism):.2f}" in (folder / "report.md").read_text()


def test_sizes_and_data_have_curves_and_their_own_maps(folder):
    records = LabRecords(folder)
    about = {**records.about}
    about["config"] |= {"sizes": [4000, 8000]}
    (folder / "lab.json").write_text(json.dumps(about))
    for key, cell in list(records.cells.items()):
        records.add(CellKey(key.problem, key.arm, 8000, key.samples), cell)
    page = report_lab(folder).page.read_text()
    assert "By size and data" in page
    assert "8,000 parameters, 10,000 samples" in page
    assert (folder / "size.png").stat().st_size > 10_000
    assert not (folder / "samples.png").exists()


def test_the_map_shows_the_arms_that_were_asked_for(folder):
    summary = summarise(LabRecords(folder), (1, 2, 3))

    def titles(*chosen):
        axes = draw_map(summary, SETTING, chosen).axes
        return [axis.get_title() for axis in axes if axis.get_title()]

    assert titles() == [find_arm(name).label for name in ("prism", "product")]
    assert titles("product") == [find_arm("product").label]
    with pytest.raises(PrismError, match=r"Unknown arm 'prsm'.*Did you mean 'prism'"):
        report_lab(folder, ["prsm"])


def test_a_report_needs_a_finished_comparison(folder, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "few")
    (tmp_path / "few" / "cells.jsonl").write_text("")
    with pytest.raises(PrismError, match=r"no finished cell to compare yet. Continue: prism lab"):
        report_lab(tmp_path / "few")


def test_the_command(folder, capsys):
    main(["lab", "list"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in (*PROBLEMS, REFERENCE.name, "screen"))
    main(["lab", "report", str(folder)])
    assert "index.html" in capsys.readouterr().out
    for words, message in (
        (["lab", "rnu"], "Did you mean 'run'"),
        (["lab", "run", "x", "--preset", "ful"], "Did you mean 'full'"),
        (["lab", "report", "nowhere"], "holds no laboratory"),
        (["lab", "run", "x", "--seeds", "1"], "seeds must be from 2"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
