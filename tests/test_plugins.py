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
