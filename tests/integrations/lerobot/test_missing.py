"""Without LeRobot, the error says what to install."""

import importlib
import sys

import pytest


def test_missing_lerobot_is_named(monkeypatch):
    for name in [
        name for name in sys.modules if name.startswith("prism_motor.integrations.lerobot")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lerobot.configs.policies", None)
    command = r"prism_motor\.integrations\.lerobot needs lerobot.*'prism-motor\[manipulation\]'"
    with pytest.raises(ImportError, match=command):
        importlib.import_module("prism_motor.integrations.lerobot")
