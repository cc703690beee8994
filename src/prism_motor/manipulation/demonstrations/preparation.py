"""Demonstrations as part of a campaign: recorded once per variant, before any arm trains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from prism_motor._checks import InputError
from prism_motor._ranges import Checked, Seed, between
from prism_motor.manipulation.tasks import dataset_name, find_suite, find_tasks
from prism_motor.runs.configs import find_differences, flatten, to_flags
from prism_motor.runs.layout import DEMOS

if TYPE_CHECKING:
    from prism_motor.manipulation.config import ManipulationConfig


@dataclass(frozen=True)
class DemonstrationSettings(Checked, section="demonstrations"):
    """Demonstrations that scripted experts record for a campaign."""

    episodes: Annotated[int, between(1, 100_000)] = 50
    """Demonstrations per variant."""
    seed: Seed = 1
    """Seed of resets and noise."""
    noise: Annotated[float, between(0, 100)] = 0.0
    """Standard deviation of noise on the executed actions of the hand."""


@dataclass(frozen=True)
class DemonstrationPreparation:
    """The demonstrations of one variant."""

    path: Path
    """The folder of the dataset."""
    suite: str
    """The suite."""
    task: str
    """Name of the task."""
    image_size: int
    """Side of the images, pixels; 0 for none."""
    renderer: str
    """How images are drawn."""
    wanted: DemonstrationSettings
    """Number of demonstrations, seed and noise."""

    title = "demonstrations"
    verb = "record"
    unit = "demonstration"

    @property
    def seed(self) -> int:
        """Seed of resets and noise."""
        return self.wanted.seed

    @property
    def total(self) -> int:
        """Number of demonstrations required."""
        return self.wanted.episodes

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that point runs to the demonstrations."""
        return {"demos": str(self.path)}

    def command(self) -> list[str]:
        """Return the arguments of ``prism`` that record the missing ones."""
        from prism_motor.manipulation.demonstrations.collection import CollectionConfig

        wanted = CollectionConfig(**self._identity())
        return ["record", *to_flags(wanted), "--out", str(self.path)]

    def check(self) -> None:
        """Reject an existing dataset with other settings."""
        from prism_motor.manipulation.demonstrations.collection import ORIGIN

        if not self.path.exists():
            return
        try:
            found = json.loads((self.path / ORIGIN).read_text())["collection"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path} is in the way: it was not written by prism record."
            ) from error
        wanted = self._identity()
        # Datasets from before these options do not mention them.
        found = {"noise": 0.0, "renderer": "fast"} | {
            key: found.get(key) for key in wanted if key in found
        }
        if differences := find_differences(found, wanted):
            listed = "; ".join(
                f"{key} is {was!r} there and {now!r} in the campaign"
                for key, (was, now) in differences.items()
            )
            raise InputError(
                f"{self.path} holds other demonstrations: {listed}. Change the campaign back, or "
                "use another folder (--out), or move them elsewhere."
            )

    def count_done(self) -> int:
        """Return the number of recorded demonstrations."""
        if self.path.exists():
            return self.total
        # The work is not done before the dataset is written, even if all are recorded.
        return min(self.total - 1, len(self._recorded()))

    def progress(self) -> tuple[int, float] | None:
        """Return the number of recorded demonstrations and the seconds they took."""
        times = [file.stat().st_mtime for file in self._recorded()]
        return (len(times), max(times) - min(times)) if len(times) > 1 else None

    def _recorded(self) -> list[Path]:
        return list(self.path.with_name(f"{self.path.name}.partial").glob("*.npz"))

    def _identity(self) -> dict[str, Any]:
        """Return the fields that identify a dataset."""
        return {
            "suite": self.suite,
            "task": self.task,
            "image_size": self.image_size,
            "renderer": self.renderer,
            **asdict(self.wanted),
        }


def plan_demonstrations(
    settings: DemonstrationSettings,
    folder: Path,
    configs: Mapping[str, Sequence[ManipulationConfig]],
) -> dict[str, DemonstrationPreparation]:
    """Return what to record by variant, without variants that name existing demonstrations.

    Args:
        settings: Number of demonstrations, seed and noise.
        folder: The campaign's folder.
        configs: Run configs of all arms by variant.
    """
    found = {}
    for variant, arms in configs.items():
        if all(config.demos for config in arms):
            continue
        task = arms[0].task
        if len(find_tasks(task.suite, task.name)) > 1:
            raise InputError(
                f"{variant or task.suite}: campaigns record demonstrations of one task, and "
                f"{task.name} of {task.suite} are several. Record each with prism record, and name "
                "their folder as demos."
            )
        image_size, renderer = _drawing(variant or task.name, arms)
        found[variant] = DemonstrationPreparation(
            path=folder / DEMOS / (variant or dataset_name(task.suite, task.name)),
            suite=task.suite,
            task=task.name,
            image_size=image_size,
            renderer=renderer,
            wanted=settings,
        )
    return found


def _drawing(variant: str, arms: Sequence[ManipulationConfig]) -> tuple[int, str]:
    """Return size and renderer of the images, which must be the same for all arms."""
    several = "renderer" in find_suite(arms[0].task.suite).options
    ways = {
        (network.image_size, network.renderer if several else "fast")
        if network.inputs == "images"
        else (0, "fast")
        for network in (config.network for config in arms)
    }
    if len(ways) > 1:
        listed = ", ".join(f"{size} pixels {renderer}" for size, renderer in sorted(ways))
        raise InputError(
            f"The arms of {variant} use different images ({listed}; 0: none), so they cannot "
            "share demonstrations. Name existing demonstrations (demos), or give all arms the "
            "same size and renderer."
        )
    return ways.pop()


def upgrade_campaign(data: dict[str, Any]) -> dict[str, Any]:
    """Return a campaign file of an earlier version with current names."""
    data = dict(data)
    if "demonstrations" in data:
        data["preparation"] = data.pop("demonstrations")
    if "tasks" in data:
        data["variants"] = [_variant(task) for task in data.pop("tasks")]
    if "arms" in data:
        data["arms"] = [_arm(arm) for arm in data["arms"]]
    return data


def _variant(task: dict[str, Any]) -> dict[str, Any]:
    """Turn a task into a variant that sets the task."""
    rest = {key: value for key, value in task.items() if key not in ("suite", "task", "demos")}
    names = {"task.suite": "suite", "task.name": "task", "demos": "demos"}
    own = {key: task[name] for key, name in names.items() if task.get(name) is not None}
    return {**rest, "overrides": {**own, **flatten(rest.get("overrides", {}))}}


def _arm(arm: dict[str, Any]) -> dict[str, Any]:
    """Turn an MLP that an override made larger into today's arm for it."""
    overrides = flatten(arm.get("overrides", {}))
    size = overrides.pop("conditioner.mlp_size", None)
    if size is None:
        return arm
    sizes = {"larger": "mlp-large", "large": "mlp-large"}
    return {**arm, "arm": sizes.get(size, "mlp-matched"), "overrides": overrides}
