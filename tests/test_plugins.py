"""Modules of users: by name, by path, from an installed package."""

import sys
from importlib import metadata

import pytest

from prism_motor import _plugins
from prism_motor._checks import PrismError
from prism_motor._plugins import load_plugins
from prism_motor.domains import domain_of

SOURCE = "LOADED = []\nLOADED.append(__name__)\n"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Work in a folder of one's own, and forget what was loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    _plugins._load.cache_clear()
    _plugins._load_installed.cache_clear()
    monkeypatch.setattr(_plugins, "_asked", set())
    yield
    for name in set(sys.modules) - modules:
        if name.startswith("toy_"):
            del sys.modules[name]
    _plugins._load.cache_clear()
    _plugins._load_installed.cache_clear()


def test_a_module_in_the_working_folder(tmp_path):
    (tmp_path / "toy_module.py").write_text(SOURCE)
    load_plugins(["toy_module"])
    load_plugins(["toy_module"])
    assert sys.modules["toy_module"].LOADED == ["toy_module"]


def test_a_module_inside_a_package(tmp_path):
    (tmp_path / "toy_package").mkdir()
    (tmp_path / "toy_package" / "__init__.py").write_text("")
    (tmp_path / "toy_package" / "robots.py").write_text(SOURCE)
    load_plugins(["toy_package.robots"])
    assert "toy_package.robots" in sys.modules


def test_a_path(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "toy_path.py").write_text("import toy_helper\n" + SOURCE)
    (tmp_path / "deep" / "toy_helper.py").write_text("")
    load_plugins(["deep/toy_path.py"])
    assert sys.modules["toy_path"].LOADED == ["toy_path"]


def test_one_that_is_missing_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(ValueError, match=r"no plugin toy_gone\.py here .*Give its path"):
        load_plugins(["toy_gone.py"])
    with pytest.raises(ValueError, match="no plugin module 'toy_gone'"):
        load_plugins(["toy_gone"])


def test_a_mistake_inside_a_plugin_is_its_authors_and_is_shown(tmp_path):
    (tmp_path / "toy_broken.py").write_text("import toy_nowhere\n")
    with pytest.raises(PrismError, match=r"(?s)plugin toy_broken failed:.*toy_broken.py.*line 1"):
        load_plugins(["toy_broken"])


def test_entry_points_of_installed_packages(tmp_path, monkeypatch):
    (tmp_path / "toy_entry.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    entry = metadata.EntryPoint("toy", "toy_entry", _plugins.GROUP)
    asked = []

    def entry_points(group):
        asked.append(group)
        return [entry]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    load_plugins()
    load_plugins()
    assert asked == ["prism_motor.plugins"]
    assert "toy_entry" in sys.modules


def test_the_config_of_a_run_loads_what_it_needs(tmp_path):
    (tmp_path / "toy_run.py").write_text(SOURCE)
    assert domain_of({"plugins": ["toy_run"]}).name == "locomotion"
    assert "toy_run" in sys.modules


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "a b", "../x", "a/b", ".py", "x-y.py", "a..b", ".a", "a.", "os;x", "a\0b",
        "a\0.py", None, 3, ["os"], b"os",
    ],
)  # fmt: skip
def test_what_is_neither_a_module_nor_a_file_is_refused(name):
    with pytest.raises(PrismError, match="cannot be a plugin: give a module"):
        load_plugins([name])


@pytest.mark.parametrize("names", ["os", {"os": 1}, 3])
def test_plugins_that_are_no_list_are_refused(names):
    with pytest.raises(PrismError, match="plugins must be a list of modules"):
        domain_of({"kind": "locomotion", "plugins": names})


def test_a_plugin_that_a_file_names_is_announced_once(tmp_path, capsys):
    (tmp_path / "toy_module.py").write_text(SOURCE)
    (tmp_path / "toy_typed.py").write_text(SOURCE)
    load_plugins(["toy_typed"])
    for _ in range(2):
        domain_of({"kind": "locomotion", "plugins": ["toy_module", "toy_typed"]})
    shown = capsys.readouterr()
    assert shown.err == "Loading the plugin toy_module, which the settings name.\n"
    assert shown.out == ""
