"""Errors of ``prism campaign`` and ``prism train --set``, as people see them."""

import pytest

from prism_motor.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["campaign", "status", "tabel1"], "Did you mean 'table1'"),
        (["campaign", "run", "smoke", "--until", "soon"], "45m"),
        (["campaign", "run", "smoke", "--jobs", "0"], "--jobs must be at least 1"),
        (["campaign", "run", "smoke", "--preset", "labtop"], "Did you mean 'laptop'"),
        (["campaign", "run", "smoke", "--reuse", "nowhere"], "no folder nowhere"),
        (["campaign", "report", "smoke", "--reference", "mpl"], "Did you mean 'mlp'"),
        (["campaign", "report", "smoke"], "There is no folder campaigns"),
        (["train", "locomotion", "--set", "ppo.rate=1"], "Unknown setting 'ppo.rate'"),
        (["train", "locomotion", "--set", "envs"], "KEY=VALUE"),
        (["train", "locomotion", "--envs", "8", "--set", "envs=8"], "not both"),
        (["train", "locomotion", "--degree", "3", "--set", "actor.degree=3"], "not both"),
        (["train", "locomotion", "--resume", "run", "--set", "envs=8"], "--set cannot be changed"),
    ],
)
def test_errors_say_what_to_do(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
