"""Places where the jobs of a campaign run: this machine, a Ray cluster or Slurm.

The runner plans, a place does three things: start a job, poll it, stop it. What a job does is the
same everywhere (:mod:`prism_motor.campaigns.places.node`), and so is its state: the folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

from prism_motor._checks import InputError
from prism_motor.campaigns.places.node import Order

PLACES = "local, ray, ray://HOST:PORT or slurm"
"""What ``--on`` may be."""


class Handle(Protocol):
    """A job that was started."""

    def poll(self) -> int | None:
        """Return its exit code, or ``None`` while it waits or runs."""
        ...

    def stop(self, number: int) -> None:
        """Let it save and end, as a signal does."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


class JobPlace(Protocol):
    """Where jobs run; a context manager that is entered before the first job."""

    remote: bool
    """Whether jobs may run on other machines, which then choose device and time to start."""

    @property
    def slots(self) -> int:
        """Number of jobs at a time unless the user gives one."""
        ...

    def start(self, order: Order, log: IO[str]) -> Handle:
        """Start a job; ``log`` is open and locked, and may be inherited."""
        ...

    def __enter__(self) -> JobPlace: ...

    def __exit__(self, *error: object) -> None: ...


def choose_place(
    on: str, folder: Path, *, gpus: float | None = None, slurm: Mapping[str, str] | None = None
) -> JobPlace:
    """Return a place by name; its packages are imported here, so a missing one is an early error.

    Args:
        on: One of :data:`PLACES`.
        folder: The campaign's folder.
        gpus: GPUs per job; default: one for jobs on cuda, none for others.
        slurm: Parameters of Slurm jobs.
    """
    if slurm and on != "slurm":
        raise InputError("--slurm: these are parameters of Slurm jobs; add --on slurm.")
    if on == "local":
        from prism_motor.campaigns.places.local import LocalPlace

        if gpus is not None:
            raise InputError("--gpus: local jobs share all GPUs of the machine; add --on ray.")
        return LocalPlace()
    if on == "slurm":
        from prism_motor.campaigns.places.slurm import SlurmPlace

        return SlurmPlace(folder, gpus=gpus, parameters=slurm or {})
    if on != "ray" and not re.fullmatch(r"ray://[^/\s]+:[0-9]{1,5}", on):
        raise InputError(f"--on must be {PLACES}, got {on!r}.")
    from prism_motor.campaigns.places.ray_cluster import RayPlace

    return RayPlace(None if on == "ray" else on, gpus=gpus)
