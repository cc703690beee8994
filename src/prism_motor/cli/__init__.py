"""The ``prism`` command; a subcommand's module is imported when it is called."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

from prism_motor._checks import PrismError, check_choice
from prism_motor._extras import missing_extra
from prism_motor.cli.commands import COMMANDS, RENAMED, Command, all_commands, describe

# Raised for a full disk, a wrong path or missing permissions; other OSErrors are bugs.
_SYSTEM_ERRORS = (
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EEXIST,
    errno.ENOTDIR, errno.EISDIR, errno.EMFILE, errno.ENFILE, errno.EADDRINUSE, errno.ENAMETOOLONG,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``prism`` command.

    A user's mistake becomes one message and exit code 2; anything else is a bug and comes with a
    traceback.

    Args:
        arguments: Arguments after ``prism``; default: those of this process.
    """
    # Idle OpenMP threads must not spin while simulation threads work; torch reads this once.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `prism info | head` is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except PrismError as error:
        _fail(str(error))
    except OSError as error:
        if error.errno not in _SYSTEM_ERRORS:
            _report_bug()
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}")
    except Exception:
        _report_bug()


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


def _fail(message: str) -> None:
    if os.environ.get("PRISM_TRACEBACK"):
        traceback.print_exc()
    print(f"prism: error: {message}", file=sys.stderr)
    sys.exit(2)


def _report_bug() -> None:
    traceback.print_exc()
    print(
        "prism: this is a bug in prism, not your mistake. Please report it with the "
        "traceback above and the output of: prism info",
        file=sys.stderr,
    )
    sys.exit(1)
