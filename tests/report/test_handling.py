"""Policies that handle things go through the same report as those that walk."""

import json
import statistics

import pytest
import torch
from scipy import stats

from prism_motor.cli import main
from prism_motor.manipulation.config import ConditionerConfig, HandlingTask, ManipulationConfig
from prism_motor.report import write_report
from prism_motor.report.arms import make_sections
from prism_motor.report.chapters import make_chapters
from prism_motor.report.collect import collect
from prism_motor.report.results import compute_all
from prism_motor.runs import Run, RunError, to_dict
from prism_motor.statistics import t_interval, wilson

from .folders import edit_json, write_run

EPISODE = {
    "success": True,
    "steps": 50,
    "smoothness": 0.02,
    "position_error": 0.03,
    "orientation_error": 0.04,
}


def write(
    path, arm="prism", seed=1, *, suite="metaworld", task="reach-v3", rows=None, done=20, **changes
):
    """Write a run with ``rows`` of episodes by condition, or by condition and corrector."""
    config = ManipulationConfig(
        preset="state",
        arm=arm,
        task=HandlingTask(suite, task, 11, 10, 4, ()),
        demos="demos",
        conditioner=ConditionerConfig(**changes),
        updates=20,
        seed=seed,
    )
    run = Run.create(path, to_dict(config))
    run.log({"update": done, "loss": 0.1})
    run.close()
    run.save(done, {"policy.weight": torch.zeros(1)}, {})
    for key, episodes in (rows or {}).items():
        condition, _, corrector = key.partition("+")
        data = {
            "schema": 1,
            "condition": {"name": condition},
            "protocol": {"linger": 0, **protocol(corrector)},
            "evaluation_seed": 101,
            "policy_sha256": "ab" * 32,
            "checkpoint": done,
            "episodes": [{**EPISODE, **episode} for episode in episodes],
        }
        run.write_evaluation(f"{key}-101", data)


def protocol(words):
    """Return how a policy was run: nothing, ``mcc-oracle``, ``kp50`` or both, with a plus."""
    parts = [part for part in words.split("+") if part]
    stiffness = [float(part[2:]) for part in parts if part.startswith("kp")]
    corrector = [part for part in parts if not part.startswith("kp")]
    found = {"corrector": corrector[0] if corrector else "none"}
    return found | ({"stiffness": stiffness[0]} if stiffness else {})


def chapters(folder, reference=None):
    """Return the chapters of a folder's runs by title."""
    found = make_chapters(compute_all(make_sections(collect(folder)), reference))
    return {chapter.title: chapter for chapter in found}


def notes(folder):
    """Return everything that is missing or was left out."""
    found = collect(folder)
    return [*found.problems, *(note for one in make_sections(found) for note in one.notes)]


def solved(count, of=4, **others):
    return {"none": [{"success": number < count, **others} for number in range(of)]}


def cells(table, arm):
    (row,) = [row for row in table.rows if row[0].text == arm]
    return dict(zip(table.columns[1:], row[1:], strict=True))


def test_numbers_are_means_over_seeds_with_t_intervals(tmp_path):
    for seed, count in ((1, 2), (2, 3), (3, 4)):
        write(tmp_path / f"a{seed}", seed=seed, rows=solved(count))
    assert notes(tmp_path) == []
    table = chapters(tmp_path)["metaworld reach-v3, preset state"].main
    cell = cells(table, "prism")["success, %\u00a0↑"]
    values = [50.0, 75.0, 100.0]
    low, high = t_interval(values)
    assert cell.text == f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}"
    assert high > 100  # but no rate is
    assert cell.detail == f"[{low:.1f},\u00a0100.0]"
    assert table.rows[0][0].detail == "3 seeds, 12 episodes"


def test_one_seed_has_wilsons_interval_and_successes_are_shown_alone_too(tmp_path):
    rows = {"none": [{"position_error": 0.01}, {"success": False, "position_error": 0.05}]}
    write(tmp_path / "run", rows=rows)
    table = chapters(tmp_path)["metaworld reach-v3, preset state"].main
    low, high = (100 * bound for bound in wilson(1, 2))
    row = table.rows[0]
    assert row[1].detail == f"[{low:.1f},\u00a0{high:.1f}]*"
    headings = table.columns
    at = headings.index("position error, mm\u00a0↓")
    assert (row[at].text, row[at + 1].text) == ("30.0", "10.0")


