"""Preparing LIBERO: its config file, its assets, and a report of what is missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from prism_motor._errors import PrismError
from prism_motor.manipulation.suites.libero.assets import (
    copy_assets,
    download_assets,
    missing_assets,
)
from prism_motor.manipulation.suites.libero.package import (
    cached_assets,
    config_file,
    find_assets,
    package_folder,
    packaged_assets,
)

COMMAND = "prism libero prepare"


class NotPreparedError(PrismError, OSError):
    """LIBERO cannot run yet; the message says what to do."""


@dataclass(frozen=True)
class Preparation:
    """How far LIBERO is prepared."""

    package: Path
    """The installed package."""
    config: Path
    """LIBERO's config file."""
    config_problem: str
    """What is wrong with the config file; empty if nothing."""
    assets: Path | None
    """Where the assets are, if they were found."""
    missing: tuple[str, ...]
    """Files of the assets that the tasks need and that are not there."""
    linked: bool
    """Whether LIBERO finds the assets by itself, so that LeRobot's own commands run too."""

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
            count = f"{len(self.missing)} files are missing" if self.missing else ""
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


def _note(problem: str) -> str:
    return f": {problem}" if problem else ""


def check() -> Preparation:
    """Find out how far LIBERO is prepared; changes nothing."""
    package, assets = package_folder(), find_assets()
    return Preparation(
        package=package,
        config=config_file(),
        config_problem=_config_problem(config_file()),
        assets=assets,
        missing=() if assets is None else tuple(missing_assets(assets, package / "bddl_files")),
        linked=(packaged_assets() / "scenes").is_dir(),
    )


def prepare(assets: Path | None = None, *, link: bool = True) -> Preparation:
    """Write LIBERO's config file and get its assets, from ``assets`` or from the hub.

    Args:
        assets: An archive or a folder of assets. Without it, assets that are complete stay, and
            otherwise they are fetched from the hub.
        link: Make LIBERO itself find them too, by a link in its package.
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
    """Refuse to go on, with the command that helps, unless LIBERO is prepared."""
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
            f"{len(missing)} files of LIBERO's assets in {assets} are missing, {missing[0]} for "
            f"one. Run: {COMMAND} (fetches them from the hub) or {COMMAND} --assets FILE."
        )


def _config_problem(file: Path) -> str:
    import yaml

    if not file.is_file():
        return "does not exist"
    try:
        content = yaml.safe_load(file.read_text())
    except yaml.YAMLError:
        return "is not YAML"
    for key in ("bddl_files", "init_states"):
        folder = content.get(key) if isinstance(content, dict) else None
        if not folder:
            return f"has no entry {key}"
        if not Path(folder).is_dir():
            return f"points to {folder} ({key}), which does not exist"
    return ""


def _write_config(file: Path) -> None:
    """Write the paths of the installed package; a datasets folder of the user stays."""
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
    except (OSError, yaml.YAMLError, TypeError, KeyError):
        pass
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(yaml.safe_dump(content))
    draft.replace(file)


def _link_assets() -> None:
    """Let LIBERO find the cached assets; where the package is read-only, prism alone does."""
    link = packaged_assets()
    try:
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(cached_assets(), target_is_directory=True)
    except OSError:
        pass
