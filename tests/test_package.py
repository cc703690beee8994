"""The package as an installer and an importer see it."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import prism_motor
from prism_motor._extras import MissingExtraError, missing_extra

ROOT = Path(__file__).parents[1]


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_prism_nn_imports_torch_alone():
    # Everything importable that is not torch, its own dependencies or the standard library is
    # blocked; the layer library must still work.
    code = """
import sys, torch
before = set(sys.modules)
import prism_motor, prism_motor.nn
names = {name.split(".")[0] for name in set(sys.modules) - before}
foreign = names - {"prism_motor", "torch"} - set(sys.stdlib_module_names)
assert not foreign, foreign
assert "torch.utils.flop_counter" not in sys.modules  # it imports triton where that is installed
assert prism_motor.nn.build_actor("prism", 8, 2)(torch.randn(3, 8)).shape == (3, 2)
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def test_version_is_the_distributions():
    assert metadata.version("prism-motor") == prism_motor.__version__


def test_types_are_shipped():
    assert (Path(prism_motor.__path__[0]) / "py.typed").exists()


def test_extras_exist_and_core_needs_torch_alone():
    requirements = metadata.requires("prism-motor") or []
    core = [line for line in requirements if "extra ==" not in line]
    assert [re.split(r"[<>=!~ ]", line)[0] for line in core] == ["torch"]
    wanted = {"locomotion", "manipulation", "analysis", "viewer", "deploy", "test", "docs", "all"}
    assert wanted <= set(metadata.metadata("prism-motor").get_all("Provides-Extra") or [])


@pytest.mark.parametrize("file", sorted(ROOT.glob("constraints*.txt")), ids=lambda file: file.stem)
def test_constraints_pin_exact_versions(file):
    lines = file.read_text().splitlines()
    assert lines
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


def test_missing_extra_names_the_command():
    error = missing_extra("prism_motor.export", "deploy", ImportError("no", name="onnx"))
    assert isinstance(error, MissingExtraError)
    assert isinstance(error, ImportError)
    assert "onnx" in str(error)
    assert "pip install 'prism-motor[deploy]'" in str(error)


def test_ctrl_c_during_an_import_is_no_missing_package():
    """Extension modules turn it into an ImportError that it caused."""
    failed = ImportError("initialization failed")
    failed.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        missing_extra("prism_motor.sim", "locomotion", failed)


@pytest.mark.parametrize(
    ("module", "blocked", "extra"),
    [
        ("prism_motor.integrations.rsl_rl", "rsl_rl", "locomotion"),
        ("prism_motor.integrations.stable_baselines3", "stable_baselines3", "sb3"),
        ("prism_motor.gymnasium_control.learners", "stable_baselines3", "gymnasium"),
    ],
)
def test_every_optional_part_names_its_extra(module, blocked, extra):
    code = f"""
import sys
sys.modules[{blocked!r}] = None
try:
    import {module}
except ImportError as error:
    print(error)
"""
    result = run_python(code)
    assert f"prism-motor[{extra}]" in result.stdout, result.stdout + result.stderr
