"""Turn a run into a shipped policy, for maintainers: ``python -m prism_motor.train.ship RUN NAME``.

It contains what evaluation, videos, explanations and export need: the actor's weights, the config,
the evaluations of exactly these weights and enough metrics for a learning curve. Folders in command
lines are removed, because they identify a machine. See :mod:`prism_motor.runs.shipped`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from prism_motor._checks import InputError, PrismError
from prism_motor.domains import open_run
from prism_motor.runs import Run, RunError
from prism_motor.runs.atomic import atomic_folder
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.runs.layout import EVALUATIONS
from prism_motor.runs.records import write_record
from prism_motor.runs.shipped import SHIPPED

LARGEST = 3_000_000
"""Largest size of a shipped policy in bytes."""


def ship(run: str | Path, name: str, parent: Path = SHIPPED) -> Path:
    """Write a shipped policy and check its weights; replaces a policy of the same name.

    Args:
        run: The trained run; its newest checkpoint is used.
        name: Name of the shipped policy.
        parent: Folder of the shipped policies.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise InputError(f"Names use lower-case letters, digits and single hyphens, got {name!r}.")
    source, domain, _ = open_run(run)
    weights = hash_weights(source.weights(domain.weights))
    parent.mkdir(exist_ok=True)
    target = parent / name
    with atomic_folder(target) as temporary:
        _write(source, (domain.weights, *domain.weights_extra), weights, temporary)
        for companion in domain.companions:
            if (source.path / companion).is_file():
                shutil.copyfile(source.path / companion, temporary / companion)
        domain.load_policy(temporary)
        if hash_weights(Run.open(temporary).weights(domain.weights)) != weights:
            raise RunError(f"The weights of {source.path} changed in the copy; nothing is kept.")
        size = folder_size(temporary)
        if size > LARGEST:
            raise RunError(
                f"{name} would be {size / 1e6:.2f} MB; at most {LARGEST / 1e6:.1f} MB are allowed. "
                "Use a smaller network, or move some of the evaluations elsewhere."
            )
    return target


def folder_size(folder: Path) -> int:
    """Return the total size of all files in a folder in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _write(source: Run, prefixes: tuple[str, ...], weights: str, folder: Path) -> None:
    """Fill a folder with the parts of a run that are shipped."""
    write_record(source, folder, digits=None)
    (folder / EVALUATIONS).mkdir(exist_ok=True)
    for file in (folder / EVALUATIONS).iterdir():
        if json.loads(file.read_text()).get("policy_sha256") != weights:
            file.unlink()
    checkpoint = source.load()
    policy = {k: v for k, v in checkpoint.tensors.items() if k.startswith(prefixes)}
    kept = ("updates", "seconds", "world_size")
    state = {key: checkpoint.state[key] for key in kept if key in checkpoint.state}
    Run(folder, source.config).save(checkpoint.step, policy, state)


def main() -> None:
    """Run as a command."""
    import tyro

    try:
        folder = tyro.cli(
            ship,
            prog="python -m prism_motor.train.ship",
            config=(tyro.conf.PositionalRequiredArgs,),
        )
    except (PrismError, OSError) as error:
        sys.exit(f"ship: error: {error}")
    found = sorted(file.stem for file in (folder / EVALUATIONS).iterdir())
    print(
        f"{folder}: {folder_size(folder) / 1e6:.2f} MB, evaluations: {', '.join(found) or 'none'}"
    )


if __name__ == "__main__":
    main()
