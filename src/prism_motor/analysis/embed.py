"""``prism embed``: do features know about dynamics that no policy can sense?

Every policy walks under each condition from the same initial states and with the same commands.
Samples are matched: the same robots at the same control steps under every condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from prism_motor._checks import InputError, check_choice
from prism_motor._figures import BLUE, GREEN, GREY, INK, ORANGE, PINK, new_figure
from prism_motor._ranges import Seed, Threads, between
from prism_motor.analysis.embed_samples import (
    COMPONENTS,
    PERPLEXITY,
    SHUFFLES,
    Accuracy,
    match,
    measure,
    measure_shuffled,
    project,
)
from prism_motor.analysis.recording import record
from prism_motor.analysis.study import Finding, Report, ResultTable, Study, StudyConfig, silent
from prism_motor.analysis.subjects import Subject
from prism_motor.locomotion.conditions import CONDITIONS, find_condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 2000
"""Matched samples used per condition; neighbours in time hardly differ."""

_SHOWN = {
    "features": "features, %",
    "features, 50 components": "50 components, %",
    "observations": "raw observation, %",
    "observations, 50 components": "50 components of it, %",
}
"""Accuracies in the table, with their titles."""

_PANELS = 4
"""Most panels side by side."""

_LOOKS = {
    "nominal": (GREEN, "o"),
    "low-friction": (BLUE, "^"),
    "payload": (ORANGE, "s"),
    "pushes": (PINK, "D"),
    "training": (GREY, "v"),
}
"""Colour and marker of every condition; the first three as in the paper."""


class NotComparableError(InputError):
    """A policy does not walk well enough to be compared."""


@dataclass(frozen=True)
class EmbedConfig(StudyConfig, section="embed"):
    """Conditions, and how many samples."""

    conditions: tuple[str, ...] = ("nominal", "low-friction", "payload")
    """At least two of nominal, low-friction, payload, pushes, training."""
    envs: Annotated[int, between(5, 100_000)] = 40
    """Robots, the same under every condition; they are divided into five folds."""
    seconds: Annotated[float, between(1, 600)] = 6.0
    """How long each walks."""
    samples: Annotated[int, between(1, 100_000)] = 100
    """Samples per condition in the figure."""
    seed: Seed = 1000
    """Seed of walks, t-SNE and bootstrap."""
    threads: Threads = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_conditions(self.conditions, CONDITIONS, self.samples)


def check_conditions(conditions: Sequence[str], known: Iterable[str], samples: int) -> None:
    """Raise unless conditions can be told apart on this many samples of each."""
    for condition in conditions:
        check_choice("condition", condition, known)
    if len(set(conditions)) < max(2, len(conditions)):
        raise InputError(
            f"Give at least two conditions, each only once; got {', '.join(conditions)}."
        )
    if samples * len(conditions) <= 3 * PERPLEXITY:
        raise InputError(
            f"embed: {samples} samples per condition are too few for a perplexity of "
            f"{PERPLEXITY:g}; give at least 20."
        )


@dataclass(frozen=True)
class Embedding:
    """What the features of one policy know about the condition."""

    subject: Subject
    """The policy."""
    feature: str
    """Which features: the conditioner's output, or the first hidden layer without one."""
    width: int
    """How many."""
    samples: int
    """Matched samples per condition behind the accuracies."""
    robots: int
    """Robots that they come from."""
    accuracies: dict[str, Accuracy]
    """Accuracies by classifier input, see :func:`.embed_samples.measure`."""
    shuffled: list[float]
    """Accuracies from the features with shuffled labels."""
    points: np.ndarray
    """t-SNE of some of the samples, (conditions, points, 2)."""


