"""User modules that add robots, tasks, actors, suites, studies and domains.

A plugin is a Python module that registers things when it is imported. It is named by ``--plugin``
(a module, or a path ending in ``.py``), by a run's ``config.json``, by a campaign file, or by an
entry point in the group ``prism_motor.plugins``. A plugin is code: opening somebody else's run
executes the plugins that it names, if they are installed here or lie in the working directory.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from prism_motor._checks import InputError, PrismError, show

GROUP = "prism_motor.plugins"
"""Entry points in this group are plugins of installed packages."""

_asked: set[str] = set()
"""Names of plugins that were loaded before, or tried."""


def load_plugins(names: Iterable[str] = (), *, recorded: bool = False) -> None:
    """Import the plugins of installed packages, and the named ones.

    Args:
        names: Modules, or paths of files ending in ``.py``.
        recorded: Whether a file of settings names them, not the user; loading is then announced.
    """
    _load_installed()
    if not isinstance(names, list | tuple):
        raise InputError(f"plugins must be a list of modules, got {show(names)}.")
    for name in names:
        check_plugin(name)
        if recorded and name not in _asked:
            print(f"Loading the plugin {name}, which the settings name.", file=sys.stderr)
        _asked.add(name)
        _load(name)


def check_plugin(name: object) -> None:
    """Reject what is neither the name of a module nor the path of a Python file."""
    if not isinstance(name, str) or "\0" in name:
        parts = [""]
    elif name.endswith(".py"):
        parts = [Path(name).stem]
    else:
        parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise InputError(
            f"{show(name)} cannot be a plugin: give a module, like my_package.robots, or the path "
            "of a file, like plugins/my_robot.py."
        )


@cache
def _load_installed() -> None:
    for entry in metadata.entry_points(group=GROUP):
        entry.load()


@cache
def _load(name: str) -> None:
    """Import one plugin; modules in the working directory are found too."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(
                f"There is no plugin {name} here ({here}). Give its path, or run the command where "
                "the file is."
            )
        folder = str(path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        name = path.stem
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        raise InputError(
            f"There is no plugin module {name!r}. Give a module that Python can import from here "
            f"({here}), or the path of a .py file."
        )
    try:
        importlib.import_module(name)
    except PrismError:
        raise
    except Exception as error:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        raise PrismError(f"The plugin {name} failed:\n{''.join(lines)}") from error
