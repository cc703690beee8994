"""The page about the paper: it is up to date, its rows have code, its commands exist."""

import dataclasses
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from prism_motor.analysis.study import find_studies
from prism_motor.cli import main
from prism_motor.cli.commands import all_commands
from prism_motor.cli.study import StudyOptions

DOCS = Path(__file__).parents[1] / "docs"


def _generator():
    spec = importlib.util.spec_from_file_location("paper_page", DOCS / "paper_page.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


page = _generator()
ROWS = page.read_rows()
PLACES = sorted({place for row in ROWS for place in row.code})
COMMANDS = sorted({row.command for row in ROWS if row.command})
CAMPAIGNS = [command for command in COMMANDS if command.startswith("prism campaign run")]


def test_the_page_is_made_from_the_data():
    written = (DOCS / "paper.md").read_text(encoding="utf-8")
    assert written == page.write_page(ROWS), "run: python docs/paper_page.py"


def test_a_row_is_a_row_of_its_table():
    """A bar in a formula would begin another cell."""
    lines = [line for line in page.write_page(ROWS).splitlines() if line.startswith("|")]
    cells = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines]
    assert cells.count(4) == len(ROWS) + 2 * len({row.part for row in ROWS})
    assert {*cells} == {3, 4}  # the summary has three
    assert any(r"\|tau" in line for line in lines)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says[:40])
def test_a_row_says_what_it_has_to(row):
    assert row.status in page.STATUSES
    assert row.code, "where is it?"
    if row.status in ("differs", "chosen", "absent"):
        assert row.note, "why?"


@pytest.mark.parametrize("place", PLACES)
def test_the_code_of_a_row_is_there(place):
    if place.startswith(("integrations.lerobot", "manipulation")):
        pytest.importorskip("lerobot", reason="manipulation needs LeRobot")
    page.resolve(place)


@pytest.mark.parametrize("place", ["nn:NoSuchLayer", "no_such_module:x", "docs/nothing.md"])
def test_code_that_is_gone_is_noticed(place):
    with pytest.raises((LookupError, AttributeError, ImportError)):
        page.resolve(place)


@pytest.mark.parametrize("command", CAMPAIGNS)
def test_a_campaign_of_the_paper_can_be_planned(command, tmp_path, monkeypatch, capsys):
    if any(name in command for name in ("libero40", "perturbed", "smolvla")):
        pytest.importorskip("lerobot", reason="manipulation needs LeRobot")
    monkeypatch.chdir(tmp_path)
    main(["campaign", "status", *command.split()[3:]])
    assert "paper" in capsys.readouterr().out


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in CAMPAIGNS])
def test_a_command_of_the_paper_exists_with_its_flags(command):
    _, name, *words = command.split()
    assert name in all_commands()
    known = {field.name for field in dataclasses.fields(StudyOptions)}
    for study in find_studies(name):
        known |= {field.name for field in dataclasses.fields(study.config)}
    for word in words:
        if word.startswith("--"):
            assert word[2:].replace("-", "_") in known
