"""The examples run as scripts and learn what they say they learn."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *arguments, cwd):
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def numbers(pattern, output):
    found = re.search(pattern, output)
    assert found, output
    return [float(number) for number in found.groups()]


def test_every_example_is_tested_and_short():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"plain_torch.py", "train_rsl_rl.py", "train_sb3.py", "train_skrl.py"}
    assert all(len((EXAMPLES / name).read_text().splitlines()) < 100 for name in names)


def test_plain_torch_finds_the_product(tmp_path):
    output = run("plain_torch.py", "--steps", "500", cwd=tmp_path)
    (linear,) = numbers(r"degree 1: mean squared error on unseen data (\S+)", output)
    (product,) = numbers(r"degree 2: mean squared error on unseen data (\S+)", output)
    assert linear > 0.5  # the variance of the target is one
    assert product < 0.05
    strongest = output.splitlines()[2]
    assert {"torque", "velocity"} <= set(re.findall(r"\w+", strongest))


@pytest.mark.slow
def test_train_rsl_rl_learns_and_exports(tmp_path):
    pytest.importorskip("rsl_rl", reason="rsl_rl is not installed (extra 'locomotion')")
    onnxruntime = pytest.importorskip("onnxruntime", reason="extra 'deploy' is not installed")
    output = run("train_rsl_rl.py", "--iterations", "10", cwd=tmp_path)
    before, after = numbers(r"falls per episode: (\S+) before, (\S+) after", output)
    assert after < before / 2
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    assert session.get_inputs()[0].shape == ["batch", 3]
    assert json.loads(session.get_modelmeta().custom_metadata_map["frequency"]) == 20.0


@pytest.mark.slow
def test_train_sb3_learns_and_saves(tmp_path):
    pytest.importorskip("stable_baselines3", reason="extra 'sb3' is not installed")
    from stable_baselines3 import PPO

    output = run("train_sb3.py", "--steps", "15000", cwd=tmp_path)
    before, after = numbers(r"20 episodes: (\S+) before, (\S+) after", output)
    assert after > before + 100
    gate = PPO.load(tmp_path / "pendulum.zip").policy.mlp_extractor.policy_net[0].interaction.gate
    assert (gate - 0.01).abs().max() > 1e-3  # the gates have left their initial value


@pytest.mark.slow
def test_train_skrl_learns(tmp_path):
    pytest.importorskip("skrl", reason="skrl is not installed (extra 'test')")
    output = run("train_skrl.py", "--steps", "1024", cwd=tmp_path)
    before, after = numbers(r"20 episodes: (\S+) before, (\S+) after", output)
    assert after > before + 200
