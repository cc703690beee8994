"""Preparing LIBERO: its config file, its scene assets, and a report of what is missing."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from prism_motor._checks import InputError, PrismError
from prism_motor._extras import missing_extra
from prism_motor.manipulation.suites.libero.archives import unpack
from prism_motor.manipulation.suites.libero.package import (
    cached_assets,
    config_file,
    find_assets,
    package_folder,
    packaged_assets,
)

COMMAND = "prism libero prepare"
"""The command that messages recommend."""

HUB = "lerobot/libero-assets"
"""Dataset repository with LIBERO's assets on the Hugging Face hub."""

_SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
"""Suites whose tasks determine which assets are needed."""


class NotPreparedError(PrismError, OSError):
    """LIBERO cannot run yet; the message says what to do."""


@dataclass(frozen=True)
class LiberoReadiness:
    """State of LIBERO's setup."""

    package: Path
    """The installed package."""
    config: Path
    """LIBERO's config file."""
    config_problem: str
    """Problem with the config file; empty if none."""
    assets: Path | None
    """Folder of the assets, if found."""
    missing: tuple[str, ...]
    """Asset files that the tasks need and that are missing."""
    linked: bool
    """Whether LIBERO finds the assets without prism, so that LeRobot's commands work too."""

    @property
    def ready(self) -> bool:
        """Whether environments can be made."""
        return not self.config_problem and self.assets is not None and not self.missing

    def __str__(self) -> str:
        lines = [f"package  {self.package}"]
        lines.append(f"config   {self.config}" + _note(self.config_problem))
        if self.assets is None:
            lines.append("assets   not found")
        else:
            count = f"{_files(len(self.missing))} missing" if self.missing else ""
            lines.append(f"assets   {self.assets}" + _note(count))
            lines += [f"           {file}" for file in self.missing[:10]]
            if self.missing and len(self.missing) > 10:
                lines.append(f"           and {len(self.missing) - 10} more")
        if self.assets is not None and not self.linked:
            lines.append(
                f"link     {packaged_assets()}: none, so prism finds the assets and LeRobot's own "
                "commands do not"
            )
        return "\n".join(lines)


def _files(count: int) -> str:
    return "1 file is" if count == 1 else f"{count} files are"


def _note(problem: str) -> str:
    return f": {problem}" if problem else ""


def check() -> LiberoReadiness:
    """Check LIBERO's setup without changing anything."""
    package, assets = package_folder(), find_assets()
    return LiberoReadiness(
        package=package,
        config=config_file(),
        config_problem=_config_problem(config_file()),
        assets=assets,
        missing=() if assets is None else tuple(missing_assets(assets, package / "bddl_files")),
        linked=(packaged_assets() / "scenes").is_dir(),
    )


def prepare(assets: Path | None = None, *, link: bool = True) -> LiberoReadiness:
    """Write LIBERO's config file and get its assets, from ``assets`` or from the hub.

    Args:
        assets: An archive or a folder of assets. Without it, complete assets are left alone and
            incomplete ones are fetched from the hub.
        link: Let LIBERO find them too, through a link in its package.
    """
    state = check()
    if state.config_problem:
        _write_config(state.config)
    if assets is not None:
        copy_assets(assets, cached_assets())
    elif state.assets is None or state.missing:
        download_assets(cached_assets())
    if link and find_assets() == cached_assets():
        _link_assets()
    return check()


def ensure_prepared() -> None:
    """Raise unless LIBERO is prepared; the message gives the command to run."""
    problem = _config_problem(config_file())
    if problem:
        raise NotPreparedError(f"LIBERO's config file {config_file()} {problem}. Run: {COMMAND}")
    assets = find_assets()
    if assets is None:
        raise NotPreparedError(
            "LIBERO's assets (meshes, textures, scenes) are not on this machine. Run: "
            f"{COMMAND} (fetches them from the hub) or {COMMAND} --assets FILE (an archive or a "
            "folder of them)."
        )
    missing = missing_assets(assets, package_folder() / "bddl_files")
    if missing:
        raise NotPreparedError(
            f"Of LIBERO's assets in {assets}, {_files(len(missing))} missing, e.g. {missing[0]}. "
            f"Run: {COMMAND} (fetches them from the hub) or {COMMAND} --assets FILE."
        )


