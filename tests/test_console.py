"""What people see in a terminal."""

import pytest

from prism_motor._console import (
    Progress,
    available_cores,
    count,
    duration,
    file_size,
    text_table,
)


def test_the_first_column_is_flush_left_and_the_others_right():
    text = text_table([["", "a", "long"], ["name", "12", "3"], ["x", "", ""]])
    assert text.split("\n") == ["       a  long", "name  12     3", "x"]


def test_more_columns_of_words_may_be_flush_left():
    text = text_table([["a", "b", "c"], ["one", "two", "3"], ["x", "y", "10"]], numbers_from=2)
    assert text.split("\n") == ["a    b     c", "one  two   3", "x    y    10"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (40, "40 s"), (89, "89 s"), (91, "2 min"), (720, "12 min"),
     (11100, "3 h 05 min"), (3600 * 1234 + 1700, "1,234 h")],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_sizes():
    assert [file_size(n) for n in (0, 3_000, 2_460_000)] == ["0 kB", "3 kB", "2.5 MB"]


def test_plurals():
    assert [count(n, "run") for n in (0, 1, 2, 1234)] == ["0 runs", "1 run", "2 runs", "1,234 runs"]
    assert count(2, "process", "processes") == "2 processes"


def test_progress_prints_lines_where_there_is_no_terminal(capsys):
    with Progress("Walking", 3, every=0.0) as progress:
        progress.step("one")
        progress.say("a word in between")
        progress.step("three", 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Walking: 1/3  one  left ")
    assert lines[1] == "a word in between"
    assert lines[2].startswith("Walking: 3/3  three  (")


def test_lines_come_now_and_then_and_at_the_end(capsys):
    with Progress("", 100, every=60.0) as progress:
        for _ in range(100):
            progress.step()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("100/100")


def test_there_is_at_least_one_core():
    assert available_cores() >= 1
