"""Locates LIBERO and its files, and imports it without its prompt on stdin."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from prism_motor._extras import missing_extra

CACHE_VARIABLE = "PRISM_LIBERO_CACHE"
"""Environment variable with the folder of LIBERO's assets, instead of the user's cache."""


def package_folder() -> Path:
    """Return the folder of the installed ``libero.libero``, without importing it."""
    try:
        found = importlib.util.find_spec("libero.libero")
    except ImportError:
        found = None
    if found is None or found.origin is None:
        raise missing_extra("LIBERO", "manipulation", ImportError("", name="hf-libero"))
    return Path(found.origin).parent


def config_file() -> Path:
    """Return the path of LIBERO's config file; ``LIBERO_CONFIG_PATH`` names its folder."""
    folder = os.environ.get("LIBERO_CONFIG_PATH", str(Path.home() / ".libero"))
    return Path(folder) / "config.yaml"


def cached_assets() -> Path:
    """Return the folder where ``prism libero prepare`` puts assets."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve() / "assets"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "prism" / "libero" / "assets"


def packaged_assets() -> Path:
    """Return the folder where LIBERO, and so LeRobot, looks for assets."""
    return package_folder() / "assets"


def find_assets() -> Path | None:
    """Return the first folder with assets: prism's cache, the package, LIBERO's cache."""
    own = Path.home() / ".cache" / "libero" / "assets"
    for folder in (cached_assets(), packaged_assets(), own):
        if (folder / "scenes").is_dir():
            return folder
    return None


def import_libero(module: str = "libero.libero") -> ModuleType:
    """Import a module of LIBERO, quietly, with the assets that were found.

    Its config file must exist; otherwise LIBERO prompts on stdin.
    """
    from prism_motor.sim.rendering import find_backend

    # robosuite assumes EGL unless configured before it is imported.
    os.environ.setdefault("MUJOCO_GL", find_backend())
    with contextlib.redirect_stdout(io.StringIO()), _without_warnings():
        libero = importlib.import_module("libero.libero")
        assets = find_assets()
        if assets is not None:
            # LIBERO's cached result of its search for assets.
            libero.__dict__["_assets_path_cache"] = str(assets)
        return importlib.import_module(module)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence robosuite, which recommends a private settings file at every import."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
