"""What export folders of all domains have in common: where they go, the runner, their speed."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prism_motor._checks import InputError
from prism_motor._extras import missing_extra
from prism_motor.export import runner


@dataclass(frozen=True)
class Latency:
    """Time of one inference, batch of one, one thread."""

    median: float
    """Half of the calls are faster, s."""
    percentile99: float
    """99 % of the calls are faster, s."""


def check_target(target: Path) -> None:
    """Raise unless an export can be made and written to a folder; an older one is replaced."""
    try:
        import onnxruntime  # noqa: F401 - fail before the slow part
    except ImportError as error:
        raise missing_extra("prism export", "deploy", error) from error
    if target.exists() and not _replaceable(target):
        raise InputError(f"{target} exists and is not an export. Choose another folder with --out.")


def _replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / runner.CONTRACT).exists() or not any(folder.iterdir()))


def check_export(run: Path, folder: Path) -> None:
    """Raise unless the runner can read the export of a run."""
    try:
        runner.load_export(folder)
    except runner.RunnerError as error:
        raise InputError(f"{run} cannot be exported for a robot. {error}") from error


def copy_runner(folder: Path) -> None:
    """Copy the runner and its parts into an export."""
    script = Path(runner.__file__)
    shutil.copyfile(script, folder / script.name)
    parts = script.with_name("runner_parts")
    (folder / parts.name).mkdir()
    for file in sorted(parts.glob("*.py")):
        shutil.copyfile(file, folder / parts.name / file.name)


def measure_latency(export: Path, calls: int = 1000) -> Latency:
    """Time single inferences of an export in onnxruntime."""
    session = runner.open_policy(export / runner.POLICY)
    feed = {
        entry.name: np.zeros((1, entry.shape[1]), dtype=np.float32)
        for entry in session.get_inputs()
    }
    times = np.empty(calls)
    for _ in range(calls // 10):
        session.run(None, feed)
    for i in range(calls):
        start = time.perf_counter()
        session.run(None, feed)
        times[i] = time.perf_counter() - start
    median, percentile99 = np.percentile(times, (50, 99))
    return Latency(float(median), float(percentile99))


def describe_export(folder: Path) -> list[str]:
    """Return what to tell the user about an export: its files, its speed, how to try it."""
    latency = measure_latency(folder)
    files = sorted(folder.iterdir(), key=lambda file: (file.is_dir(), file.name))
    return [
        *(f"{file}  {_size(file) / 1e3:.0f} kB" for file in files),
        f"inference {1e6 * latency.median:.0f} us median, {1e6 * latency.percentile99:.0f} us "
        "99th percentile (onnxruntime, batch of one, one thread)",
        f"Try it with: prism sim2sim {folder}",
    ]


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
