"""The README's Python snippets run as they stand, in the order in which they are printed."""

import copy
import importlib.util
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def titles():
    return [next(line for line in s.splitlines() if "import" in line) for s in SNIPPETS]


def user_variables(snippet):
    """What the README says is the reader's own: an environment and a training config."""
    if "train_cfg" not in snippet:
        return {}
    path = ROOT / "examples" / "train_rsl_rl.py"
    spec = importlib.util.spec_from_file_location("train_rsl_rl_example", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    train_cfg = copy.deepcopy(example.CONFIG)
    del train_cfg["actor"]
    return {"env": example.Pendulums(8), "train_cfg": train_cfg}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=titles())
def test_snippet_runs(snippet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = user_variables(snippet)
    exec(compile(snippet, "README.md", "exec"), namespace)
    check = CHECKS.get(next((key for key in CHECKS if key in snippet), ""))
    if check is not None:
        check(namespace)


CHECKS = {
    "frame_names": lambda ns: _learned(ns),
    "OnPolicyRunner": lambda ns: _actor_is(ns["runner"].alg.actor, "PrismModel"),
    "from_linear": lambda ns: _actor_is(ns["policy"]["state_proj"], "PolynomialLayer"),
    'by="flops"': lambda ns: _same_size(ns),
    "export_onnx": lambda ns: _single_file(),
}


def _learned(namespace):
    assert namespace["loss"].item() < namespace["target"].square().mean().item()


def _actor_is(module, name):
    assert type(module).__name__ == name


def _same_size(namespace):
    count = namespace["count_parameters"]
    ratio = count(namespace["control"]) / count(namespace["prism_actor"])
    assert abs(ratio - 1) < 1e-3


def _single_file():
    assert os.listdir() == ["policy.onnx"]


def test_all_promised_snippets_are_there():
    text = "\n".join(SNIPPETS)
    for word in ("prism_motor.nn", "rsl_rl", "stable_baselines3", "prism_motor.export"):
        assert word in text


def test_links_point_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_pages_link_only_to_pages(page):
    # The built documentation holds nothing outside its folder.
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in link or (ROOT / "docs" / link).resolve().parent == ROOT / "docs", link
        assert "://" in link or (ROOT / "docs" / link).is_file(), link
