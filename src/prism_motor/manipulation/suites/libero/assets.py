"""LIBERO's scene assets: complete or not, unpacked from an archive or fetched from the hub."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from lzma import LZMAError
from pathlib import Path
from xml.etree import ElementTree

from prism_motor._errors import InputError
from prism_motor._extras import missing_extra

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
HUB = "lerobot/libero-assets"
"""Dataset repository with LIBERO's assets on the Hugging Face hub."""


def missing_assets(assets: Path, bddl_files: Path) -> list[str]:
    """List the files, relative to ``assets``, that the tasks need and that are not there."""
    files = {file.relative_to(assets) for file in assets.rglob("*") if file.is_file()}
    models = {file.stem: file for file in files if file.suffix == ".xml"}
    scenes = [file for file in files if file.match("scenes/*_base_style.xml")]
    missing = [] if scenes else ["scenes/*_base_style.xml"]
    needed = [models.get(name, name) for name in sorted(_object_names(bddl_files))]
    for file in [*needed, *scenes]:
        if isinstance(file, str):
            missing.append(f"*/{file}.xml")
            continue
        for element in ElementTree.parse(assets / file).iter():
            used = element.get("file")
            if used and not (assets / file.parent / used).is_file():
                missing.append(str(file.parent / used))
    return missing


def _object_names(bddl_files: Path) -> set[str]:
    """Collect the kinds of things in the tasks; tables and floors are part of the scenes."""
    names: set[str] = set()
    for suite in SUITES:
        for file in (bddl_files / suite).glob("*.bddl"):
            for things in re.findall(r"\(:(?:objects|fixtures)(.*?)\)", file.read_text(), re.S):
                names.update(re.findall(r"- (\w+)", things))
    return {name for name in names if not name.endswith(("table", "floor"))}


def copy_assets(source: Path, target: Path) -> None:
    """Put the assets of a folder or an archive at ``target``, all or nothing."""
    if not source.exists():
        raise FileNotFoundError(f"--assets {source} does not exist.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        if source.is_dir():
            found = _find_root(source, source)
            shutil.copytree(found, Path(folder) / "copy")
            _move(Path(folder) / "copy", target)
        else:
            _unpack(source, Path(folder))
            _move(_find_root(Path(folder), source), target)


def _unpack(archive: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            zipfile.ZipFile(archive).extractall(folder)
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError) as error:
        raise InputError(
            f"{archive} is not a complete archive (.tar, .tar.gz, .tar.xz or .zip): {error}."
        ) from error


def _find_root(folder: Path, source: Path) -> Path:
    """Return the folder that holds ``scenes`` and the objects; it may be one level down."""
    for candidate in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (candidate / "scenes").is_dir() and (candidate / "articulated_objects").is_dir():
            return candidate
    raise InputError(
        f"{source} holds no LIBERO assets: neither it nor a folder in it has the folders scenes "
        "and articulated_objects."
    )


def _move(folder: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    try:
        os.replace(folder, target)
    except OSError:  # another process was faster
        if not target.is_dir():
            raise


def download_assets(target: Path) -> None:
    """Fetch the assets from the hub; an interrupted download goes on where it was."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise missing_extra("Downloading LIBERO's assets", "manipulation", error) from error
    target.mkdir(parents=True, exist_ok=True)
    try:
        snapshot_download(HUB, repo_type="dataset", local_dir=str(target))
    except Exception as error:  # the hub's client raises dozens of kinds
        raise OSError(
            f"Could not fetch LIBERO's assets ({HUB}) from the hub: {error}\n"
            "Without a connection, give an archive or a folder of them: "
            "prism libero prepare --assets FILE"
        ) from error
