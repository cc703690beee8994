"""Goals become skills in an order that works."""

import pytest

from prism_motor.manipulation.environment import NoExpertError
from prism_motor.manipulation.suites.libero.experts.expert import ProgramStep, derive_program


def test_putting_is_one_step():
    goals = [("on", "akita_black_bowl_1", "plate_1")]

    assert derive_program(goals) == (ProgramStep("put", "akita_black_bowl_1", "plate_1"),)


def test_what_must_be_closed_at_the_end_is_closed_last():
    goals = [("close", "cabinet_drawer"), ("in", "bowl", "cabinet_drawer")]

    assert derive_program(goals) == (
        ProgramStep("put", "bowl", "cabinet_drawer"),
        ProgramStep("close", "cabinet_drawer"),
    )


def test_a_closed_drawer_is_opened_before_something_goes_in():
    program = derive_program([("in", "bowl", "drawer")], closed=["drawer"])

    assert program == (ProgramStep("open ajar", "drawer"), ProgramStep("put", "bowl", "drawer"))


def test_things_keep_the_order_of_the_goal():
    goals = [("in", "soup", "basket"), ("in", "cheese", "basket"), ("turnon", "stove")]

    assert [step.thing for step in derive_program(goals)] == ["stove", "soup", "cheese"]


def test_an_unknown_predicate_is_named():
    with pytest.raises(NoExpertError, match=r"'turnoff'.*turnon.*close"):
        derive_program([("turnoff", "stove")])
