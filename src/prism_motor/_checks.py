"""Errors that a user can fix, and the checks that raise them.

The command line prints a :class:`PrismError` as one message and exits with code 2. Anything else
that escapes is our bug and comes with a traceback. Messages say what was given, what is allowed and
what to do.
"""

from __future__ import annotations

import difflib
import errno
import re
import shutil
from collections.abc import Iterable
from typing import Any

# Raised for a full disk, a wrong path or missing permissions; other OSErrors are bugs.
_SYSTEM_ERRORS = (
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EEXIST,
    errno.ENOTDIR, errno.EISDIR, errno.EMFILE, errno.ENFILE, errno.EADDRINUSE, errno.ENAMETOOLONG,
)  # fmt: skip

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some space on the disk and try again."),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "Choose another folder."),
}
"""What to do about a system error that does not say it itself."""


class PrismError(Exception):
    """Something that the user can fix; its message says how."""


class InputError(PrismError, ValueError):
    """A given value is not allowed."""


class InputTypeError(PrismError, TypeError):
    """A given value has the wrong type."""


class EvaluationError(PrismError, FloatingPointError):
    """A policy or the simulation produced values that are not finite."""


class BugError(RuntimeError):
    """A bug in another process; the message is the traceback from there."""


def find_mistake(error: BaseException) -> str | None:
    """Return the message for the user if an error is something to put right; ``None`` for a bug."""
    if isinstance(error, PrismError):
        return str(error)
    if isinstance(error, shutil.Error):  # of many files, with a reason in words for each
        copies = [one for one in error.args[0] if isinstance(one, tuple)]
        if not copies:
            return None
        why = re.sub(r"^\[Errno \d+\] |: '.*", "", str(copies[0][2]))
        return f"{copies[0][1]} could not be written: {why}."
    if isinstance(error, OSError) and error.errno in _SYSTEM_ERRORS:
        where = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno)
        return f"{where}{error.strerror or error}{f'. {remedy}' if remedy else ''}"
    return None


def check_size(owner: str, name: str, value: object) -> int:
    """Return ``value`` if it is a positive integer, else raise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputTypeError(
            f"{owner}: {name} must be a positive integer, got {value!r} ({type(value).__name__})."
        )
    if value < 1:
        raise InputError(f"{owner}: {name} must be at least 1, got {value}.")
    return value


def check_choice(what: str, given: object, allowed: Iterable[str]) -> str:
    """Return ``given`` if it is one of ``allowed``, else raise and suggest the nearest name."""
    names = sorted(allowed)
    if isinstance(given, str) and given in names:
        return given
    hint = suggest(show(given).strip("'"), names)
    raise InputError(f"Unknown {what} {show(given)}; choose one of: {', '.join(names)}.{hint}")


def suggest(given: str, names: Iterable[str]) -> str:
    """Return a sentence with the name nearest to what was given; empty if none is near."""
    close = difflib.get_close_matches(given, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


LONGEST_NAME = 100
"""Characters that a name may have."""

_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
"""Names that Windows keeps for devices."""


def check_name(what: str, name: object, *, also: str = "", longest: int = LONGEST_NAME) -> str:
    """Return a name that becomes that of a folder or file, or part of it; raise if it cannot.

    Args:
        what: What it names, for the message.
        name: The name.
        also: Characters that are allowed besides letters, digits, ``.``, ``_`` and ``-``.
        longest: Most characters.
    """
    problem = None
    if not isinstance(name, str) or not name:
        problem = "give a text"
    elif len(name) > longest:
        problem = f"it may have up to {longest} characters"
    elif not re.fullmatch(rf"\w[\w.\-{re.escape(also)}]*", name) or name.endswith((".", " ")):
        more = "".join(f", {sign!r}" for sign in also)
        problem = f"use letters, digits, '.', '_' and '-'{more}, and begin with a letter or digit"
    elif _DEVICES.fullmatch(name):
        problem = "Windows keeps this name for a device"
    if problem is not None:
        article = "an" if what[0] in "aeiou" else "a"
        raise InputError(
            f"{show(name)} cannot be the name of {article} {what}, which names a folder or a "
            f"file: {problem}."
        )
    assert isinstance(name, str)
    return name


def show(value: Any) -> str:
    """Return a value as it is written in a message, shortened."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list in itself
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def check_degree(owner: str, degree: object) -> int:
    """Return ``degree`` if it is an integer of at least one, else raise."""
    if isinstance(degree, bool) or not isinstance(degree, int):
        raise InputTypeError(
            f"{owner}: degree must be an integer >= 1, got {degree!r} ({type(degree).__name__})."
        )
    if degree < 1:
        raise InputError(
            f"{owner}: degree must be at least 1, got {degree}. "
            "Degree 1 is a plain linear map, degree 2 (the default) adds pairwise products."
        )
    return degree
