"""The old import name: ``prism.x`` still finds ``prism_motor.x``.

The package was first called ``prism``, a name that dozens of other distributions install too.
Strings such as ``prism.integrations.rsl_rl:GatedModel`` in training configs keep working once
``prism_motor`` is imported; a real package called ``prism`` wins.
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
    """Finds modules under the old name when nothing else does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for ``prism`` and what is below it, as long as that is ours."""
        if fullname != _OLD and not fullname.startswith(f"{_OLD}."):
            return None
        parent = fullname.rpartition(".")[0]
        if parent and not sys.modules[parent].__name__.startswith(_NEW):
            return None
        try:
            importlib.import_module(_NEW + fullname.removeprefix(_OLD))
        except ModuleNotFoundError:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module under its new name: one module, two names."""
        module = sys.modules[_NEW + spec.name.removeprefix(_OLD)]
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back; it ran when it was first imported."""
        module.__spec__ = self._own


def install() -> None:
    """Make the old name known, after every other way to find a module."""
    if not any(isinstance(finder, _OldName) for finder in sys.meta_path):
        sys.meta_path.append(_OldName())
