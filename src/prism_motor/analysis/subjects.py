"""The policies that a study compares, and why some of them had to be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from prism_motor._checks import InputError
from prism_motor._devices import resolve_device
from prism_motor.analysis.study import StudyConfig
from prism_motor.domains import DOMAINS
from prism_motor.runs import RunError
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.statistics import Interval, estimate

_INCIDENTAL = ("seed", "threads", "device", "updates", "demos")
"""Settings of a run in which the policies of one arm may differ."""


class HasArm(Protocol):
    """Anything that belongs to an arm."""

    @property
    def arm(self) -> str:
        """Name of the arm."""
        ...


A = TypeVar("A", bound=HasArm)


@dataclass(frozen=True)
class Subject:
    """A policy with the name that tables and figures give it."""

    path: Path
    """Its run folder."""
    policy: Any
    """The policy, of its domain's class."""
    arm: str
    """Arm that it is counted with."""

    @property
    def seed(self) -> int:
        """Its training seed."""
        return self.policy.config.seed

    @property
    def about(self) -> dict[str, Any]:
        """Where it came from, for the record."""
        config = self.policy.config
        network = getattr(self.policy, "actor", None) or self.policy.network
        conditioner = getattr(config, "conditioner", None)
        return {
            "run": str(self.path),
            "arm": self.arm,
            "preset": config.preset,
            **({} if conditioner is None else {"conditioner": conditioner.kind}),
            "training_seed": config.seed,
            "checkpoint": self.policy.step,
            "policy_sha256": hash_weights(network.state_dict()),
        }


