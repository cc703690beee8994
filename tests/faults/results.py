"""What a run folder holds that counts, so that two of them can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.train.cases import assert_same_run


def difference(run: Path, whole: Path) -> str:
    """Return how a run differs from one that nothing happened to; empty if it does not."""
    try:
        assert_same_run(run, whole)
    except Exception as error:  # a folder that cannot be read differs, too
        return f"{type(error).__name__}: {str(error)[:300]}"
    there, wanted = _names(run), _names(whole)
    return "" if there == wanted else f"it holds {there}, not {wanted}"


def _names(run: Path) -> list[str]:
    """Return what is in a run folder, without what nobody reads again."""
    unread = (".", "last", "tensorboard", "damaged")
    return sorted(p.name for p in run.iterdir() if not p.name.startswith(unread))


def episodes(run: Path) -> dict[str, Any]:
    """Return all stored evaluations by file, without what depends on clock and caller."""
    files = sorted((run / "evaluations").glob("*.json"))
    return {file.name: _lasting(json.loads(file.read_text())) for file in files}


def _lasting(data: dict[str, Any]) -> dict[str, Any]:
    """Drop the provenance, and the hash of a content that includes it."""
    hashes = {key for key in data if "sha256" in key or "hash" in key} - {"policy_sha256"}
    return {key: value for key, value in data.items() if key not in {"provenance", *hashes}}


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files and folders below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.tmp"))
