"""The error raised when an optional dependency is missing."""

from __future__ import annotations

from prism_motor._checks import PrismError


class MissingExtraError(PrismError, ImportError):
    """A feature needs an extra that is not installed."""


def missing_extra(feature: str, extra: str, cause: ImportError) -> MissingExtraError:
    """Make the error for a failed import; raise it ``from`` the cause.

    Args:
        feature: What the user asked for, e.g. ``"prism_motor.export"``.
        extra: The extra of ``prism-motor`` that provides it.
        cause: The original error; if a Ctrl-C made the import fail, that is raised instead.
    """
    below: BaseException | None = cause
    while below is not None:
        if isinstance(below, KeyboardInterrupt):
            raise below
        below = below.__cause__ or below.__context__
    return MissingExtraError(
        f"{feature} needs {cause.name or 'a package'}, which is not installed. "
        f"Install it with: pip install 'prism-motor[{extra}]'"
    )
