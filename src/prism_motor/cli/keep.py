"""``prism keep``: small records of runs, for a repository or a colleague."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional


def keep(folder: Positional[Path], out: Path) -> None:
    """Copy what checks a result: settings, provenance, curves, every evaluated episode, analyses.

    Weights, films and logs stay behind. ``prism report`` works on the copy as on the runs.

    Args:
        folder: A run, a campaign, or any folder of them.
        out: Folder of the records.
    """
    from prism_motor.runs.keep import keep_folder

    names = keep_folder(folder, out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {len(names)} runs, {size / 1e6:.1f} MB. Next: prism report {out}")
