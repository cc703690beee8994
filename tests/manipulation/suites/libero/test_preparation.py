import subprocess
import sys
import tarfile

import pytest

from prism_motor._checks import InputError
from prism_motor.manipulation.suites.libero import preparation as assets_module
from prism_motor.manipulation.suites.libero.package import cached_assets, config_file
from prism_motor.manipulation.suites.libero.preparation import (
    NotPreparedError,
    check,
    copy_assets,
    ensure_prepared,
    missing_assets,
    prepare,
)

pytest.importorskip("libero", reason="hf-libero is not installed")
yaml = pytest.importorskip("yaml")

CUP = '<mujoco><asset><mesh file="visual/cup.msh"/><!-- file="old.png" --></asset></mujoco>'
TASK = "(define (:fixtures main_table - table) (:objects cup_1 cup_2 - cup))"


@pytest.fixture
def bddl_files(tmp_path):
    folder = tmp_path / "bddl_files" / "libero_goal"
    folder.mkdir(parents=True)
    (folder / "fill_the_cup.bddl").write_text(TASK)
    return folder.parent


@pytest.fixture
def small(tmp_path):
    """A folder of assets with one cup."""
    folder = tmp_path / "small"
    (folder / "scenes").mkdir(parents=True)
    (folder / "articulated_objects").mkdir()
    (folder / "scenes" / "libero_floor_base_style.xml").write_text("<mujoco/>")
    (folder / "cups" / "visual").mkdir(parents=True)
    (folder / "cups" / "cup.xml").write_text(CUP)
    (folder / "cups" / "visual" / "cup.msh").write_text("mesh")
    return folder


@pytest.fixture
def clean(tmp_path, monkeypatch):
    """A machine on which nothing is prepared, as far as that is not the package's own folder."""
    monkeypatch.setenv("PRISM_LIBERO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIBERO_CONFIG_PATH", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(
        "prism_motor.manipulation.suites.libero.package.packaged_assets", lambda: tmp_path / "none"
    )
    monkeypatch.setattr(
        "prism_motor.manipulation.suites.libero.preparation.packaged_assets",
        lambda: tmp_path / "none",
    )
    return tmp_path


def test_missing_files_are_named(small, bddl_files):
    assert missing_assets(small, bddl_files) == []
    (small / "cups" / "visual" / "cup.msh").unlink()
    assert missing_assets(small, bddl_files) == ["cups/visual/cup.msh"]
    (small / "cups" / "cup.xml").unlink()
    assert missing_assets(small, bddl_files) == ["*/cup.xml"]
    (small / "scenes" / "libero_floor_base_style.xml").unlink()
    assert "scenes/*_base_style.xml" in missing_assets(small, bddl_files)


@pytest.mark.parametrize("kind", ["folder", "gz", "xz"])
def test_assets_come_from_a_folder_or_an_archive(kind, small, tmp_path):
    source = small
    if kind != "folder":
        source = tmp_path / f"assets.tar.{kind}"
        with tarfile.open(source, f"w:{kind}") as archive:
            archive.add(small, arcname="assets")
    copy_assets(source, tmp_path / "there" / "assets")
    assert (tmp_path / "there" / "assets" / "cups" / "cup.xml").read_text() == CUP
    assert list((tmp_path / "there").iterdir()) == [tmp_path / "there" / "assets"]


def test_bad_archives_are_refused_and_leave_nothing(small, tmp_path):
    target = tmp_path / "there" / "assets"
    with pytest.raises(InputError, match="does not exist"):
        copy_assets(tmp_path / "nothing.tar", target)
    whole, cut = tmp_path / "whole.tar.xz", tmp_path / "cut.tar.xz"
    with tarfile.open(whole, "w:xz") as archive:
        archive.add(small, arcname="assets")
    cut.write_bytes(whole.read_bytes()[:200])
    with pytest.raises(ValueError, match="not a complete archive"):
        copy_assets(cut, target)
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(ValueError, match="not a complete archive"):
        copy_assets(tmp_path / "text.zip", target)
    other = tmp_path / "other"
    (other / "photos").mkdir(parents=True)
    with pytest.raises(ValueError, match="has no LIBERO assets"):
        copy_assets(other, target)
    assert not target.exists()


def test_preparing_writes_config_and_cache_and_reports_what_is_missing(clean, small):
    before = check()
    assert not before.ready
    assert "does not exist" in str(before)
    assert "not found" in str(before)
    state = prepare(small, link=False)
    assert state.assets == cached_assets()
    assert not state.config_problem
    assert not state.ready  # one cup is not all of LIBERO
    assert "*/akita_black_bowl.xml" in state.missing
    assert "files are missing" in str(state)
    written = yaml.safe_load(config_file().read_text())
    assert set(written) == {"benchmark_root", "bddl_files", "init_states", "datasets", "assets"}


def test_a_config_of_another_environment_is_repaired_and_its_datasets_stay(clean, small):
    config_file().parent.mkdir()
    old = {"bddl_files": "/gone", "init_states": "/gone", "datasets": "/data/mine"}
    config_file().write_text(yaml.safe_dump(old))
    assert "points to /gone" in check().config_problem
    prepare(small, link=False)
    assert not check().config_problem
    assert yaml.safe_load(config_file().read_text())["datasets"] == "/data/mine"


def test_without_a_connection_the_way_out_is_named(clean, monkeypatch):
    def unreachable(*_, **__):
        raise ConnectionError("no route to host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(OSError, match=r"(?s)no route to host.*--assets FILE"):
        prepare(link=False)
    assert assets_module.HUB == "lerobot/libero-assets"


def test_what_is_not_prepared_is_refused_with_the_command(clean, small):
    with pytest.raises(NotPreparedError, match=r"config file .* Run: prism libero prepare"):
        ensure_prepared()
    prepare(small, link=False)
    with pytest.raises(
        NotPreparedError, match=r"files are missing, e\.g\. \*/akita_black_bowl.xml"
    ):
        ensure_prepared()
    (clean / "cache" / "assets").rename(clean / "gone")
    with pytest.raises(NotPreparedError, match="--assets FILE"):
        ensure_prepared()


@pytest.mark.slow
def test_the_command_reports_without_asking(clean, small):
    command = [sys.executable, "-m", "prism_motor.cli", "libero"]
    shown = subprocess.run(
        [*command, "check"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 2
    assert "Run: prism libero prepare" in shown.stderr
    bad = subprocess.run(
        [*command, "prepare", "--assets", "nowhere.tar"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert bad.returncode == 2
    assert "nowhere.tar does not exist" in bad.stderr
