"""PRISM: learned products of what a robot senses, as one small layer for any policy.

``prism_motor.nn`` needs only torch. Everything else needs an extra, and says so if it is missing.
``prism_motor.nn`` is loaded on first use, so that the command line can set thread counts before
torch reads them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from prism_motor import _alias
from prism_motor._checks import InputError, PrismError
from prism_motor._version import __version__

if TYPE_CHECKING:
    from types import ModuleType

    from prism_motor import nn

__all__ = ["InputError", "PrismError", "__version__", "nn"]


def __getattr__(name: str) -> ModuleType:
    if name == "nn":
        return importlib.import_module("prism_motor.nn")
    raise AttributeError(f"module 'prism_motor' has no attribute {name!r}")


_alias.install()
