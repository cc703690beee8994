"""``prism libero``: set up LIBERO on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def libero(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Prepare LIBERO, or check whether it is ready.

    Args:
        arguments: Arguments after ``prism libero``.
        plugins: User modules, already loaded.
    """
    import tyro

    tyro.extras.subcommand_cli_from_dict(SUBCOMMANDS, args=list(arguments), prog="prism libero")


def prepare(assets: Path | None = None) -> None:
    """Write LIBERO's config file and get its assets, without prompts.

    Args:
        assets: An archive (.tar, .tar.gz, .tar.xz, .zip) or a folder of LIBERO's assets; default:
            existing assets, else the hub.
    """
    from prism_motor.manipulation.suites.libero.preparation import prepare as prepare_libero

    state = prepare_libero(assets)
    print(state)
    if not state.ready:
        sys.exit(2)
    print("LIBERO is ready.")


def check() -> None:
    """Show where LIBERO's files are and what is missing."""
    from prism_motor.manipulation.suites.libero.preparation import COMMAND
    from prism_motor.manipulation.suites.libero.preparation import check as check_libero

    state = check_libero()
    print(state)
    if not state.ready:
        print(f"LIBERO is not ready. Run: {COMMAND}", file=sys.stderr)
        sys.exit(2)
    print("LIBERO is ready.")


SUBCOMMANDS = {"prepare": prepare, "check": check}
