"""``prism info`` and ``prism params``: versions for bug reports, and parameter counts."""

from __future__ import annotations

import json as json_format
import os
import platform
import sys
from importlib import metadata

from prism_motor._console import available_cores, text_table
from prism_motor._devices import list_devices
from prism_motor._version import __version__
from prism_motor.runs.provenance import cpu_kind

_PACKAGES = (
    "numpy",
    "mujoco",
    "mujoco-warp",
    "warp-lang",
    "rsl-rl-lib",
    "tensordict",
    "stable-baselines3",
    "lerobot",
    "mjlab",
    "onnx",
    "onnxruntime",
    "tyro",
    "viser",
)

_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MUJOCO_GL", "CUDA_VISIBLE_DEVICES")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def collect() -> dict[str, dict[str, str]]:
    """Collect versions, devices and thread settings."""
    import torch

    versions = {
        "prism": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    versions |= {package: _version(package) for package in _PACKAGES}
    threads = {
        "cores": str(os.cpu_count()),
        "cores allowed": str(available_cores()),
        "torch threads": str(torch.get_num_threads()),
        "torch inter-op threads": str(torch.get_num_interop_threads()),
    }
    variables = {name: os.environ.get(name, "not set") for name in _VARIABLES}
    return {
        "versions": versions,
        "system": {"platform": platform.platform()},
        "devices": list_devices() | {"cpu": cpu_kind()},
        "threads": threads,
        "environment": variables,
    }


def info(json: bool = False) -> None:
    """Print versions, devices and threads, for bug reports.

    Args:
        json: Print JSON instead of text.
    """
    sections = collect()
    if json:
        print(json_format.dumps(sections, indent=2))
        return
    width = max(len(key) for section in sections.values() for key in section)
    for title, section in sections.items():
        print(title)
        for key, value in section.items():
            print(f"  {key:<{width}}  {value}")


def params(json: bool = False) -> None:
    """List every named network with its parameter count and the paper's.

    Exits with status 1 if a count differs.

    Args:
        json: Print JSON instead of a table.
    """
    from prism_motor.networks import NETWORKS

    rows = [
        {
            "name": network.name,
            "parameters": network.count(),
            "expected": network.expected,
            "paper": network.printed,
        }
        for network in NETWORKS
    ]
    wrong = [row["name"] for row in rows if row["parameters"] != row["expected"]]
    if json:
        print(json_format.dumps(rows, indent=2))
    else:
        table = [["network", "parameters", "expected", "", "paper prints"]]
        for row in rows:
            mark = "DIFFERS" if row["name"] in wrong else "ok"
            numbers = (f"{row['parameters']:,}", f"{row['expected']:,}")
            table.append([str(row["name"]), *numbers, mark, str(row["paper"])])
        print(text_table(table))
        print(
            "\nexpected: the exact count, derived from the paper and the authors' release; "
            "paper prints: the rounded one that stands there, if any."
        )
    if wrong:
        print(f"prism: error: counts differ for {', '.join(map(str, wrong))}", file=sys.stderr)
        sys.exit(1)
