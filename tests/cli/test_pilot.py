"""``prism pilot``: its words, and that mistakes end with one message."""

import pytest

from prism_motor.cli import main


def ends(*words):
    with pytest.raises(SystemExit) as stopped:
        main(["pilot", *map(str, words)])
    return stopped.value.code


def test_help_names_the_commands(capsys):
    assert ends("--help") == 0
    said = capsys.readouterr().out
    for name in ("plan", "run", "label", "report"):
        assert f"prism pilot {name} PILOT" in said
    assert ends() == 2
    assert ends("plan", "--help") == 0
    said = capsys.readouterr().out
    for part in ("--criterion", "--arm", "from 2 to 1000", "mcnemar"):
        assert part in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plam"], "Did you mean 'plan'?"),
        (["run", "nowhere"], "nowhere is no pilot's folder"),
        (["report", "nowhere"], "nowhere is no pilot's folder"),
        (["label", "nowhere", "--by", "ada"], "nowhere is no pilot's folder"),
        (["plan", "x", "--criterion", "it", "--robot.type", "y"], "--robot.type=VALUE"),
        (["plan", "x", "--criterion", "it", "--trials", "1"], "--trials must be from 2 to 1000"),
        (["plan", "x", "--criterion", "it", "--arm", "one"], "NAME=FOLDER"),
    ],
)
def test_a_mistake_is_one_message(words, message, capsys, tmp_path, monkeypatch):
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    monkeypatch.chdir(tmp_path)
    assert ends(*words) == 2
    said = capsys.readouterr().err
    assert said.count("prism: error:") == 1
    assert message in said
    assert not list(tmp_path.iterdir())
