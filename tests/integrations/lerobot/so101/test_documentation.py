"""What docs/so101-lerobot.md says is so."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from prism_motor.integrations.feetech import FAULTS
from prism_motor.integrations.lerobot.so101 import (
    SO101ClickEnv,
    SO101SimConfig,
    SO101SimLeaderConfig,
)

TEXT = (Path(__file__).parents[4] / "docs" / "so101-lerobot.md").read_text()
SETTINGS = TEXT.split("## The twin's settings")[1].split("\n## ")[0]


@pytest.mark.parametrize("config", [SO101SimConfig, SO101SimLeaderConfig, SO101ClickEnv])
def test_every_setting_is_documented(config):
    inherited = {field.name for field in fields(config.__mro__[1])} - {"task", "fps"}
    for field in fields(config):
        if field.name not in inherited:
            assert f"`{field.name}`" in SETTINGS, field.name


def test_defaults_are_those_of_the_settings():
    for field in fields(SO101SimConfig):
        row = re.search(rf"\| `{field.name}` \| `(.*?)` \|", SETTINGS)
        if row:
            default = getattr(SO101SimConfig(), field.name)
            shown = f"[{', '.join(default)}]" if isinstance(default, list) else str(default)
            assert row[1] == shown


def test_every_fault_is_documented():
    assert set(re.findall(r"^\| `([a-z-]+)` \|", TEXT.split("**Faults.**")[1], re.M)) == set(FAULTS)


def test_the_program_runs(capsys):
    program = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]
    exec(compile(program, "docs/so101-lerobot.md", "exec"), {"__name__": "documentation"})
    assert "follower" in capsys.readouterr().out
