"""Trials on disk: which comes next, and what is void."""

from dataclasses import replace

import pytest

from prism_motor._checks import InputError
from prism_motor.pilots import PilotError, TrialBook, read_plan
from prism_motor.pilots.records import KILLED, Course, Label

DONE = Course(1.0, 30, 30.0, 0.04, "limit", None)


@pytest.fixture
def book(plan):
    folder = plan(trials=2)
    return TrialBook(folder, read_plan(folder))


def label(book, outcome, **more):
    trial = book.begin()
    done = replace(trial, course=DONE, label=Label(outcome, by="me", **more))
    book.write(done)
    return done


def test_void_needs_a_reason_and_only_failures_have_a_code():
    for reason in ("", "  "):
        with pytest.raises(InputError, match="needs a reason"):
            Label("void", by="me", reason=reason)
    assert Label("void", by="me", reason="cable").reason == "cable"
    with pytest.raises(InputError, match="Only a failure"):
        Label("success", by="me", code=1)
    with pytest.raises(InputError, match="1 to 6"):
        Label("failure", by="me", code=7)


def test_void_trials_are_repeated_at_the_end_in_their_order(book):
    first = label(book, "void", reason="cable")
    label(book, "success")
    third = label(book, "void", reason="camera")
    label(book, "failure", code=1)
    assert not book.finished
    assert book.total == 6
    again = label(book, "void", reason="cable again")
    assert (again.slot, again.repeats) == (first.slot, first.number)
    assert (again.arm, again.pose) == (first.arm, first.pose)
    assert label(book, "success").repeats == third.number
    last = label(book, "success")
    assert (last.slot, last.repeats) == (first.slot, again.number)
    assert book.finished
    # What is read is what was written.
    assert TrialBook(book.folder, book.plan).trials == book.trials


def test_a_killed_trial_is_void_with_that_reason(book):
    trial = book.begin()
    left = book.folder / "trials" / ".001-top.77.mp4"
    left.write_bytes(b"half a video")
    again = TrialBook(book.folder, book.plan)
    assert again.open == trial
    with pytest.raises(PilotError, match="no label"):
        again.begin()
    void = again.settle()
    assert void is not None
    assert void.label == Label("void", by="robot", reason=KILLED)
    assert not left.exists()
    assert again.settle() is None
    assert again.total == 5


def test_a_trial_that_ended_keeps_waiting_for_its_label(book):
    book.write(replace(book.begin(), course=DONE))
    assert book.settle() is None
    assert book.open is not None


def test_a_damaged_or_missing_record_is_one_message(book):
    label(book, "success")
    label(book, "success")
    file = book.folder / "trials" / "001.json"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(PilotError, match=r"001.json is missing or damaged"):
        TrialBook(book.folder, book.plan)
    file.unlink()
    with pytest.raises(PilotError, match="missing or damaged"):
        TrialBook(book.folder, book.plan)
