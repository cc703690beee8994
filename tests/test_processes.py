"""Stop signals, and processes that end with their parent."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from prism_motor import _processes
from prism_motor._processes import (
    PARENT,
    Stopped,
    StopRequests,
    end_with_starter,
    exit_code,
    hold_signals,
    on_stop,
    raise_stopped,
    stop_signals,
)
from tests.faults.processes import wait_until_gone

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def test_exit_codes_are_those_of_shells():
    assert [exit_code(Stopped(number)) for number in STOPS] == [130, 143, 129]
    assert exit_code(KeyboardInterrupt()) == 130


@pytest.mark.parametrize("number", STOPS)
def test_handlers_hear_every_stop_signal_and_are_gone_afterwards(number):
    before = [signal.getsignal(one) for one in STOPS]
    heard = []
    with on_stop(heard.append):
        signal.raise_signal(number)
    assert heard == [number]
    with pytest.raises(Stopped) as stop, on_stop(raise_stopped):
        signal.raise_signal(number)
    assert stop.value.number == number
    assert [signal.getsignal(one) for one in STOPS] == before


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_in_a_finaliser_is_not_lost(number, capfd):
    class Finalised:
        def __del__(self):
            signal.raise_signal(number)

    def go_on(one):
        del one
        reached.append("the line where Python has dropped the exception")
        time.sleep(30)

    hook, reached = sys.unraisablehook, []
    with pytest.raises(Stopped) as stop, on_stop(raise_stopped):
        go_on(Finalised())
    assert reached
    assert stop.value.number == number
    assert sys.unraisablehook is hook
    assert "Traceback" not in capfd.readouterr().err


def test_other_errors_of_finalisers_are_shown_as_before(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: shown.append(dropped.exc_value))

    class Finalised:
        def __del__(self):
            raise ValueError("mine")

    one = Finalised()
    with on_stop(raise_stopped):
        del one
    assert [str(error) for error in shown] == ["mine"]


def test_under_nohup_a_hang_up_is_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in stop_signals()
        with StopRequests() as requests:
            signal.raise_signal(signal.SIGHUP)
        assert not requests.asked
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.SIGHUP in stop_signals()


def test_the_first_request_counts_and_only_a_second_ctrl_c_hurries():
    with StopRequests() as requests:
        assert requests.asked == 0
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert requests.asked == signal.SIGTERM
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
    with StopRequests() as requests:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert requests.asked == signal.SIGINT


def test_other_threads_change_no_handlers():
    before = signal.getsignal(signal.SIGINT)
    found = []

    def work():
        with on_stop(raise_stopped):
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


def test_held_signals_arrive_later_and_not_in_what_was_started_meanwhile():
    heard = []
    with on_stop(heard.append):
        with hold_signals():
            child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
        assert heard == [signal.SIGTERM]
    child.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert child.poll() is None
    child.communicate(b"\n", timeout=20)
    assert child.returncode == 0


CHILD = """
import os, sys, time
from prism_motor._processes import StopRequests, end_with_parent
end_with_parent(os.getppid(), float(sys.argv[1]))
with StopRequests() as requests:
    print("ready", flush=True)
    while not (requests.asked and sys.argv[2] == "saves"):
        time.sleep(0.05)
    open(sys.argv[3], "w").write(str(int(requests.asked)))
"""
PARENT_OF = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline(), child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize(
    ("grace", "behaviour", "saved"), [(30, "saves", True), (1, "hangs", False), (0, "saves", False)]
)
def test_a_process_whose_parent_is_killed_saves_and_ends(tmp_path, grace, behaviour, saved):
    file = tmp_path / "saved"
    words = (CHILD, str(grace), behaviour, str(file))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT_OF, *words], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert wait_until_gone([pid], seconds=10) == []
    assert file.exists() == saved
    if saved:
        assert file.read_text() == str(int(signal.SIGTERM))


def test_jobs_end_with_the_command_that_started_them_and_tell_nobody(monkeypatch):
    watched = []
    monkeypatch.setattr(_processes, "end_with_parent", watched.append)
    monkeypatch.setenv(PARENT, "123")
    end_with_starter()
    assert watched == [123]
    assert PARENT not in os.environ  # what this process starts has another parent
    end_with_starter()
    monkeypatch.setenv(PARENT, "no number")
    end_with_starter()
    assert watched == [123]