def embed(subject: Subject, config: EmbedConfig, report: Report = silent) -> Embedding:
    """Let a policy walk under every condition and compare its features.

    Args:
        subject: The policy.
        config: Conditions, and how many samples.
        report: Called after every control step, and once after the figure and the accuracies.
    """
    policy = subject.policy
    for condition in config.conditions:
        find_condition(condition).apply(policy.config.task)
    rollouts = [
        record(
            policy, policy.config.task, condition, seed=config.seed, envs=config.envs,
            steps=_steps(subject, config), threads=config.threads, run=subject.path, report=report,
        )
        for condition in config.conditions
    ]  # fmt: skip
    feature = "conditioner" if "conditioner" in rollouts[0].features else "hidden_1"
    samples = match(rollouts, feature, policy.config.task.observations.actor_frames)
    if len(np.unique(samples.robots)) < 5 or len(samples.steps) < config.samples:
        raise NotComparableError(
            f"only {len(samples.steps)} steps of {len(np.unique(samples.robots))} robots have "
            f"counterparts under all of {', '.join(config.conditions)}, because the others fell; "
            f"{config.samples} steps of 5 robots are needed. Give a policy that walks."
        )
    samples = samples.thin(_MOST)
    points = project(samples.thin(config.samples).features, config.seed)
    found = Embedding(
        subject=subject,
        feature=feature,
        width=samples.features.shape[-1],
        samples=len(samples.steps),
        robots=len(np.unique(samples.robots)),
        accuracies=measure(samples, config.seed),
        shuffled=measure_shuffled(samples, config.seed),
        points=points,
    )
    report()
    return found


def count_work(subject: Subject, config: EmbedConfig) -> int:
    """Return how often :func:`embed` reports."""
    return len(config.conditions) * _steps(subject, config) + 1


def _steps(subject: Subject, config: EmbedConfig) -> int:
    return round(config.seconds / subject.policy.config.task.simulation.control_dt)


def make_table(found: Sequence[Embedding]) -> ResultTable:
    """Return the accuracies."""
    rows = [
        [
            embedding.subject.arm,
            str(embedding.subject.seed),
            f"{embedding.feature} ({embedding.width})",
            *(_percent(embedding.accuracies[name]) for name in _SHOWN),
            _range(embedding.shuffled),
        ]
        for embedding in found
    ]
    columns = ["arm", "training seed", "features (width)", *_SHOWN.values(), "labels shuffled, %"]
    return ResultTable(columns, rows)


def _caption(found: Sequence[Embedding], config: EmbedConfig) -> str:
    """Explain the numbers and the figure."""
    names = ", ".join(condition.replace("-", " ") for condition in config.conditions)
    counts = ", ".join(f"{one.samples} of {one.robots} robots" for one in found)
    return (
        f"Share of samples whose condition ({names}) a linear discriminant finds, with 95 % "
        f"intervals over robots; chance is {100 / len(config.conditions):.0f} % (last column: "
        f"labels shuffled per robot, mean and range of {SHUFFLES} shuffles). Every policy "
        "walks on its own; samples are matched, the same robots at the same steps with the same "
        f"commands under every condition ({counts} per condition), and robots are predicted by "
        "classifiers that never saw them. Intervals do not cover other trainings. Arms see their "
        "own states and have features of different width: compare each with its raw observation, "
        f"and at equal width with {COMPONENTS} principal components. Figure: t-SNE of "
        f"{config.samples} samples per condition, standardised, {COMPONENTS} principal components, "
        f"perplexity {PERPLEXITY:g}, seed {config.seed}; axes and distances between panels mean "
        "nothing."
    )


def _percent(accuracy: Accuracy) -> str:
    text = f"{100 * accuracy.value:.1f}"
    if accuracy.interval is None:
        return text
    low, high = accuracy.interval
    return f"{text} [{100 * low:.1f}, {100 * high:.1f}]"


def _range(values: Sequence[float]) -> str:
    low, mean, high = (100 * value for value in (min(values), fmean(values), max(values)))
    return f"{mean:.1f} ({low:.1f} to {high:.1f})"


