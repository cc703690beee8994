"""Ways to damage or alter one file of a folder, as strategies of hypothesis."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Data = Callable[[st.SearchStrategy[Any]], Any]
"""Draws a value, as ``data.draw`` of hypothesis."""


@dataclass(frozen=True)
class Mutation:
    """Something done to a file."""

    name: str
    """What it is."""
    apply: Callable[[Path, Data], str]
    """Do it, and say in a few words what exactly was done."""
    suits: Callable[[Path], bool] = lambda file: True
    """Whether it can be done to a file."""


def _flip(file: Path, draw: Data) -> str:
    content = bytearray(file.read_bytes())
    place = draw(st.integers(0, len(content) - 1))
    content[place] ^= draw(st.integers(1, 255))
    file.write_bytes(content)
    return f"byte {place}"


def _truncate(file: Path, draw: Data) -> str:
    size = draw(st.integers(0, file.stat().st_size - 1))
    os.truncate(file, size)
    return f"to {size} bytes"


def _replace(file: Path, draw: Data) -> str:
    content = draw(st.binary(max_size=64))
    file.write_bytes(content)
    return f"by {content!r}"


def _append(file: Path, draw: Data) -> str:
    content = draw(st.binary(min_size=1, max_size=64))
    file.write_bytes(file.read_bytes() + content)
    return f"{content!r}"


def _delete(file: Path, draw: Data) -> str:
    file.unlink()
    return ""


def _folder(file: Path, draw: Data) -> str:
    file.unlink()
    file.mkdir()
    return ""


def _dangle(file: Path, draw: Data) -> str:
    file.unlink()
    file.symlink_to("nowhere")
    return ""


def _link(file: Path, draw: Data) -> str:
    """Replace a file by a link to its copy outside of the folder."""
    copy = Path(f"{_root(file)}-linked")
    shutil.copyfile(file, copy)
    file.unlink()
    file.symlink_to(copy)
    return ""


def _swap(file: Path, draw: Data) -> str:
    others = sorted(p for p in _root(file).rglob("*") if p.is_file() and p != file)
    other = draw(st.sampled_from(others))
    content = file.read_bytes()
    file.write_bytes(other.read_bytes())
    other.write_bytes(content)
    return f"with {other.relative_to(_root(file))}"


def _forbid(file: Path, draw: Data) -> str:
    file.chmod(0)
    return ""


def _lines(file: Path, draw: Data) -> str:
    lines = file.read_text().splitlines(keepends=True)
    what = draw(st.sampled_from(["doubled", "dropped", "cut", "swapped"]))
    place = draw(st.integers(0, len(lines) - 1))
    if what == "doubled":
        lines.insert(place, lines[place])
    elif what == "dropped":
        del lines[place]
    elif what == "cut":
        lines[place] = lines[place][: len(lines[place]) // 2] + "\n"
    else:
        lines[place], lines[place - 1] = lines[place - 1], lines[place]
    file.write_text("".join(lines))
    return f"line {place} {what}"


def _value(file: Path, draw: Data) -> str:
    """Change one value of a JSON file, or of one line of it, to another of its type."""
    return _edit(file, draw, lambda holder, key: _other(holder[key]))


def _type(file: Path, draw: Data) -> str:
    """Change one value of a JSON file to one of another type."""
    values = st.sampled_from([None, True, -1, 1e308, "text", [], {}, [[]], float("nan"), 10**30])
    return _edit(file, draw, lambda holder, key: draw(values))


def _remove(file: Path, draw: Data) -> str:
    return _edit(file, draw, None)


def _edit(file: Path, draw: Data, change: Callable[[Any, Any], Any] | None) -> str:
    lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    place = draw(st.integers(0, len(lines) - 1))
    data = json.loads(lines[place])
    holder, key, path = draw(st.sampled_from(_places(data)))
    if change is None:
        del holder[key]
        done = f"{path} removed"
    else:
        before = holder[key]
        holder[key] = change(holder, key)
        done = f"{path} from {str(before)[:40]!r} to {str(holder[key])[:40]!r}"
    indent = None if file.suffix == ".jsonl" else 2
    lines[place] = json.dumps(data, indent=indent)
    file.write_text("\n".join(lines) + "\n")
    return done


def _places(data: Any, path: str = "") -> list[tuple[Any, Any, str]]:
    """Return the holder, the key and the path of everything in JSON data."""
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    found = []
    for key in keys:
        found += [(data, key, f"{path}.{key}"), *_places(data[key], f"{path}.{key}")]
    return found


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 1
    if isinstance(value, str):
        return value[:-1] + ("a" if value[-1:] != "a" else "b")
    return [] if value else None


def _root(file: Path) -> Path:
    """Return the run folder of a file: the one below which everything is copied."""
    return next(p for p in file.parents if p.name == "run")


def _is_json(file: Path) -> bool:
    return file.suffix in (".json", ".jsonl")


def _is_lines(file: Path) -> bool:
    return file.suffix == ".jsonl"


def _has_content(file: Path) -> bool:
    return file.stat().st_size > 0


MUTATIONS = [
    Mutation("flip", _flip, _has_content),
    Mutation("truncate", _truncate, _has_content),
    Mutation("replace", _replace),
    Mutation("append", _append),
    Mutation("delete", _delete),
    Mutation("folder", _folder),
    Mutation("dangling link", _dangle),
    Mutation("link", _link),
    Mutation("swap", _swap),
    Mutation("lines", _lines, _is_lines),
    Mutation("value", _value, _is_json),
    Mutation("type", _type, _is_json),
    Mutation("remove", _remove, _is_json),
]
if os.geteuid():  # nothing is forbidden to root
    MUTATIONS.append(Mutation("forbid", _forbid))


def meaning(file: Path) -> Any:
    """Return what a file says, whatever its layout; ``None`` if it says nothing."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    try:
        if file.suffix == ".json":
            return repr(json.loads(content))
        if file.suffix == ".jsonl":
            return repr([json.loads(line) for line in content.splitlines()])
    except ValueError:
        pass
    return content
