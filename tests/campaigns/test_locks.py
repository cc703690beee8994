"""Locks: one runner at a time, and as long as a job lives; logs say how jobs ended."""

import subprocess
import sys

import pytest

from prism_motor.campaigns.config import CampaignError
from prism_motor.campaigns.locks import (
    has_failed,
    hold,
    is_locked,
    mark_end,
    read_tail,
    try_lock,
)


def test_only_one_runner_at_a_time(tmp_path):
    with (
        hold(tmp_path / "a"),
        pytest.raises(
            CampaignError, match=r"already being run by process \d+ on .*prism campaign status"
        ),
        hold(tmp_path / "a"),
    ):
        pass
    with hold(tmp_path / "a"), hold(tmp_path / "b"):
        pass
    assert not is_locked(tmp_path / "a" / ".lock")


def test_a_lock_lives_as_long_as_the_child_that_inherited_it(tmp_path):
    path = tmp_path / "log"
    with path.open("a") as file:
        assert try_lock(file)
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=file
        )
    assert is_locked(path)
    child.communicate(b"\n")
    assert not is_locked(path)


def test_a_log_says_how_its_job_ended(tmp_path):
    log = tmp_path / "log"
    assert not has_failed(log)
    log.write_text("one\ntwo\nthree\n")
    assert not has_failed(log)  # it still runs, or was killed
    for code, failed in ((2, True), (130, False), (-9, True), (0, False)):
        mark_end(log, code)
        assert has_failed(log) == failed
    assert read_tail(log, 2) == ["two", "three"]
