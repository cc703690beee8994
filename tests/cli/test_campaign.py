"""Errors and options of ``prism campaign``, as people see them."""

import pytest

from prism_motor.cli import main
from prism_motor.cli.campaign import parse_duration


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["status", "tabel1"], "Did you mean 'table1'"),
        (["stauts", "table1"], "Did you mean 'status'"),
        (["run", "smoke", "--until", "soon"], "45m"),
        (["run", "smoke", "--jobs", "0"], "--jobs must be from 1"),
        (["run", "smoke", "--preset", "labtop"], "Did you mean 'laptop'"),
        (["run", "smoke", "--reuse", "nowhere"], "No such folder to reuse runs from: nowhere"),
        (["report", "smoke", "--reference", "mpl"], "Did you mean 'mlp'"),
        (["run", "smoke", "--plugin", "no_such_module"], "no_such_module"),
    ],
)
def test_errors_say_what_to_do(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["campaign", *words])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_the_help_names_the_commands_and_the_campaigns(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["campaign", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "prism campaign status FILE" in shown
    assert "table1" in shown


def test_status_of_a_campaign_that_has_not_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["campaign", "status", "smoke", "--plugin", "colorsys"])
    assert "in campaigns/smoke-laptop" in capsys.readouterr().out
    assert not any(tmp_path.iterdir())


def test_durations():
    assert [parse_duration(text) for text in ("45m", "1h30m", "90s", "2h")] == [
        2700, 5400, 90, 7200,
    ]  # fmt: skip
    for text in ("", "45", "m", "1.5h", "soon"):
        with pytest.raises(ValueError, match="45m"):
            parse_duration(text)