def record_embedding(embedding: Embedding) -> dict[str, Any]:
    """Return an embedding as plain data."""
    return {
        **embedding.subject.about,
        "feature": embedding.feature,
        "width": embedding.width,
        "samples_per_condition": embedding.samples,
        "robots": embedding.robots,
        "accuracies": {
            name: {
                "value": accuracy.value,
                "interval": accuracy.interval,
                "confusion": accuracy.confusion.tolist(),
            }
            for name, accuracy in embedding.accuracies.items()
        },
        "shuffled": embedding.shuffled,
        "points": embedding.points.astype(float).round(4).tolist(),
    }


def draw_embeddings(found: Sequence[Embedding], conditions: Sequence[str]) -> Figure:
    """Draw the t-SNE of every policy, and how well its conditions can be separated."""
    columns = min(_PANELS, len(found))
    rows = -(-len(found) // columns)
    figure = new_figure(max(4.6, 3.7 * columns), 4.25 * rows + 0.45)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, embedding in zip(axes, found, strict=False):
        _draw_panel(axis, embedding, conditions)
    for axis in axes[len(found) :]:
        axis.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, [label.replace("-", " ") for label in labels], loc="outside lower center",
        ncols=len(labels), frameon=False, markerscale=1.4,
    )  # fmt: skip
    return figure


def _draw_panel(axis: Axes, embedding: Embedding, conditions: Sequence[str]) -> None:
    for condition, points in zip(conditions, embedding.points, strict=True):
        colour, marker = _LOOKS[condition]
        axis.scatter(
            points[:, 0], points[:, 1], s=16, marker=marker, color=colour, alpha=0.75, lw=0,
            label=condition,
        )  # fmt: skip
    subject = embedding.subject
    axis.set_title(f"{subject.arm}, training seed {subject.seed}")
    lines = []
    for name, title in (("features", "features"), ("observations", "raw observation")):
        accuracy = embedding.accuracies[name]
        text = f"{title}: {100 * accuracy.value:.0f} %"
        if accuracy.interval is not None:
            low, high = accuracy.interval
            text += f" [{100 * low:.0f}, {100 * high:.0f}]"
        lines.append(text)
    lines.append(f"chance: {100 / len(conditions):.0f} %")
    axis.set_xlabel("separated linearly by\n" + "\n".join(lines), fontsize=9, color=INK)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="datalim")
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_color("#bbbbbb")


def embed_each(
    subjects: Sequence[Subject], embed_one: Callable[[Subject], Embedding]
) -> tuple[list[Embedding], list[str]]:
    """Embed policies; return what was found, and why others are left out."""
    found, left_out = [], []
    for subject in subjects:
        try:
            found.append(embed_one(subject))
        except NotComparableError as error:
            left_out.append(f"{subject.path} is left out: {error}")
    if not found:
        raise InputError(" ".join(["None of the policies could be embedded.", *left_out]))
    return found, left_out


def _count(subjects: Sequence[Subject], config: EmbedConfig) -> int:
    return sum(count_work(subject, config) for subject in subjects)


def _run(subjects: Sequence[Subject], config: EmbedConfig, report: Report) -> Finding:
    found, left_out = embed_each(subjects, lambda subject: embed(subject, config, report))
    return Finding(
        title="Do the features know about friction and payload?",
        caption=_caption(found, config),
        tables={"": make_table(found)},
        data={
            "chance": 1 / len(config.conditions),
            "policies": [record_embedding(embedding) for embedding in found],
        },
        figures={"embed": lambda: draw_embeddings(found, config.conditions)},
        left_out=left_out,
    )


EMBED = Study(
    name="embed",
    domain="locomotion",
    help="""Embed features under different dynamics and measure how well these can be separated.

Every policy walks under each condition from the same states with the same commands. Writes
embed.json and embed.png: a t-SNE per run, and cross-validated accuracies.""",
    config=EmbedConfig,
    count=_count,
    run=_run,
)
"""``prism embed``."""