def load_subjects(
    paths: Sequence[Path],
    checkpoint: int | None = None,
    *,
    domain: str = "locomotion",
    device: str | None = None,
) -> tuple[list[Subject], list[str]]:
    """Load what can be loaded; return the policies and a sentence per run left out.

    Args:
        paths: Run folders, each once.
        checkpoint: Which checkpoint; the newest by default.
        domain: Name of their domain.
        device: Where they compute; default: where they were trained, or the CPU.
    """
    if not paths:
        raise InputError("Give at least one run folder.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"Give every run only once, got: {', '.join(map(str, paths))}.")
    if device is not None:
        device = resolve_device(device)  # missing: an error, not a reason to leave runs out
    found: list[Subject] = []
    left_out: list[str] = []
    for path in paths:
        try:
            policy = DOMAINS[domain].place_subject(path, checkpoint, device)
        except (RunError, InputError) as error:
            left_out.append(f"{path} is left out: {error}")
        else:
            found.append(Subject(path, policy, policy.config.arm))
    if not found:
        raise RunError("There is no policy to analyse. " + " ".join(left_out))
    return name_arms(found), left_out


def name_arms(subjects: Iterable[Subject]) -> list[Subject]:
    """Name policies by their arms, or by their folders where an arm's runs are not comparable.

    They are not if they differ in more than the training seed, or if a seed occurs twice.
    """
    subjects = list(subjects)
    kinds: dict[str, set[str]] = {}
    seeds: dict[str, list[int]] = {}
    for subject in subjects:
        arm = subject.policy.config.arm
        kinds.setdefault(arm, set()).add(_settings(subject.policy))
        seeds.setdefault(arm, []).append(subject.seed)
    mixed = {arm for arm in kinds if len(kinds[arm]) > 1 or len(set(seeds[arm])) < len(seeds[arm])}
    arms = [subject.policy.config.arm for subject in subjects]
    return [
        replace(subject, arm=str(subject.path) if arm in mixed else arm)
        for subject, arm in zip(subjects, arms, strict=True)
    ]


def _settings(policy: Any) -> str:
    """Return the settings that define an arm."""
    config = policy.config
    kept = [f.name for f in fields(config) if f.name not in _INCIDENTAL]
    return repr(([(name, getattr(config, name)) for name in kept], policy.step))


def by_arm(items: Iterable[A]) -> dict[str, list[A]]:
    """Group items by arm, in order of appearance."""
    groups: dict[str, list[A]] = {}
    for item in items:
        groups.setdefault(item.arm, []).append(item)
    return groups


@dataclass(frozen=True)
class ArmMean:
    """A number of one arm: mean over training seeds, or that of its only policy."""

    value: float
    """The mean."""
    low: float | None
    """mean - SD over training seeds, or the lower end of the interval of the only policy."""
    high: float | None
    """The other end."""
    seeds: int
    """Number of policies."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Both ends; where there is no interval, the value."""
        if self.low is None or self.high is None:
            return self.value, self.value
        return self.low, self.high

    def write(self, digits: int, scale: float = 1.0, sign: str = "") -> str:
        """Return it as text, in units of ``1 / scale``; ``sign="+"`` shows every sign."""
        form = f"{sign}.{digits}f"
        value = f"{scale * self.value:{form}}"
        if self.low is None or self.high is None:
            return value
        if self.seeds > 1:
            return f"{value} ± {scale * (self.high - self.value):.{digits}f}"
        return f"{value} [{scale * self.low:{form}}, {scale * self.high:{form}}]"


def mean_over_seeds(
    values: Sequence[float], interval: Callable[[], Interval | tuple[float, float] | None]
) -> ArmMean:
    """Average the policies of an arm.

    Args:
        values: One per policy.
        interval: Gives the 95 % interval if there is only one policy.
    """
    if len(values) == 1:
        low, high = interval() or (None, None)
        return ArmMean(values[0], low, high, 1)
    found = estimate(values)
    spread = found.sd or 0.0
    return ArmMean(found.centre, found.centre - spread, found.centre + spread, len(values))


def keep_alike(
    subjects: Sequence[Subject],
    differ: Callable[[Subject, Subject], str],
    like: Subject | None = None,
) -> tuple[list[Subject], list[str]]:
    """Keep the policies that can be compared; return them and why others are left out.

    Args:
        subjects: The policies.
        differ: Says how the second policy differs from the first; empty if they are alike.
        like: The policy to match; default: the first.
    """
    first = like or subjects[0]
    reasons = [(subject, differ(first, subject)) for subject in subjects]
    left_out = [f"{subject.path} is left out: {why}" for subject, why in reasons if why]
    return name_arms(subject for subject, why in reasons if not why), left_out


_LAYOUT = ("robot", "simulation", "gait", "actions", "observations")
"""Parts of a walking task that decide what an observation means and what an action does."""


def same_layout(
    subjects: Sequence[Subject], like: Subject | None = None
) -> tuple[list[Subject], list[str]]:
    """Keep the walking policies with the same inputs and outputs; see :func:`keep_alike`."""

    def differ(first: Subject, other: Subject) -> str:
        # The condition decides about noise.
        one, two = (
            replace(task, observations=replace(task.observations, noise=0.0))
            for task in (first.policy.config.task, other.policy.config.task)
        )
        parts = [part for part in _LAYOUT if getattr(one, part) != getattr(two, part)]
        if not parts:
            return ""
        return (
            f"its task differs from that of {first.path} in {', '.join(parts)}, so they do not "
            "see the same observations."
        )

    return keep_alike(subjects, differ, like)


def same_robot(subjects: Sequence[Subject]) -> tuple[list[Subject], list[str]]:
    """Keep the walking policies of the first one's robot; see :func:`keep_alike`."""

    def differ(first: Subject, other: Subject) -> str:
        robots = [subject.policy.config.task.robot for subject in (first, other)]
        if robots[0] == robots[1]:
            return ""
        return f"it moves the robot {robots[1]}, {first.path} the {robots[0]}."

    return keep_alike(subjects, differ)


def load_same_task(
    paths: Sequence[Path], checkpoint: int | None = None, config: StudyConfig | None = None
) -> tuple[list[Subject], list[str]]:
    """Load manipulation policies; the first that can be loaded decides the task."""
    device = None if config is None else config.device
    subjects, left_out = load_subjects(paths, checkpoint, domain="manipulation", device=device)

    def differ(first: Subject, other: Subject) -> str:
        seen = [_inputs(subject) for subject in (first, other)]
        if seen[0] == seen[1]:
            return ""
        return f"it was trained on {seen[1]}, {first.path} on {seen[0]}."

    subjects, differing = keep_alike(subjects, differ)
    return subjects, left_out + differing


def _inputs(subject: Subject) -> str:
    """Describe what a manipulation policy does and what it looks at."""
    task, network = subject.policy.config.task, subject.policy.config.network
    size = ""
    if network.inputs == "images":
        drawn = network.drawn_size or network.image_size
        size = f" of {network.image_size} pixels (drawn {network.renderer} at {drawn})"
    return f"{task.suite} {task.name} with {network.inputs}{size}"
