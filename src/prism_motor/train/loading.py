"""Loading trained policies: what all domains have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_motor.domains import open_run, require_domain
from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import Checkpoint


@dataclass(frozen=True)
class TrainedRun:
    """A run of a domain, with the checkpoint that is loaded."""

    path: Path
    """The run folder."""
    config: Any
    """How it was trained: the settings of its domain."""
    checkpoint: Checkpoint
    """Its weights."""

    @contextmanager
    def loading(self, what: str) -> Iterator[None]:
        """Let weights that do not fit be an error about the run.

        Args:
            what: What the weights belong to, for the message.
        """
        try:
            yield
        except RunError:
            raise
        except RuntimeError as error:
            raise RunError(
                f"The checkpoint {self.checkpoint.step} of {self.path} does not fit the {what} "
                f"that its config.json describes: {error}"
            ) from error


def open_trained(path: str | Path, domain: str, step: int | None = None) -> TrainedRun:
    """Open a run of a domain to load its policy.

    Args:
        path: The run folder, or the name of a shipped policy.
        domain: Name of the domain; a run of another one is an error.
        step: Which checkpoint; the reported one, or the newest, by default.
    """
    require_domain(path, domain, "this")
    run, _, config = open_run(path)
    return TrainedRun(run.path, config, run.load(step))
