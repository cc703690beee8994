"""The numbers and the page of a report, against computation by hand."""

import json
import re
from dataclasses import replace

import pytest
from scipy import stats

from prism_motor.pilots import TrialBook, read_plan, report_pilot
from prism_motor.pilots.labelling import SecondLabel, label_file
from prism_motor.pilots.plan import open_sealed
from prism_motor.pilots.records import Course, Label
from prism_motor.pilots.report import summarise
from prism_motor.runs import to_dict
from prism_motor.runs.atomic import write_json

# The paper's 3 of 10 against 9 of 10: at two poses both succeed, at seven only the second does.
QUILLON = [True, True, True, False, False, False, False, False, False, False]
BRACKISH = [True, True, False, True, True, True, True, True, True, True]


def fill(folder, outcomes, seconds=4.0, code=2):
    """Write labelled trials with given outcomes by arm and pose."""
    plan, sealed = read_plan(folder), open_sealed(folder)
    book = TrialBook(folder, plan)
    while not book.finished:
        trial = book.begin()
        success = outcomes[sealed.arm(trial.arm).name][trial.pose - 1]
        course = Course(
            seconds, 120, 30.0, 0.05, "key" if success else "limit", seconds if success else None
        )
        label = Label("success" if success else "failure", "ada", None if success else code)
        book.write(replace(trial, course=course, label=label))
    return plan, sealed, book


@pytest.fixture
def paper(plan):
    folder = plan(trials=10)
    fill(folder, {"quillon": QUILLON, "brackish": BRACKISH})
    return folder


def test_the_report_equals_computation_by_hand(paper):
    made = report_pilot(paper)
    reference, arm = made.results.arms
    assert (reference.name, arm.name) == ("quillon", "brackish")
    assert (reference.tally, arm.tally) == ((3, 10), (9, 10))
    assert reference.wilson == pytest.approx((0.1078, 0.6032), abs=1e-4)
    assert arm.wilson == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert arm.exact.low == pytest.approx(stats.beta.ppf(0.025, 9, 2))
    (one,) = made.results.comparisons
    assert one.pairs == (2, 7, 1, 0)
    assert one.mcnemar == pytest.approx(2 * (1 + 8) / 2**8)
    assert one.primary == one.mcnemar
    assert one.fisher == pytest.approx(0.0198, abs=5e-5)
    assert one.boschloo == pytest.approx(0.0080, abs=5e-5)
    assert one.difference == pytest.approx(0.6)
    assert one.interval.low < 0.6 < one.interval.high
    assert reference.failures == {2: 7}
    assert arm.success_times == (4.0,) * 9
    # The same numbers are in the files.
    data = json.loads((paper / "report.json").read_text())
    assert data["comparisons"][0]["mcnemar"] == one.mcnemar
    assert set(data["arms_by_letter"].values()) == {"quillon", "brackish"}
    text = (paper / "report.md").read_text()
    for part in ("0.07", "3/10", "9/10", "0.02", "0.008", "checkpoints, not methods"):
        assert part in text


def test_the_planned_test_decides(plan):
    folder = plan(trials=10, test="boschloo")
    fill(folder, {"quillon": QUILLON, "brackish": BRACKISH})
    made = report_pilot(folder)
    (one,) = made.results.comparisons
    assert one.primary == one.boschloo < 0.05 < one.mcnemar
    assert "succeeded more often than quillon" in made.findings[0][1]
    # With the paired test the same outcomes do not suffice.
    paired = plan(folder="paired", trials=10)
    fill(paired, {"quillon": QUILLON, "brackish": BRACKISH})
    assert "cannot tell it from quillon" in report_pilot(paired).findings[0][1]


def test_several_arms_are_adjusted_for(plan, policies, tmp_path):
    third = f"third={policies[1].partition('=')[2]}"
    folder = plan(arms=[*policies, third], trials=8)
    never, always = [False] * 8, [True] * 8
    fill(folder, {"quillon": never, "brackish": always, "third": [*always[:7], False]})
    made = report_pilot(folder)
    by_name = {made.results.arm(one.arm).name: one for one in made.results.comparisons}
    assert by_name["brackish"].mcnemar == pytest.approx(2 / 2**8)
    assert by_name["third"].mcnemar == pytest.approx(2 / 2**7)
    assert by_name["brackish"].primary == pytest.approx(2 * 2 / 2**8)  # Holm: the smaller one twice
    assert by_name["third"].primary == pytest.approx(2 / 2**7)


def test_void_and_missing_trials_leave_pairs_incomplete(plan):
    folder = plan(trials=4)
    book = TrialBook(folder, read_plan(folder))
    done = Course(1.0, 30, 30.0, 0.04, "limit", None)
    book.write(replace(book.begin(), course=done, label=Label("void", "ada", reason="cable")))
    for _ in range(3):
        book.write(replace(book.begin(), course=done, label=Label("success", "ada")))
    made = report_pilot(folder, unfinished=True)
    (one,) = made.results.comparisons
    assert sum(one.pairs) == 1
    assert one.incomplete == 3
    assert sum(arm.void for arm in made.results.arms) == 1
    (void,) = [table for table in made.tables if table.title == "Void trials"]
    assert [cell.text for cell in void.rows[0]][2] == "cable"
    assert (made.results.counted, made.results.planned) == (3, 8)


def test_agreement_with_a_second_look(paper):
    plan, sealed = read_plan(paper), open_sealed(paper)
    book = TrialBook(paper, plan)
    # The second person takes two failures for successes, and cannot see one trial.
    wrong = [trial.number for trial in book if trial.label.outcome == "failure"][:2]
    labels = [
        SecondLabel(
            trial.number,
            None
            if trial.number == 20
            else trial.label.outcome == "success" or trial.number in wrong,
            revealed=False,
            time="",
        )
        for trial in book
    ]
    file = label_file(paper, "grace")
    write_json(file, {"by": "grace", "labels": [to_dict(one) for one in labels]})
    (found,) = summarise(plan, sealed, book.trials, {"grace": labels}).agreements
    assert (found.compared, found.agreed, found.unclear) == (19, 17, 1)
    first = [t.label.outcome == "success" for t in book if t.number != 20]
    second = [one.success for one in labels if one.success is not None]
    chance = sum(first) / 19 * sum(second) / 19 + (19 - sum(first)) / 19 * (19 - sum(second)) / 19
    assert found.kappa == pytest.approx((17 / 19 - chance) / (1 - chance))
    made = report_pilot(paper)
    assert any(table.title == "Second look" for table in made.tables)


def test_the_page_is_self_contained_and_escapes_names(plan, policies):
    folder = plan(trials=2, criterion="<script>alert(1)</script>")
    fill(folder, {"quillon": [True, False], "brackish": [True, True]})
    page = report_pilot(folder).page.read_text()
    assert "<script>alert" not in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert page.count('class="mark success"') == 3
    assert page.count('class="mark failure"') == 1


@pytest.mark.slow
def test_the_page_in_a_browser(paper):
    from tests.viewer.browser import note_errors, open_page

    made = report_pilot(paper)
    with open_page() as page:
        errors = note_errors(page)
        for width in (1100, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(made.page.as_uri())
            assert page.locator(".mark.success").count() == 12
            assert page.locator("h1").inner_text() == "pilot"
            # Nothing is wider than the page: tables scroll inside their boxes.
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not errors
