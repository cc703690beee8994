"""Flags from frozen dataclasses."""

from dataclasses import dataclass, field
from typing import Literal

import pytest

from prism_motor.cli.flags import field_docs, parse_together, peek, rename, take


@dataclass(frozen=True)
class Inner:
    """A section."""

    rate: float = 0.5
    """How fast."""
    sizes: tuple[int, ...] = (1, 2)
    """How large."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all have."""

    kind: str = "x"
    seed: int = 1
    """Where it
    begins."""


@dataclass(frozen=True, kw_only=True)
class Settings(Base):
    """What is set."""

    inner: Inner = field(default_factory=Inner)
    """The section."""
    on: bool = False
    """Whether it is on."""


@dataclass(frozen=True)
class Options:
    """How it is done."""

    out: str = "here"
    """Where to."""


def parse(*words, settings=None, hidden=("kind",)):
    return parse_together(
        Options, settings or Settings(), words, prog="test", description="A test.", hidden=hidden
    )


def test_only_what_differs_from_the_defaults_is_returned():
    assert parse() == (Options(), {})
    options, changes = parse("--out", "there", "--inner.rate", "0.25", "--inner.sizes", "3", "--on")
    assert options == Options("there")
    assert changes == {"inner.rate": 0.25, "inner.sizes": [3], "on": True}
    assert parse("--seed", "1")[1] == {}
    defaults = Settings(seed=7, inner=Inner(rate=0.1))
    assert parse("--inner.rate", "0.5", settings=defaults)[1] == {"inner.rate": 0.5}


def test_help_shows_docstrings_and_the_defaults_of_this_config(capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("--help", settings=Settings(seed=42))
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for text in ("Where to.", "How fast.", "Where it begins.", "(default: 42)", "--on", "A test."):
        assert text in shown
    assert "--kind" not in shown


def test_an_unknown_flag_names_the_nearest_and_exits_with_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("--inner.rat", "3")
    assert stopped.value.code == 2
    assert "--inner.rate" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        parse("--kind", "y")
    assert stopped.value.code == 2


@dataclass(frozen=True)
class Told:
    """Where to go."""

    command: tuple[float, float, float] | Literal["random"] = (0.5, 0.0, 0.0)
    """Velocities."""
    later: tuple[float, float] | Literal["never"] | None = None
    """More of them."""


@pytest.mark.parametrize("words", ["0.5 0", "0.5 0 x", "", "radnom", "random 1"])
def test_numbers_or_a_word_are_asked_for_in_words(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("--command", *words.split(), settings=Told())
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.replace("│", "").split())
    assert f"give 3 numbers, or random, not: {words or 'nothing'}" in said
    assert "typing" not in said


def test_numbers_or_a_word_are_read():
    for words, changes in (
        ("--command random", {"command": "random"}),
        ("--command 1 2 -3e-1 --later never", {"command": [1, 2, -0.3], "later": "never"}),
        ("--later 1 2", {"later": [1, 2]}),
        ("", {}),
    ):
        assert parse(*words.split(), settings=Told())[1] == changes


def test_docstrings_of_fields_include_those_of_bases():
    assert field_docs(Settings) == {
        "seed": "Where it begins.", "inner": "The section.", "on": "Whether it is on.",
    }  # fmt: skip


def test_flags_that_may_stand_anywhere():
    words = ["a", "--plugin", "one", "b", "--plugin=two"]
    assert peek(words, "--plugin") == "two"
    assert peek(words, "--other", "none") == "none"
    assert take(words, "--plugin") == ["one", "two"]
    assert words == ["a", "b"]
    with pytest.raises(ValueError, match="--plugin needs a value"):
        take(["--plugin"], "--plugin")


def test_former_names_are_replaced_and_noted(capsys):
    names = {"--old-name": "--new"}
    note = "{old} is now called {new}."
    for words, expected in (
        (["--old-name", "3"], ["--new", "3"]),
        (["--old_name=3"], ["--new=3"]),
        (["old-name", "--other"], ["old-name", "--other"]),
    ):
        assert rename(words, names, note=note) == expected
    assert capsys.readouterr().err == 2 * "--old-name is now called --new.\n"
