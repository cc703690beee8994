"""Without its library, an integration says what to install."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("integration", "missing", "command"),
    [
        ("rsl_rl", "rsl_rl.models", r"pip install 'prism-motor\[locomotion\]'"),
        ("rsl_rl", "tensordict", r"pip install 'prism-motor\[locomotion\]'"),
        ("stable_baselines3", "gymnasium", r"pip install 'prism-motor\[sb3\]'"),
        ("mjlab", "mjlab.rl", "pip install mjlab"),
    ],
)
def test_missing_library_is_named(integration, missing, command, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"prism_motor.integrations.{integration}", raising=False)
    with pytest.raises(
        ImportError, match=rf"prism_motor\.integrations\.{integration} needs.*{command}"
    ):
        importlib.import_module(f"prism_motor.integrations.{integration}")
