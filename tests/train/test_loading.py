"""Trained runs of every domain, opened to load their policies."""

import pytest

from prism_motor.runs import Run, RunError
from prism_motor.train.loading import open_trained


def test_a_run_is_opened_with_the_checkpoint_that_is_asked_for(case, whole):
    newest, earlier = open_trained(whole, case.name), open_trained(whole, case.name, 2)
    assert (newest.checkpoint.step, earlier.checkpoint.step) == (Run.open(whole).load().step, 2)
    assert (newest.path, newest.config) == (whole, case.make())


def test_a_run_of_another_domain_is_refused(case, whole):
    with pytest.raises(RunError, match=rf"is a {case.name} run, but this needs a flying run"):
        open_trained(whole, "flying")


def test_weights_that_do_not_fit_are_an_error_about_the_run(case, whole):
    run = open_trained(whole, case.name)
    told = r"checkpoint 6 of .*whole.* does not fit the actor that its config.json describes: size"
    with pytest.raises(RunError, match=told), run.loading("actor"):
        raise RuntimeError("size mismatch")
    with pytest.raises(RunError, match=r"^as it was$"), run.loading("actor"):
        raise RunError("as it was")
