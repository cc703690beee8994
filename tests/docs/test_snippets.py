"""Programs of the pages run; those of README.md are in tests/test_readme.py."""

import ast
import re
from pathlib import Path

import pytest

from prism_motor.campaigns import read_campaign
from tests.docs.pages import BLOCKS, DOCS, ROOT
from tests.test_readme import CHECKS, user_variables

PYTHON = [one for one in BLOCKS if one.language == "python" and DOCS in one.page.parents]
EXTENDED = re.compile(r"`(\w+\.py)`:$|The same from Python:$")
"""What stands above programs that tests/test_extend.py runs."""
RUN = [one for one in PYTHON if one.reason is None and not EXTENDED.search(one.before)]
NEEDS = {
    "flax": "test", "sb3_contrib": "test", "stable_baselines3": "sb3", "lerobot": "manipulation",
    "rsl_rl": "locomotion", "prism_motor.tracking": "locomotion", "prism_motor.sim": "locomotion",
    "prism_motor.integrations.feetech": "so101",
}  # fmt: skip
"""Extras by import."""
PACKAGES = {"locomotion": "mujoco", "manipulation": "lerobot", "so101": "lerobot"}


def _learned(namespace):
    assert namespace["loss"] < 0.01 * namespace["power"].var()
    (found,) = namespace["layer"].interactions(["angle", "velocity", "torque"], top=1)
    assert {"velocity", "torque"} <= set(str(found).split())


def _raised(namespace):
    assert namespace["between"].shape == namespace["raised"].shape
    assert namespace["schedule"](2.2).shape == namespace["raised"].shape


OWN_CHECKS = {
    "left unexplained": _learned,
    "slerp(raised": _raised,
    "layer.ablate": lambda ns: ns["terms"],
    "wilson(33, 40)": lambda ns: None,
    **{key: check for key, check in CHECKS.items() if key != "frame_names"},
}


@pytest.mark.parametrize("block", RUN, ids=lambda block: block.name)
def test_program_runs(block, tmp_path, monkeypatch):
    for word, extra in NEEDS.items():
        if re.search(rf"^(?:from|import) {re.escape(word)}\b", block.text, re.MULTILINE):
            package = PACKAGES.get(extra, word)
            pytest.importorskip(package, reason=f"{package} is not installed (extra {extra!r})")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "documentation", **user_variables(block.text)}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), namespace)
    check = OWN_CHECKS.get(next((key for key in OWN_CHECKS if key in block.text), ""))
    if check is not None:
        check(namespace)


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.name)
def test_program_uses_names_that_exist(block):
    """Also those that are not run."""
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("prism_motor"):
            place = ROOT / "src" / str(node.module).replace(".", "/")
            file = next(
                one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()
            )
            for name in node.names:
                assert re.search(rf"\b{name.name}\b", file.read_text(encoding="utf-8"))


def test_programs_that_other_tests_run_say_so():
    for block in PYTHON:
        named = EXTENDED.search(block.before)
        if named and named[1]:
            assert (ROOT / "examples" / "extend" / named[1]).read_text() == block.text


@pytest.mark.parametrize(
    "block", [one for one in BLOCKS if one.language == "toml"], ids=lambda block: block.name
)
def test_campaign_file_is_read(block):
    tomllib = pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")
    data = tomllib.loads(block.text)
    if data.get("kind") == "manipulation":
        pytest.importorskip("lerobot", reason="lerobot is not installed (extra 'manipulation')")
    campaign = read_campaign(data, block.name)
    assert {arm.name for arm in campaign.arms} == {arm["name"] for arm in data["arms"]}


def test_blocks_are_of_a_kind_that_is_tested():
    assert {one.language for one in BLOCKS} <= {"bash", "python", "toml", "xml", "text"}
    for one in BLOCKS:
        if one.language == "text":  # layouts and formulas, never something to type
            assert not re.search(r"^(?:prism|pip|make|lerobot-\w+) ", one.text, re.MULTILINE)


def test_no_commands_outside_of_blocks():
    for page in Path(DOCS).rglob("*.md"):
        assert not re.search(r"^    (?:prism|pip|make|python) ", page.read_text(), re.MULTILINE)
