"""The Python snippets of README.md and docs/layer.md run as they stand."""

import copy
import importlib
import importlib.util
import os
import re
from pathlib import Path

import pytest

from tests.docs.pages import read_blocks, site_hooks

ROOT = Path(__file__).parents[1]
SNIPPETS = [
    snippet
    for page in ("README.md", "docs/layer.md")
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
]


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
    train_cfg["actor"]["class_name"] = "MLPModel"
    return {"env": example.Pendulums(8), "train_cfg": train_cfg}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=titles())
def test_snippet_runs(snippet, tmp_path, monkeypatch):
    for package in ("flax", "sb3_contrib"):
        if f"from {package} import" in snippet:
            pytest.importorskip(package, reason=f"{package} is not installed (extra 'test')")
    monkeypatch.chdir(tmp_path)
    namespace = user_variables(snippet)
    exec(compile(snippet, "snippet", "exec"), namespace)
    check = CHECKS.get(next((key for key in CHECKS if key in snippet), ""))
    if check is not None:
        check(namespace)


CHECKS = {
    "frame_names": lambda ns: _learned(ns),
    "PolynomialExtractor": lambda ns: _extractors(ns["models"]),
    "NnxPolynomialLayer": lambda ns: _agrees(ns),
    "OnPolicyRunner": lambda ns: _actor_is(ns["runner"].alg.actor, "PrismModel"),
    "from_linear": lambda ns: _actor_is(ns["policy"]["state_proj"], "PolynomialLayer"),
    'by="flops"': lambda ns: _same_size(ns),
    "export_onnx": lambda ns: _single_file(),
}


def _learned(namespace):
    assert namespace["loss"].item() < 0.01 * namespace["target"].square().mean().item()
    assert namespace["interaction"].share < 0.1  # the last one printed


@pytest.mark.slow
def test_the_first_example_finds_its_product_with_every_seed(capsys):
    (snippet,) = (one for one in SNIPPETS if "frame_names" in one)
    assert snippet.count("manual_seed(0)") == 1
    for seed in range(5):
        code = snippet.replace("manual_seed(0)", f"manual_seed({seed})")
        exec(compile(code, "snippet", "exec"), {})
        first = capsys.readouterr().out.splitlines()[0]
        assert "* dq_hip[t] * tau_hip[t] (share 9" in first, (seed, first)


def _extractors(models):
    for model in models:
        for part in (model.actor, model.critic):
            _actor_is(part.features_extractor, "PolynomialExtractor")


def _agrees(namespace):
    y = namespace["torch_layer"](namespace["torch"].ones(4, 16)).detach().numpy()
    assert abs(namespace["y"] - y).max() < 1e-6


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
    for word in ("prism_motor.nn", "interactions", "matched_mlp", "rsl_rl"):
        assert word in text


def test_every_extra_is_explained():
    project = (ROOT / "pyproject.toml").read_text()
    extras = project.split("[project.optional-dependencies]")[1].split("[project.urls]")[0]
    table = [line.split("|")[1] for line in (ROOT / "docs" / "install.md").read_text().splitlines()
             if line.startswith("| `")]  # fmt: skip
    explained = set(re.findall(r"`(\w+)`", " ".join(table)))
    assert set(re.findall(r"^(\w+) = \[", extras, re.MULTILINE)) <= explained | {"clicks"}


def test_the_first_install_line_has_what_the_commands_below_it_need():
    """``.ci/release-check readme`` installs it from the wheel and runs them."""
    block = next(one for one in read_blocks(ROOT / "README.md") if one.language == "bash")
    (install, *others) = block.commands
    assert install[:2] == ["pip", "install"]
    needed = {"play": "viewer", "eval": "locomotion", "video": "video", "explain": "analysis"}
    needed["export"] = "deploy"
    for words in others:
        assert needed[words[1]] in install[2]


def test_numbers_of_the_digest_are_those_of_the_records():
    records = [ROOT / "docs" / "measurements.md", *(ROOT / "results").rglob("*.md")]
    known = " ".join(file.read_text() for file in records)
    known = known.replace("\N{MINUS SIGN}", "-").replace("\N{NO-BREAK SPACE}", " ")
    table = (ROOT / "README.md").read_text().split("## Does it help?")[1].split("\n## ")[0]
    found = re.findall(r"×?[-+]?[\d.]+ \[[-+]?[\d.]+, [-+]?[\d.]+\]|(?<=p = )0\.\d+", table)
    assert len(found) >= 20
    assert not [number for number in found if number not in known]


def test_moving_pictures_are_small():
    for file in (ROOT / "docs").glob("*.gif"):
        assert file.stat().st_size <= 1_000_000


def test_links_point_to_files():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing


DOCS = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_pages_link_to_what_the_site_has(page):
    place_of = site_hooks().place_of
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in link:
            target = (page.parent / link).resolve()
            assert target.is_file(), link
            assert place_of(str(target.relative_to(ROOT))), f"{link} is no part of the site"


REFERENCE = (ROOT / "docs" / "reference.md").read_text()
PACKAGES = [
    ".".join(path.parent.relative_to(ROOT / "src").parts)
    for path in sorted((ROOT / "src" / "prism_motor").rglob("__init__.py"))
    if "__all__" in path.read_text()
]


@pytest.mark.parametrize("package", PACKAGES)
def test_reference_lists_the_public_names(package):
    if package.endswith(".lerobot"):
        pytest.importorskip("lerobot", reason="lerobot is not installed (extra 'manipulation')")
    found = re.search(rf"^\| `{re.escape(package)}` \| (.*) \|$", REFERENCE, re.MULTILINE)
    if package == "prism_motor.sim.robots":  # whose names are those of prism_motor.sim
        found = re.search(r"^\| `prism_motor\.sim` \| (.*) \|$", REFERENCE, re.MULTILINE)
    assert found, f"docs/reference.md does not list {package}"
    module = importlib.import_module(package)
    listed = set(re.findall(r"`(\w+)`", found[1]))
    if package == "prism_motor.sim.robots":
        assert set(module.__all__) <= listed
    else:
        assert set(module.__all__) == listed
    assert all(hasattr(module, name) for name in module.__all__)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
FORMER = re.compile(
    r"prism (?:demos|keep)\b|prism train .*--(?:set|actor|conditioner|iterations|steps)\b"
    r"|\bmlp-larger\b|\bg1-gated\b|--arm (?:gated|residual)\b|laptop-gated|src/prism/"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_former_names_are_in_one_table_only(page):
    text = page.read_text().split("## Former names")
    kept = text[0] + (text[1].partition("\n## ")[2] if len(text) > 1 else "")
    assert not FORMER.findall(kept)


def test_pages_are_all_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    assert all(f": {page.relative_to(ROOT / 'docs')}\n" in menu for page in DOCS)


def test_layout_page_names_every_package():
    text = (ROOT / "docs" / "architecture.md").read_text()
    source = ROOT / "src" / "prism_motor"
    packages = [path.parent.name for path in source.glob("*/__init__.py")]
    modules = [path.name for path in source.glob("*.py") if not path.name.startswith("_")]
    assert all(f"  {name}/ " in text for name in packages)
    assert all(f"  {name} " in text for name in modules)
