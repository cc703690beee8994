"""The keyboard: single keys in a terminal, lines elsewhere."""

import os
import pty
import threading
import time

import pytest

from prism_motor.pilots import PilotError
from prism_motor.pilots.keys import SPACE, Keys
from tests.pilots.conftest import Script


def test_lines_are_keys_without_a_terminal():
    with Script("", "Success", "x", "f", "3", "a loose cable", "s") as keys, keys:
        assert not keys.single
        assert keys.poll() == SPACE
        assert keys.wait("sf") == "s"
        assert keys.wait("sf") == "f"  # x is nothing that was asked for
        assert keys.wait("123456") == "3"
        assert keys.ask("Why?") == "a loose cable"
        keys.forget()  # a script is not forgotten
        assert keys.wait("s") == "s"
        assert keys.poll() is None


def test_the_end_of_input_is_one_message():
    reading, writing = os.pipe()
    os.close(writing)
    for ask in (lambda keys: keys.wait("s"), lambda keys: keys.ask("Why?")):
        with pytest.raises(PilotError, match="The keyboard is gone"):
            ask(Keys(reading))
    os.close(reading)


def test_a_terminal_gives_single_keys_and_is_left_as_it_was():
    import termios

    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with Keys(theirs) as keys:
        assert keys.single
        assert keys.poll() is None
        os.write(ours, b" S")
        time.sleep(0.05)
        assert (keys.poll(), keys.poll()) == (SPACE, "s")
        os.write(ours, b"ssss")
        time.sleep(0.05)
        keys.forget()
        assert keys.poll() is None
        # A question takes a whole line, then keys are single again.
        threading.Timer(0.1, os.write, (ours, b"motor 3 is hot\n")).start()
        assert keys.ask("Why?") == "motor 3 is hot"
        os.write(ours, b"f")
        assert keys.wait("f") == "f"
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_something_is_done_while_waiting():
    with Script() as keys:
        calls = []

        def meanwhile():
            calls.append(1)
            if len(calls) == 2:
                keys._typed += b"s\n"

        assert keys.wait("s", meanwhile) == "s"
        assert len(calls) == 2