def _config_problem(file: Path) -> str:
    import yaml

    if not file.is_file():
        return "does not exist"
    try:
        content = yaml.safe_load(file.read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        return "is not YAML"
    for key in ("bddl_files", "init_states"):
        folder = content.get(key) if isinstance(content, dict) else None
        if not folder or not isinstance(folder, str):
            return f"has no entry {key}"
        if not Path(folder).is_dir():
            return f"points to {folder} ({key}), which does not exist"
    return ""


def _write_config(file: Path) -> None:
    """Write the paths of the installed package, preserving the user's datasets folder."""
    import yaml

    root = package_folder()
    content = {
        "benchmark_root": str(root),
        "bddl_files": str(root / "bddl_files"),
        "init_states": str(root / "init_files"),
        "datasets": str(root.parent / "datasets"),
        "assets": str(packaged_assets()),
    }
    try:
        old = yaml.safe_load(file.read_text())
        content["datasets"] = old["datasets"]
    except (OSError, yaml.YAMLError, UnicodeDecodeError, TypeError, KeyError):
        pass
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(yaml.safe_dump(content))
    draft.replace(file)


def _link_assets() -> None:
    """Let LIBERO find the cached assets; if its package is read-only, only prism does."""
    link = packaged_assets()
    try:
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(cached_assets(), target_is_directory=True)
    except OSError:
        pass


def missing_assets(assets: Path, bddl_files: Path) -> list[str]:
    """List the files, relative to ``assets``, that the tasks need and that are missing."""
    files = {file.relative_to(assets) for file in assets.rglob("*") if file.is_file()}
    models = {file.stem: file for file in files if file.suffix == ".xml"}
    scenes = [file for file in files if file.match("scenes/*_base_style.xml")]
    missing = [] if scenes else ["scenes/*_base_style.xml"]
    needed = [models.get(name, name) for name in sorted(_object_names(bddl_files))]
    for file in [*needed, *scenes]:
        if isinstance(file, str):
            missing.append(f"*/{file}.xml")
            continue
        try:
            elements = list(ElementTree.parse(assets / file).iter())
        except ElementTree.ParseError:
            missing.append(f"{file} (damaged)")
            continue
        for element in elements:
            used = element.get("file")
            if used and not (assets / file.parent / used).is_file():
                missing.append(str(file.parent / used))
    return missing


def _object_names(bddl_files: Path) -> set[str]:
    """Collect the kinds of objects in the tasks; tables and floors are part of the scenes."""
    names: set[str] = set()
    for suite in _SUITES:
        for file in (bddl_files / suite).glob("*.bddl"):
            for things in re.findall(r"\(:(?:objects|fixtures)(.*?)\)", file.read_text(), re.S):
                names.update(re.findall(r"- (\w+)", things))
    return {name for name in names if not name.endswith(("table", "floor"))}


def copy_assets(source: Path, target: Path) -> None:
    """Copy the assets of a folder or an archive to ``target`` atomically."""
    if not source.exists():
        raise InputError(f"--assets {source} does not exist.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        if source.is_dir():
            found = _find_root(source, source)
            try:
                shutil.copytree(found, Path(folder) / "copy")
            except shutil.Error as error:  # dangling links, devices
                raise InputError(f"{source} cannot be copied: {error.args[0][0][2]}.") from error
            _move(Path(folder) / "copy", target)
        else:
            unpack(source, Path(folder))
            _move(_find_root(Path(folder), source), target)


def _find_root(folder: Path, source: Path) -> Path:
    """Return the folder that holds ``scenes`` and the objects; it may be one level down."""
    for candidate in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (candidate / "scenes").is_dir() and (candidate / "articulated_objects").is_dir():
            return candidate
    raise InputError(
        f"{source} has no LIBERO assets: neither it nor a folder in it has the folders scenes "
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
    """Fetch the assets from the hub; an interrupted download continues where it stopped."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise missing_extra("Downloading LIBERO's assets", "manipulation", error) from error
    target.mkdir(parents=True, exist_ok=True)
    try:
        snapshot_download(HUB, repo_type="dataset", local_dir=str(target))
    except Exception as error:  # the hub's client raises many kinds
        raise NotPreparedError(
            f"Could not fetch LIBERO's assets ({HUB}) from the hub: {error}\n"
            "Offline, give an archive or a folder of them: "
            "prism libero prepare --assets FILE"
        ) from error
