"""The old import name: ``prism.x`` finds ``prism_motor.x``, and a real ``prism`` wins."""

import subprocess
import sys

import pytest


def python(code, path=None):
    import os

    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), environment.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_both_names_are_one_module():
    code = """
import prism_motor
import prism, prism.nn, prism.nn.actors
import prism_motor.nn.actors
assert prism is prism_motor
assert prism.nn is prism_motor.nn
assert prism.nn.actors is prism_motor.nn.actors
assert prism_motor.nn.__spec__.name == "prism_motor.nn"
from prism.nn import PolynomialLayer
assert PolynomialLayer is prism_motor.nn.PolynomialLayer
assert PolynomialLayer.__module__ == "prism_motor.nn.polynomial"
import pickle, importlib
assert pickle.loads(b"cprism.nn.polynomial\\nPolynomialLayer\\n.") is PolynomialLayer
importlib.reload(prism_motor.nn.actors)
"""
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_class_names_in_configs_of_rsl_rl_resolve():
    pytest.importorskip("rsl_rl", reason="rsl_rl is not installed")
    code = """
import prism_motor
from rsl_rl.utils import resolve_callable
from prism_motor.integrations.rsl_rl import PrismModel, ResidualModel
assert resolve_callable("prism.integrations.rsl_rl:GatedModel") is PrismModel
assert resolve_callable("prism.integrations.rsl_rl:ResidualModel") is ResidualModel
"""
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_a_name_that_is_nowhere_is_missing_under_the_old_name_too():
    result = python("import prism_motor\nimport prism.nowhere")
    assert "No module named 'prism.nowhere'" in result.stderr


def test_a_real_package_of_that_name_wins(tmp_path):
    (tmp_path / "prism").mkdir()
    (tmp_path / "prism" / "__init__.py").write_text("who = 'another'\n")
    code = """
import prism_motor, prism
assert prism.who == "another"
try:
    import prism.nn
except ModuleNotFoundError as error:
    print(error)
"""
    result = python(code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "No module named 'prism.nn'" in result.stdout
