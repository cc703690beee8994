import importlib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "extend"


@pytest.fixture(autouse=True)
def plugin(monkeypatch):
    """Load a module of the examples by name, as ``--plugin`` does."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module
