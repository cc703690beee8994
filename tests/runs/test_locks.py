"""Locks: one owner at a time, released however it ends, and respected across machines."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from prism_motor.runs import locks
from prism_motor.runs.locks import Lock, LockedError, try_lock

REFUSAL = "taken by {owner}"

SCRIPT = """
import sys, time
from pathlib import Path
from prism_motor.runs.locks import Lock
lock = Lock(Path(sys.argv[1]), "{owner}").acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_the_second_is_refused_until_the_first_lets_go(tmp_path):
    path = tmp_path / ".lock"
    first, second = Lock(path, REFUSAL), Lock(path, REFUSAL)
    with first:
        assert first.held
        assert first.acquire() is first
        with pytest.raises(LockedError, match=rf"taken by process {os.getpid()} on \S+"):
            second.acquire()
        assert not second.held
    assert not path.exists()
    with second:
        assert second.held
    first.release()  # no longer its own


def test_kill_9_releases_it(tmp_path):
    path = tmp_path / ".lock"
    owner = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "held\n"
    with pytest.raises(LockedError, match=f"process {owner.pid}"):
        Lock(path, REFUSAL).acquire()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert path.exists()
    with Lock(path, REFUSAL):
        assert json.loads(path.read_text())["process"] == os.getpid()


def test_an_owner_on_another_machine_counts_while_it_gives_signs_of_life(tmp_path):
    path = tmp_path / ".lock"
    path.write_text(json.dumps({"process": 7, "host": "node-12"}))
    with pytest.raises(LockedError, match="process 7 on node-12"):
        Lock(path, REFUSAL).acquire()
    past = path.stat().st_mtime - 2 * locks._SILENCE
    os.utime(path, (past, past))
    with Lock(path, REFUSAL) as lock:
        assert lock.held


def test_without_locks_of_the_file_system_a_living_process_here_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "try_lock", lambda file: None)
    path = tmp_path / ".lock"
    for process, alive in ((os.getppid(), True), (2**22 + 1, False)):
        path.write_text(json.dumps({"process": process, "host": socket.gethostname()}))
        if alive:
            with pytest.raises(LockedError, match=f"process {process}"):
                Lock(path, REFUSAL).acquire()
        else:
            with Lock(path, REFUSAL) as lock:
                assert lock.held


def test_systems_without_locks_do_without_them(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    path = tmp_path / ".lock"
    with Lock(path, REFUSAL), Lock(path, REFUSAL):
        assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"process": "x"}', "\x00" * 20])
def test_a_damaged_lock_file_of_nobody_does_not_stand_in_the_way(tmp_path, text):
    path = tmp_path / ".lock"
    path.write_text(text)
    with Lock(path, REFUSAL) as lock:
        assert lock.held


def test_signs_of_life_are_given(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_BEAT", 0.01)
    path = tmp_path / ".lock"
    with Lock(path, REFUSAL):
        past = path.stat().st_mtime - 1000
        os.utime(path, (past, past))
        for _ in range(500):
            if path.stat().st_mtime > past + 500:
                break
            signal.sigtimedwait([], 0.01)
        assert path.stat().st_mtime > past + 500


def test_a_file_is_locked_as_long_as_it_is_open(tmp_path):
    with (tmp_path / "log").open("a") as one, (tmp_path / "log").open("a") as two:
        assert try_lock(one) is True
        assert try_lock(two) is False
