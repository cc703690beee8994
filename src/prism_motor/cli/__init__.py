"""The ``prism`` command; a subcommand's module is imported when it is called."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from prism_motor._checks import BugError, check_choice, find_mistake
from prism_motor._extras import missing_extra
from prism_motor._processes import end_with_starter, exit_code, on_stop, raise_stopped
from prism_motor.cli.commands import COMMANDS, RENAMED, Command, all_commands, describe


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``prism`` command.

    A user's mistake becomes one message and exit code 2; anything else is a bug and comes with a
    traceback. Termination and hang-up end a command in order, like Ctrl-C.

    Args:
        arguments: Arguments after ``prism``; default: those of this process.
    """
    # Idle OpenMP threads must not spin while simulation threads work; torch reads this once.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    end_with_starter()
    try:
        with on_stop(raise_stopped):
            _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt as stop:
        sys.exit(exit_code(stop))
    except BrokenPipeError:  # `prism info | head` is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        mistake = find_mistake(error)
        if mistake is None:
            _report_bug(error)
        else:
            _fail(error, mistake)


def _dispatch(words: list[str]) -> None:
    """Load the user's plugins, find the subcommand, and call it."""
    from prism_motor._plugins import load_plugins
    from prism_motor.cli.flags import take

    plugins = take(words, "--plugin")
    if plugins:
        load_plugins(plugins)
    if not words or words[0] in ("-h", "--help"):
        print(describe())
        return
    if words[0] in ("-V", "--version"):
        from prism_motor._version import __version__

        print(f"prism {__version__}")
        return
    try:
        import tyro  # noqa: F401 - fail early with a clear message
    except ImportError as error:
        raise missing_extra("The prism command", "cli", error) from error
    try:
        _call(words, plugins)
    except ModuleNotFoundError as error:
        if error.name != "numpy":  # most modules need it, and only torch comes without an extra
            raise
        raise missing_extra("This command", "locomotion", error) from error


def _call(words: list[str], plugins: list[str]) -> None:
    """Call the subcommand, or make a completion script."""
    from prism_motor._plugins import load_plugins

    if completion := [word for word in words if word.startswith("--tyro-")]:
        from prism_motor.cli.completion import complete

        complete(words if words[0] in completion else completion)
        return
    name = words.pop(0)
    if name in RENAMED:
        print(f"prism {name} is now called prism {RENAMED[name]}.", file=sys.stderr)
        name = RENAMED[name]
    if name != "info":  # which must work even where an installed plugin fails
        load_plugins()
    find(name).call(name, words, plugins)


def find(name: str) -> Command:
    """Return a subcommand by name, or raise an error that names the nearest one."""
    if name in COMMANDS:
        return COMMANDS[name]
    known = all_commands()
    return known[check_choice("command", name, known)]


def _fail(error: Exception, message: str) -> None:
    if os.environ.get("PRISM_TRACEBACK"):
        traceback.print_exc()
    # What all processes of torchrun find, the first one says; values of its own, each of them.
    if os.environ.get("RANK", "0") == "0" or isinstance(error, FloatingPointError):
        print(f"prism: error: {message}", file=sys.stderr)
    sys.exit(2)


def _report_bug(error: Exception) -> None:
    if isinstance(error, BugError):
        print(error, file=sys.stderr)
    else:
        traceback.print_exc()
    print(
        "prism: this is a bug in prism, not your mistake. Please report it with the "
        "traceback above and the output of: prism info",
        file=sys.stderr,
    )
    sys.exit(1)
