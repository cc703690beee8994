"""The base of all errors that a user can put right.

The command line prints a :class:`PrismError` as one message and exits with code 2. Anything else
that escapes is a bug of ours and comes with a traceback.
"""

from __future__ import annotations


class PrismError(Exception):
    """Something that the user can put right; its message says how."""


class InputError(PrismError, ValueError):
    """A value that was given is not allowed."""


class InputTypeError(PrismError, TypeError):
    """A value that was given is of the wrong type."""
