"""What docs/lerobot.md says about the policies is so."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from prism_motor.integrations.lerobot import PrismDiffusionConfig, PrismSmolVLAConfig
from prism_motor.integrations.lerobot.conditioning import ConditionerFields

PAGE = (Path(__file__).parents[3] / "docs" / "lerobot.md").read_text()


def test_program_runs(capsys):
    program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    exec(compile(program, "docs/lerobot.md", "exec"), {"__name__": "documentation"})
    assert "PolynomialLayer(in_features=16, out_features=256" in capsys.readouterr().out


def test_every_field_of_the_conditioner_is_documented():
    for field in fields(ConditionerFields):
        assert f"`{field.name}`" in PAGE, field.name


def test_flags_are_fields():
    known = {field.name for field in (*fields(PrismDiffusionConfig), *fields(PrismSmolVLAConfig))}
    assert set(re.findall(r"--policy\.(\w+)", PAGE)) <= known | {"type", "path"}