def test_arms_correctors_conditions_and_suites(tmp_path):
    rows = {**solved(4), "delay": [{"success": False}], "none+mcc-oracle": [{}]}
    write(tmp_path / "one", rows=rows)
    write(tmp_path / "two", "linear", kind="linear", rows=solved(1))
    write(tmp_path / "three", task="push-v3", rows=solved(2))
    write(tmp_path / "four", suite="libero_goal", task="stove", rows=solved(1))
    found = chapters(tmp_path)
    main_ = found["metaworld reach-v3, preset state"].main
    (under,) = found["metaworld reach-v3, preset state"].conditions
    assert [row[0].text for row in under.rows] == ["linear", "prism", "prism + mcc-oracle"]
    assert under.columns == ("arm", "none", "delay")
    assert cells(under, "prism")["delay"].text == "0.0"
    assert cells(under, "linear")["delay"].kind == "missing"
    assert len(main_.rows) == 3
    other = found["metaworld push-v3, preset state"].main
    assert len(other.rows) == 1
    suites = found["Success by suite, preset state"].main
    assert suites.columns == ("arm", "Goal (1 task)", "metaworld (2 tasks)", "all (3 tasks)")
    assert [cell.text for cell in suites.rows[1]] == ["prism", "25.0", "75.0", "58.3"]
    linear = cells(suites, "linear")  # one task of three
    assert {cell.kind for cell in linear.values()} == {"missing"}
    assert [cell.detail for cell in linear.values()] == ["", "1 of 2 tasks", "1 of 3 tasks"]
    together = found["All 3 tasks together, preset state"].main
    assert cells(together, "prism")["success, %\u00a0↑"].text == "58.3"
    assert [row[0].text for row in together.rows] == ["prism"]  # nothing else has all tasks


SOLVED = {  # of four episodes, by suite, task and training seed
    ("libero_spatial", "a"): (4, 2, 3),
    ("libero_spatial", "b"): (0, 1, 2),
    ("libero_10", "c"): (1, 1, 4),
}


def by_suite(seed, tasks):
    return statistics.fmean(25.0 * SOLVED[task][seed - 1] for task in tasks)


def test_suites_are_the_same_whether_one_policy_or_three_made_the_episodes(tmp_path):
    for seed in (1, 2, 3):
        for arm, kind in (("linear", "linear"), ("prism", "prism")):
            labelled = []
            for (suite, task), counts in SOLVED.items():
                solves = max(0, counts[seed - 1] - (arm == "linear"))
                rows = solved(solves, position_error=0.01 * solves)
                labelled += [{**row, "suite": suite, "task": task} for row in rows["none"]]
                place = tmp_path / "many" / f"{arm}-{task}-{seed}"
                write(place, arm, seed, suite=suite, task=task, kind=kind, rows=rows)
            place = tmp_path / "one" / f"{arm}-{seed}"
            write(place, arm, seed, suite="libero_10", kind=kind, rows={"none": labelled})
    many, one = (chapters(tmp_path / name) for name in ("many", "one"))
    title = "Success by suite, preset state"
    assert many[title].main == one[title].main
    assert many[title].differences == one[title].differences
    assert many[title].tasks == one[title].tasks
    # Against means computed here: over tasks, then over seeds.
    spatial = [task for task in SOLVED if task[0] == "libero_spatial"]
    found = cells(one[title].main, "prism")
    for column, tasks in (("Spatial (2 tasks)", spatial), ("all (3 tasks)", list(SOLVED))):
        values = [by_suite(seed, tasks) for seed in (1, 2, 3)]
        low, high = t_interval(values)
        assert found[column].text == (
            f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}"
        )
        assert found[column].detail == f"[{max(0, low):.1f},\u00a0{min(100, high):.1f}]"
    assert [row[1].text for row in many[title].differences.rows] == ["Spatial", "Long"]
    # The tables of all tasks are equal, too.
    together = many["All 3 tasks together, preset state"]
    alone = one["libero_10 reach-v3, preset state"]
    assert [row[1:] for row in together.main.rows] == [row[1:] for row in alone.main.rows]
    assert together.findings == alone.findings
    assert together.differences == alone.differences


def test_errors_of_successes_are_means_over_the_tasks_that_were_solved(tmp_path):
    for seed in (1, 2):
        write(tmp_path / f"a{seed}", seed=seed, rows=solved(2, position_error=0.01))
        rows = solved(seed - 1, position_error=0.03)  # the first seed never solves it
        write(tmp_path / f"b{seed}", seed=seed, task="push-v3", rows=rows)
    table = chapters(tmp_path)["All 2 tasks together, preset state"].main
    found = cells(table, "prism")
    assert found["position error of successes, mm\u00a0↓"].text == "15.0 ± 7.1"  # of 10 and 20
    assert found["position error, mm\u00a0↓"].text == "20.0 ± 0.0"


