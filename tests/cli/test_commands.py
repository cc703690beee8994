"""The ``prism`` command: what it finds, and how it says that something went wrong."""

import errno
import subprocess
import sys

import pytest

from prism_motor import __version__
from prism_motor._checks import InputError
from prism_motor.cli import main
from prism_motor.cli.commands import COMMANDS, RENAMED, Command, describe


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def exit_code(*words):
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return stopped.value.code


@pytest.fixture
def raising(monkeypatch):
    """Add a command that raises what it is given."""

    def add(error):
        def call(self, name, words, plugins):
            raise error

        monkeypatch.setattr(Command, "call", call)

    return add


def test_help_lists_every_command_by_group(capsys):
    for words in ([], ["--help"], ["-h"]):
        main(words)
        assert capsys.readouterr().out.strip() == describe()
    for name, command in COMMANDS.items():
        assert f"  {name:<10} {command.help}" in describe()
        assert f"{command.group}:" in describe()


def test_version(capsys):
    for flag in ("--version", "-V"):
        main([flag])
        assert capsys.readouterr().out == f"prism {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_and_version_need_neither_torch_nor_tyro(words):
    code = (
        "import sys; from prism_motor.cli import main\n"
        f"main({words})\n"
        "assert not {'torch', 'numpy', 'tyro', 'mujoco'} & set(sys.modules), sorted(sys.modules)"
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_every_command_can_be_found():
    from prism_motor._registry import resolve

    for command in COMMANDS.values():
        assert callable(resolve(f"prism_motor.cli.{command.place}")), command.place
    assert not RENAMED.keys() & COMMANDS.keys()
    assert set(RENAMED.values()) <= COMMANDS.keys()


def test_an_unknown_command_names_the_nearest(capsys):
    assert exit_code("parms") == 2
    assert "Unknown command 'parms'" in (said := capsys.readouterr().err)
    assert "Did you mean 'params'?" in said


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_renamed_command_says_its_new_name_and_works(old, new, capsys):
    assert exit_code(old, "--help") == 0
    output = capsys.readouterr()
    assert f"prism {old} is now called prism {new}." in output.err
    assert f"usage: prism {new}" in output.out


def test_a_mistake_of_the_user_is_one_message(raising, capsys, monkeypatch):
    raising(InputError("Too many legs: give at most 4."))
    monkeypatch.delenv("PRISM_TRACEBACK", raising=False)
    assert exit_code("info") == 2
    assert capsys.readouterr().err == "prism: error: Too many legs: give at most 4.\n"
    monkeypatch.setenv("PRISM_TRACEBACK", "1")
    assert exit_code("info") == 2
    assert "Traceback" in capsys.readouterr().err


def test_what_the_system_refuses_is_one_message_too(raising, capsys):
    raising(OSError(errno.ENOSPC, "No space left on device", "runs/one"))
    assert exit_code("info") == 2
    said = "runs/one: No space left on device. Free some space on the disk and try again."
    assert capsys.readouterr().err == f"prism: error: {said}\n"


@pytest.mark.parametrize(
    "error", [ValueError("math"), KeyError("x"), AssertionError(), OSError(errno.EBADF, "Bad")]
)
def test_anything_else_is_a_bug_with_its_traceback(raising, capsys, error):
    raising(error)
    assert exit_code("info") == 1
    said = capsys.readouterr().err
    assert f"{type(error).__name__}" in said
    assert "Traceback" in said
    assert "this is a bug in prism" in said
    assert said.rstrip().endswith("prism info")


def test_ctrl_c_exits_with_130(raising, capsys):
    raising(KeyboardInterrupt())
    assert exit_code("info") == 130
    assert capsys.readouterr().err == ""


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m prism_motor.cli params | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("network")
    assert result.stderr == ""


def test_without_tyro_the_command_names_the_extra():
    code = (
        "import sys; sys.modules['tyro'] = None; from prism_motor.cli import main; main(['info'])"
    )
    result = python(code)
    assert result.returncode == 2
    assert "prism-motor[cli]" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [["params"], ["--tyro-print-completion", "bash"]])
def test_without_numpy_a_command_names_the_extra(words):
    code = (
        f"import sys; sys.modules['numpy'] = None; from prism_motor.cli import main\nmain({words})"
    )
    result = python(code)
    assert result.returncode == 2, result.stderr
    assert "pip install 'prism-motor[locomotion]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_plugin_is_loaded_before_any_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "hello_plugin.py").write_text("print('a plugin says hello')\n")
    monkeypatch.chdir(tmp_path)
    main(["params", "--json", "--plugin", "hello_plugin"])
    assert "a plugin says hello" in capsys.readouterr().out
    main(["--plugin", "hello_plugin", "params", "--json"])  # or before the command
    assert exit_code("params", "--plugin", "nowhere_plugin") == 2
    assert "no plugin module 'nowhere_plugin'" in capsys.readouterr().err
    assert exit_code("params", "--plugin") == 2
    assert "--plugin needs a value" in capsys.readouterr().err
