"""Provenance of a run: code version, packages, machine and command."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from prism_motor._version import __version__

_PACKAGES = ("torch", "numpy", "scipy", "mujoco", "rsl-rl-lib", "tensordict", "lerobot")


def collect_provenance() -> dict[str, Any]:
    """Collect everything needed to trace how a result was produced."""
    return {
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "prism": __version__,
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--", str(_source()))),
        "python": platform.python_version(),
        "packages": {name: package_version(name) for name in _PACKAGES},
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cpu": cpu_kind(),
        },
    }


def cpu_kind() -> str:
    """Return the model of this machine's CPU; others may round differently."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def package_version(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _source() -> Path:
    return Path(__file__).resolve().parents[1]


def _git(*arguments: str) -> str | None:
    """Run git in the checkout of this package; ``None`` if installed from a wheel."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(_source()), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
