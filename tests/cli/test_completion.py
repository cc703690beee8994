"""Shell completion knows all commands and the flags of every domain."""

import re
import shutil
import subprocess

import pytest

from prism_motor.cli import main
from prism_motor.cli.commands import all_commands


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_knows_commands_and_flags(shell, capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["--tyro-print-completion", shell])
    assert not stopped.value.code
    script = capsys.readouterr().out
    for name in all_commands():
        assert re.search(rf"\b{name}\b", script), name
    for word in ("train", "eval", "locomotion", "manipulation", "--ppo.learning-rate"):
        assert word in script
    for word in ("--optimiser.warmup", "--conditions", "--again", "--video-every", "--label"):
        assert word in script
    for name, ones in (("campaign", "run status report"), ("motions", "list check import make")):
        for one in ones.split():
            assert re.search(rf"prism[ _-]+{name}[ _-]+{one}\b|\b{one}\b", script)
    assert "--untuned" in script
    if shell == "bash" and shutil.which("bash"):
        file = tmp_path / "prism.sh"
        file.write_text(script)
        subprocess.run(["bash", "-n", str(file)], check=True)


def test_the_script_is_written_to_a_file(tmp_path):
    file = tmp_path / "_prism"
    with pytest.raises(SystemExit) as stopped:
        main(["--tyro-write-completion", "zsh", str(file)])
    assert not stopped.value.code
    assert file.read_text().startswith("#compdef prism")
