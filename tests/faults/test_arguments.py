"""Arguments of every shape end with exit code 0 or 2, without a traceback."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_motor.cli import main
from prism_motor.cli.commands import all_commands
from prism_motor.train import session

from .sizes import fuzz
from .values import base

WORDS = [
    "-1", "0", "1e400", "nan", "inf", "x", "", "²", "9" * 5000, "1_0", "0x10", "../../x",
    "g1-prism", "nowhere", "--help", "-h", "--", "-", "=", "--=", "--seed", "--out", "--plugin",
    "--resume",
    "--config", "--checkpoint", "--preset", "--arm", "--label", "--set", "--set=a=b", "--jobs",
    "--seed=-1", "--envs=0", "--processes=x", "--seconds=nan", "--updates", "--video-every=0",
    "--conditions", "--seeds", "--episodes=0", "--until=x", "--command", "--ppo.gamma=-1",
    "--critic-hidden", "--task.gait.offsets", "--degree=0", "--version", "--tyro-print-completion",
    "smoke", "run", "status", "locomotion", "manipulation", "table1-g1", "{}", "a\nb", "é",
]  # fmt: skip
NAMES = [name for name in all_commands() if name != "libero"]
LAST = ["--no-such-flag", "--no-such-flag=1", "--help"]
"""What every line ends with, so that nothing is ever started."""


def exit_code(words):
    """Run ``prism`` in this process and in an empty folder."""
    here = Path.cwd()
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    try:
        main(list(words))
    except SystemExit as stop:
        return stop.code or 0
    finally:
        os.chdir(here)
        shutil.rmtree(folder)
    return 0


LINES = st.tuples(
    st.one_of(st.sampled_from(NAMES), st.sampled_from(WORDS)),
    st.lists(st.sampled_from(WORDS), max_size=4),
    st.sampled_from(LAST),
).map(lambda parts: [parts[0], *parts[1], parts[2]])


def test_arguments_end_with_0_or_2():
    @fuzz(50, 1500)
    @given(LINES)
    def check(words):
        assert exit_code(words) in (0, 2), words

    check()


def flags():
    return [f"--{key.replace('_', '-')}" for key in base("locomotion")[1] if "." in key]


def test_values_of_flags_end_with_0_or_2():
    @fuzz(25, 600)
    @given(st.sampled_from(flags()), st.sampled_from(WORDS), st.booleans())
    def check(flag, value, joined):
        given_ = [f"{flag}={value}"] if joined else [flag, value]
        assert exit_code(["train", "locomotion", *given_, "--envs", "0"]) in (0, 2), given_

    check()


@pytest.mark.parametrize("flag", ["--seed", "--preset", "--arm", "--actor", "--label", "--envs"])
def test_what_a_resumed_run_keeps_cannot_be_given(flag, capsys, tmp_path):
    from tests.train.cases import make_walking

    session.start(make_walking(), tmp_path / "run")
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--resume", str(tmp_path / "run"), flag, "7"])
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert flag in shown
    assert "--resume" in shown
