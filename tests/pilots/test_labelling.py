"""Labels that a robot gives, and the second, blinded look at the videos."""

import pytest

from prism_motor._checks import InputError
from prism_motor.pilots import PilotError, TrialBook, look_again, read_plan, report_pilot, run_pilot
from prism_motor.pilots.labelling import judge_label, label_file, read_second
from tests.pilots.conftest import NAMES, Script


@pytest.fixture
def done(plan):
    folder = plan(trials=2, limit=0.3)
    run_pilot(folder)
    return folder


def test_every_video_is_looked_at_once_in_another_order(done, capsys):
    with Script("s", "f", ends=True) as keys, pytest.raises(PilotError, match="keyboard is gone"):
        look_again(done, "grace", keys)
    assert len(read_second(label_file(done, "grace"))) == 2  # each was saved at once
    with Script("u", "x", "s") as keys:
        assert look_again(done, "grace", keys) == 4
    said = capsys.readouterr().out
    labels = read_second(label_file(done, "grace"))
    assert sorted(one.trial for one in labels) == [1, 2, 3, 4]
    assert [one.success for one in labels] == [True, False, None, True]
    assert not any(one.revealed for one in labels)
    # Neither first labels nor arms are shown.
    for word in (*NAMES, "success by", "robot"):
        assert word not in said
    for one in labels:
        assert f"{one.trial:03d}-top.mp4" in said


def test_orders_differ_between_people(done):
    orders = []
    for name in ("grace", "alan", "edsger"):
        with Script(*"ssss") as keys:
            look_again(done, name, keys)
        orders.append([one.trial for one in read_second(label_file(done, name))])
    assert len({tuple(order) for order in orders}) > 1


def test_who_labelled_first_cannot_be_the_second(done):
    with Script() as keys, pytest.raises(InputError, match="somebody else"):
        look_again(done, "robot", keys)
    with Script() as keys, pytest.raises(InputError, match="cannot be the name of a labeller"):
        look_again(done, "../x", keys)


def test_a_look_after_the_report_is_marked(done):
    report_pilot(done)
    with Script(*"ssss") as keys:
        look_again(done, "grace", keys)
    assert all(one.revealed for one in read_second(label_file(done, "grace")))
    (found,) = report_pilot(done).results.agreements
    assert found.revealed == 4


def test_without_videos_there_is_nothing_to_look_at(plan):
    folder = plan()
    assert not TrialBook(folder, read_plan(folder)).trials
    with Script() as keys, pytest.raises(PilotError, match="no videos"):
        look_again(folder, "grace", keys)


@pytest.mark.parametrize(
    ("judged", "code"),
    [
        ({"success": True, "failure": None}, None),
        ({"success": False}, None),
        ({"success": False, "failure": "too light"}, 3),
        ({"success": False, "failure": "of another kind"}, None),
    ],
)
def test_a_robot_says_the_kind_of_a_failure_by_name(judged, code):
    label = judge_label(judged)
    assert (label.outcome == "success") == judged["success"]
    assert (label.by, label.code) == ("robot", code)