def test_many_tasks_are_folded_below_what_they_show_together(tmp_path):
    for number in range(7):
        write(tmp_path / f"{number}", suite="libero_goal", task=f"task{number}", rows=solved(2))
    page = write_report(tmp_path).page.read_text()
    assert "7 trainings of 1 arm on 7 tasks" in page
    folded = page.partition('<h2 id="tasks">Task by task</h2>')[2]
    assert all(f"<summary>libero_goal task{number}, preset state" in folded for number in range(7))
    assert page.count('<h2 id="chapter-') == 1  # of all tasks together
    (tmp_path / "few").mkdir()
    for number in range(2):
        write(tmp_path / "few" / f"{number}", task=("reach-v3", "push-v3")[number], rows=solved(2))
    few = write_report(tmp_path / "few").page.read_text()
    assert "Task by task" not in few
    assert few.count('<h2 id="chapter-') == 3


def test_numbers_by_suite_are_in_the_data(tmp_path):
    write(tmp_path / "one", rows=solved(4))
    write(tmp_path / "two", suite="libero_goal", task="stove", rows=solved(1))
    data = json.loads(write_report(tmp_path).data.read_text())
    (suites,) = data["suites"]
    assert suites["title"] == "Success by suite, preset state"
    assert list(suites["families"]) == ["libero_goal", "metaworld"]
    assert suites["families"]["libero_goal"]["prism"]["mean"] == 25.0
    assert suites["families"]["libero_goal"]["prism"]["by_training_seed"] == {"1": 25.0}
    assert suites["tasks"] == {"libero_goal": ["stove"], "metaworld": ["reach-v3"]}


def test_all_tasks_together_count_the_seeds_that_have_all_of_them(tmp_path):
    for seed in (1, 2):
        write(tmp_path / f"reach{seed}", seed=seed, rows=solved(4))
    write(tmp_path / "push1", task="push-v3", rows=solved(1))
    table = chapters(tmp_path)["All 2 tasks together, preset state"].main
    low, high = (100 * bound for bound in wilson(5, 8))
    cell = cells(table, "prism")["success, %\u00a0↑"]
    assert (cell.text, cell.detail) == ("62.5", f"[{low:.1f},\u00a0{high:.1f}]*")
    assert table.rows[0][0].detail == "1 seed, 8 episodes"
    assert cells(table, "prism")["success, IQM, %\u00a0↑"].text == "62.5"


def test_all_tasks_together_have_a_reference_that_has_all_of_them(tmp_path):
    for seed in (1, 2, 3):
        for arm, kind in (("linear", "linear"), ("prism", "prism"), ("mlp-matched", "mlp")):
            rows = solved({"linear": 1, "prism": 3}.get(arm, 2) + seed % 2)
            write(tmp_path / f"reach-{arm}{seed}", arm, seed, kind=kind, rows=rows)
            if arm != "mlp-matched":
                write(
                    tmp_path / f"push-{arm}{seed}", arm, seed, kind=kind, task="push-v3", rows=rows
                )
    found = chapters(tmp_path)
    alone = found["metaworld reach-v3, preset state"].findings
    assert [subject for subject, _ in alone] == [
        "linear against mlp-matched:",
        "prism against mlp-matched:",
    ]
    ((subject, _),) = found["All 2 tasks together, preset state"].findings
    assert subject == "prism against linear:"


def test_another_stiffness_is_another_arm_with_its_own_reference(tmp_path):
    rows = {**solved(4), "none+kp50": [{"success": False}], "none+mcc-oracle+kp50": [{}]}
    write(tmp_path / "one", "linear", kind="linear", rows=rows)
    write(tmp_path / "two", rows={**solved(4), "none+kp50": [{}]})
    chapter = chapters(tmp_path)["metaworld reach-v3, preset state"]
    table = chapter.main
    assert [row[0].text for row in table.rows] == [
        "linear", "prism", "linear, Kp 50", "prism, Kp 50", "linear + mcc-oracle, Kp 50"
    ]  # fmt: skip
    assert cells(table, "linear, Kp 50")["success, %\u00a0↑"].text == "0.0"
    assert [subject for subject, _ in chapter.findings] == [
        "prism against linear:",
        "prism, Kp 50 against linear, Kp 50:",
        "linear + mcc-oracle, Kp 50 against linear, Kp 50:",
    ]


def test_differences_are_paired_by_training_seed_and_corrected(tmp_path):
    counts = {"mlp": (1, 2, 1, 2), "prism": (3, 4, 3, 3)}
    for arm, solves in counts.items():
        for seed, count in enumerate(solves, start=1):
            kind = {"kind": arm}
            write(tmp_path / f"{arm}{seed}", arm, seed, rows=solved(count), **kind)
    chapter = chapters(tmp_path)["metaworld reach-v3, preset state"]
    differences = [25.0 * (b - a) for a, b in zip(counts["mlp"], counts["prism"], strict=True)]
    low, high = t_interval(differences)
    row = next(r for r in chapter.differences.rows if r[1].text.startswith("success"))
    assert row[0].detail == "against mlp-matched"
    assert row[2].text == f"+{statistics.fmean(differences):.1f}"
    assert row[2].detail == f"[+{low:.1f},\u00a0+{high:.1f}]"
    assert float(row[3].text) == pytest.approx(
        stats.ttest_rel(counts["prism"], counts["mlp"]).pvalue, rel=0.05
    )  # the only measure that differs, so nothing to correct for
    assert "better in success (+" in chapter.findings[0][1]
    other = chapters(tmp_path, "prism")["metaworld reach-v3, preset state"]
    assert other.findings[0][0] == "mlp-matched against prism:"


