"""What people see: the table of a campaign, and few plain lines without a terminal."""

from prism_motor.campaigns.status import Display, describe_status

from .conftest import campaign, tuned


def test_status_shows_every_run_and_an_estimate(trained):
    text = describe_status(campaign(), trained, jobs=2)
    rows = [line.split("  ") for line in text.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert ["mlp", "trained, 0 of 1 evaluation", "missing"] in cells
    assert ["prism", "stopped at 50 %", "missing"] in cells
    assert "0 of 4 runs done; about" in text
    assert "No runner is active." in text


def test_status_of_a_campaign_that_has_not_begun(tmp_path):
    text = describe_status(tuned("locomotion"), tmp_path / "none", jobs=2)
    assert "0 of 2" in text
    assert "no training has started" in text
    assert not (tmp_path / "none").exists()


def test_status_lines_without_a_terminal_are_few_and_plain(capsys):
    display = Display(every=3600.0)
    for _ in range(3):
        display.status(lambda: "half done")
    display.shown = float("-inf")
    display.status(lambda: "nearly done")
    display.event("done")
    assert capsys.readouterr().out == "nearly done\ndone\n"
