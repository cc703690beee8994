import json
import statistics

import pytest
import torch

from prism.cli import main
from prism.imitate.config import ConditionerConfig, ImitationConfig, TaskConfig
from prism.report.build import write_report
from prism.report.manipulation import collect_manipulation
from prism.report.manipulation_tables import manipulation_tables
from prism.runs import Run, RunError, to_dict
from prism.statistics import t_interval, wilson

from .folders import write_run

EPISODE = {
    "success": True,
    "steps": 50,
    "smoothness": 0.02,
    "position_error": 0.03,
    "orientation_error": 0.04,
}


def write(path, arm="prism", seed=1, *, task="reach-v3", rows=None, steps=20, done=20, **changes):
    """Write a run with ``rows`` of episodes by condition, or by condition and corrector."""
    config = ImitationConfig(
        preset="state",
        arm=arm,
        task=TaskConfig("metaworld", task, 11, 10, 4, ()),
        demos="demos",
        conditioner=ConditionerConfig(**changes),
        steps=steps,
        seed=seed,
    )
    run = Run.create(path, to_dict(config))
    run.log({"iteration": done, "loss": 0.1})
    run.close()
    run.save(done, {"policy.weight": torch.zeros(1)}, {})
    for key, episodes in (rows or {}).items():
        condition, _, corrector = key.partition("+")
        data = {
            "schema": 1,
            "condition": {"name": condition},
            "protocol": {"linger": 0, "corrector": corrector or "none"},
            "checkpoint": done,
            "episodes": [{**EPISODE, **episode} for episode in episodes],
        }
        run.write_evaluation(f"{key}-101", data)


def solved(count, of=4, **others):
    return {"none": [{"success": number < count, **others} for number in range(of)]}


def cells(table, arm):
    (row,) = [row for row in table.rows if row[0].text == arm]
    return dict(zip(table.columns[1:], row[1:], strict=True))


def test_numbers_are_means_over_seeds_with_t_intervals(tmp_path):
    for seed, count in ((1, 2), (2, 3), (3, 4)):
        write(tmp_path / f"a{seed}", seed=seed, rows=solved(count))
    runs, notes = collect_manipulation(tmp_path)
    assert notes == []
    (table,) = manipulation_tables(runs)
    assert table.title == "metaworld reach-v3, preset state"
    cell = cells(table, "prism")["success, %\u00a0↑"]
    values = [50.0, 75.0, 100.0]
    low, high = t_interval(values)
    assert cell.text == f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}"
    assert high > 100  # but no rate is
    assert cell.detail == f"[{low:.1f},\u00a0100.0]"
    assert table.rows[0][0].detail == "3 seeds, 12 episodes"


def test_one_seed_has_wilsons_interval_and_successes_are_told_apart(tmp_path):
    rows = {"none": [{"position_error": 0.01}, {"success": False, "position_error": 0.05}]}
    write(tmp_path / "run", rows=rows)
    (table,) = manipulation_tables(collect_manipulation(tmp_path)[0])
    low, high = (100 * bound for bound in wilson(1, 2))
    row = table.rows[0]
    assert row[1].detail == f"[{low:.1f},\u00a0{high:.1f}]*"
    headings = table.columns
    at = headings.index("position error, mm\u00a0↓")
    assert (row[at].text, row[at + 1].text) == ("30.0", "10.0")


def test_arms_correctors_conditions_tasks_and_suites(tmp_path):
    rows = {**solved(4), "delay": [{"success": False}], "none+mcc-oracle": [{}]}
    write(tmp_path / "one", rows=rows)
    write(tmp_path / "two", "linear", kind="linear", rows=solved(1))
    write(tmp_path / "three", task="push-v3", rows=solved(2))
    main_, other, under, suites = _by_title(manipulation_tables(collect_manipulation(tmp_path)[0]))
    assert [row[0].text for row in under.rows] == ["linear", "prism", "prism + mcc-oracle"]
    assert under.columns == ("arm", "none", "delay")
    assert cells(under, "prism")["delay"].text == "0.0"
    assert cells(under, "linear")["delay"].kind == "missing"
    assert cells(suites, "prism")["metaworld (2 tasks)"].text == "75.0"
    assert len(main_.rows) == 3
    assert len(other.rows) == 1


def _by_title(tables):
    reach, push = "metaworld reach-v3, preset state", "metaworld push-v3, preset state"
    found = {table.title: table for table in tables}
    under = f"{reach}: success under perturbations, %"
    return found[reach], found[push], found[under], found["Success by suite, %"]


def test_what_is_left_out_is_said(tmp_path):
    write(tmp_path / "half", done=10)
    write(tmp_path / "fresh", seed=2)
    write(tmp_path / "mixed", seed=3, rows=solved(1), degree=3)
    (tmp_path / "mixed" / "evaluations" / "delay-1.json").write_text("{")
    notes = "\n".join(collect_manipulation(tmp_path)[1])
    assert "half: 10 of 20 updates are done" in notes
    assert "fresh: not evaluated yet" in notes
    assert "mixed/evaluations/delay-1.json is left out" in notes
    assert "both called prism but differ in conditioner.degree" in notes


@pytest.mark.parametrize("walking", [False, True])
def test_the_page_shows_them_alone_and_beside_walking(tmp_path, walking, capsys):
    write(tmp_path / "reach", rows=solved(3))
    if walking:
        write_run(tmp_path / "walk", rows={"nominal": [{}, {}]})
    made = write_report(tmp_path)
    page = made.page.read_text()
    assert "metaworld reach-v3, preset state" in page
    assert ("How they walk" in page or "Evaluation" in page) == walking
    assert "metaworld reach-v3" in made.markdown.read_text()
    data = json.loads(made.data.read_text())
    assert len(data["manipulation"][0]["evaluations"][0]["episodes"]) == 4
    assert not any("reach" in problem for problem in made.problems)
    main(["report", str(tmp_path)])
    assert "75.0" in capsys.readouterr().out


def test_a_folder_without_runs_is_still_an_error(tmp_path):
    with pytest.raises(RunError, match="no training run that can be reported"):
        write_report(tmp_path)