def test_every_number_can_be_traced(tmp_path):
    write(tmp_path / "one", rows=solved(4))
    table = chapters(tmp_path)["metaworld reach-v3, preset state"].provenance
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["folder"].text == "one"
    assert row["policy sha256"].full == "ab" * 32
    assert len(row["checkpoint sha256"].full) == 64
    assert row["evaluation seeds"].detail == "4 episodes each"


def test_unequal_evaluations_are_named(tmp_path):
    write(tmp_path / "one", rows=solved(4))
    write(tmp_path / "two", seed=2, rows=solved(2, of=2))
    (note,) = notes(tmp_path)
    assert "metaworld reach-v3, preset state, none: runs were not evaluated alike" in note
    assert "seed 101: 2 initial states" in note
    assert "seed 101: 4 initial states" in note


def test_a_mix_of_lerobots_versions_is_named(tmp_path, monkeypatch):
    for name, seed, version in (("one", 1, "0.4.4"), ("two", 2, "0.6.1"), ("three", 3, "0.6.1")):
        monkeypatch.setattr("prism_motor.runs.provenance.package_version", lambda _, v=version: v)
        write(tmp_path / name, seed=seed, rows=solved(4))
    (note,) = notes(tmp_path)
    assert note == (
        "metaworld reach-v3, preset state: trained with several versions of lerobot "
        "(0.4.4: one; 0.6.1: three, two)."
    )


def test_a_damaged_campaign_is_named(tmp_path):
    write(tmp_path / "one", rows=solved(4))
    (tmp_path / "campaign.json").write_text('{"kind": "manipulation"}')
    assert "is not the record of a campaign" in notes(tmp_path)[0]


def test_evaluations_of_other_weights_are_not_mixed(tmp_path):
    write(tmp_path / "one", rows={**solved(4), "delay": [{}]})
    file = tmp_path / "one" / "evaluations" / "delay-101.json"
    edit_json(file, policy_sha256="cd" * 32)
    (run,) = collect(tmp_path).runs
    assert run.evaluations == ()
    assert "of 2 different policies" in notes(tmp_path)[0]


def test_what_is_left_out_is_said(tmp_path):
    write(tmp_path / "half", done=10, rows=solved(4))
    write(tmp_path / "fresh", seed=2)
    write(tmp_path / "cubic", seed=3, rows=solved(1), degree=3)
    (tmp_path / "cubic" / "evaluations" / "delay-1.json").write_text("{")
    assert "cubic/evaluations/delay-1.json is left out" in notes(tmp_path)[0]
    rows = chapters(tmp_path)["metaworld reach-v3, preset state"].main.rows
    assert [(row[0].text, row[0].detail) for row in rows] == [
        (
            "prism, degree 2",
            "0 of 3 seeds, 0 episodes; 1 at 50%, 2 not evaluated, 3 missing",
        ),
        ("prism, degree 3", "1 of 3 seeds, 4 episodes; 1 missing, 2 missing"),
    ]


@pytest.mark.parametrize("walking", [False, True])
def test_the_page_shows_them_alone_and_beside_walking(tmp_path, walking, capsys):
    write(tmp_path / "reach", rows=solved(3))
    (tmp_path / "reach" / "videos").mkdir()
    (tmp_path / "reach" / "videos" / "none-101-00.mp4").write_bytes(b"video")
    if walking:
        write_run(tmp_path / "walk", rows={"nominal": [{}, {}]})
    made = write_report(tmp_path)
    page = made.page.read_text()
    assert "metaworld reach-v3, preset state" in page
    assert ("Task: laptop (g1)" in page) == walking
    assert "prism, state, reach-v3, seed 1" in page  # below its video
    assert "metaworld reach-v3" in made.markdown.read_text()
    data = json.loads(made.data.read_text())
    section = data["sections"][-1]
    assert section["kind"] == "manipulation"
    assert section["arms"][0]["conditions"]["none"]["episodes"]["success"] == 3
    assert section["runs"][0]["evaluations"][0]["episodes"] == 4
    assert not any("reach" in problem for problem in made.problems)
    main(["report", str(tmp_path)])
    assert "75.0" in capsys.readouterr().out


def test_a_folder_without_runs_is_still_an_error(tmp_path):
    with pytest.raises(RunError, match="no training run that can be reported"):
        write_report(tmp_path)
