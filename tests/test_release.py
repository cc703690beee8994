"""What is released: the built files, and what the repository's host reads."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import prism_motor

ROOT = Path(__file__).parents[1]
YAML = sorted(ROOT.glob(".github/**/*.yml"))
FOLDER = ROOT / "src" / "prism_motor"


def read_yaml(file):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(file.read_text())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist, built from what git knows, without a network."""
    setuptools = pytest.importorskip("setuptools", minversion="77")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "src", "*.md", "*.toml", "*.txt", "*.in", "*.cff", "LICENSE",
         "NOTICE"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    source = tmp_path_factory.mktemp("source")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("docs/", "results/", "plugins/")):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    code = (
        "from setuptools import build_meta as b\n"
        "print(b.build_sdist('dist')); print(b.build_wheel('dist'))"
    )
    subprocess.run(
        [sys.executable, "-c", code], cwd=source, check=True, capture_output=True, text=True
    )
    assert setuptools
    with zipfile.ZipFile(next((source / "dist").glob("*.whl"))) as wheel:
        texts = {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(next((source / "dist").glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    return texts, names


@pytest.mark.slow
def test_wheel_and_sdist_hold_all_that_is_needed(built):
    wheel, sdist = built
    package = [
        path.relative_to(ROOT / "src").as_posix()
        for path in FOLDER.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".DS_Store"
    ]
    assert {"prism_motor/py.typed", "prism_motor/_templates/demo.html"} <= set(package)
    for policy in ("g1-prism", "g1-mlp-matched", "g1-tracker"):
        assert any(name.startswith(f"prism_motor/shipped/{policy}/checkpoints/") for name in wheel)
    assert not [name for name in package if name not in wheel]
    assert not [name for name in package if f"src/{name}" not in sdist]
    info = f"prism_motor-{prism_motor.__version__}.dist-info"
    for name in ("LICENSE", "NOTICE"):
        assert wheel[f"{info}/licenses/{name}"] == (ROOT / name).read_bytes()
    assert {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "CITATION.cff"} <= sdist
    assert {name.split("/")[0] for name in wheel} == {"prism_motor", info}


@pytest.mark.slow
def test_metadata_says_where_things_are(built):
    wheel, _ = built
    (text,) = (text.decode() for name, text in wheel.items() if name.endswith("/METADATA"))
    for name in ("Homepage", "Documentation", "Issues", "Changelog"):
        assert f"\nProject-URL: {name}, https://" in text
    assert "\nLicense-Expression: Apache-2.0" in text
    (entries,) = (t.decode() for name, t in wheel.items() if name.endswith("/entry_points.txt"))
    assert "prism = prism_motor.cli:main" in entries


def test_one_version_everywhere():
    version = prism_motor.__version__
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()
    for file in ROOT.glob("plugins/*/pyproject.toml"):
        assert f'version = "{version}"' in file.read_text(), file


def test_citation_has_what_is_required():
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "title", "message", "authors", "version", "license"} <= citation.keys()
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors", "year"} <= paper.keys()
    assert [author["family-names"] for author in paper["authors"]] == ["Lee", "Yu"]


@pytest.mark.parametrize("file", YAML, ids=lambda file: file.name)
def test_files_of_the_host_can_be_read(file):
    assert isinstance(read_yaml(file), dict)


def test_the_workflow_runs_what_we_run():
    jobs = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert ".ci/run" in commands
    assert "make release-check" in commands
    pythons = jobs["light"]["strategy"]["matrix"]["python"]
    classifiers = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', _pyproject())
    assert pythons == classifiers
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands:
        if command.startswith("make "):
            assert command.split()[1] in targets
        if command.startswith(".ci/"):
            assert (ROOT / command).stat().st_mode & 0o100


def test_issues_ask_for_what_commands_print():
    from prism_motor.cli.commands import COMMANDS

    forms = [read_yaml(file) for file in YAML if file.parent.name == "ISSUE_TEMPLATE"]
    forms = [form for form in forms if "body" in form]
    assert {form["name"] for form in forms} == {"Bug", "Feature", "Question"}
    for form in forms:
        ids = [field["id"] for field in form["body"]]
        assert len(set(ids)) == len(ids)
        for field in form["body"]:
            assert {"type", "attributes"} <= field.keys()
            for word in re.findall(r"prism ([a-z]+)", field["attributes"]["label"]):
                assert word in COMMANDS


def test_the_check_of_releases_knows_every_extra():
    script = (ROOT / ".ci" / "release-check").read_text()
    section = _pyproject().split("[project.optional-dependencies]")[1].split("\n[project.")[0]
    extras = set(re.findall(r"^([a-z0-9]+) = \[", section, re.MULTILINE)) - {"test"}
    known = {
        word
        for line in re.findall(r"^  ([a-z0-9 |]+)\) ", script, re.M)
        for word in line.split(" | ")
    }
    assert extras <= known
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "release-check")], check=True)


def _pyproject():
    return (ROOT / "pyproject.toml").read_text()
