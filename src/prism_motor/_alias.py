"""The old import name: ``prism.x`` still finds ``prism_motor.x``.

The package was first called ``prism``, a name that dozens of other distributions install too.
Strings such as ``prism.integrations.rsl_rl:GatedModel`` in training configs keep working once
``prism_motor`` is imported; a real package called ``prism`` takes precedence.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

_OLD, _NEW = "prism", "prism_motor"


class _OldName(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules under the old name.

    Args:
        top: Whether it handles ``prism`` itself, or the modules below it.
    """

    def __init__(self, top: bool) -> None:
        self.top = top

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find ``prism`` or a module below it, as long as it is ours."""
        parent = fullname.rpartition(".")[0]
        if self.top:
            if fullname != _OLD:
                return None
        elif not fullname.startswith(f"{_OLD}.") or not _is_ours(sys.modules.get(parent)):
            return None
        try:
            module = importlib.import_module(_NEW + fullname.removeprefix(_OLD))
        except ModuleNotFoundError:
            return None
        package = hasattr(module, "__path__")
        return importlib.machinery.ModuleSpec(
            fullname, self, loader_state=module.__spec__, is_package=package
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module under its new name: one module, two names."""
        return sys.modules[_NEW + spec.name.removeprefix(_OLD)]

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec; its code ran when it was first imported."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def _is_ours(module: ModuleType | None) -> bool:
    return module is not None and module.__name__.partition(".")[0] == _NEW


def install() -> None:
    """Install the finders for the old name.

    The finder of ``prism`` comes last, so that a real package takes precedence. The finder of its
    submodules comes first: otherwise they would be found in our folder and imported twice.
    """
    if not any(isinstance(finder, _OldName) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldName(top=False))
        sys.meta_path.append(_OldName(top=True))
