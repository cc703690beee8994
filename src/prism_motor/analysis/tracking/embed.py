"""``prism embed`` of tracking policies: the paper's Figure 5, and how well conditions separate.

The figure has the same steps of one motion under every condition, tracked from its first frame.
Accuracies come from disjoint stretches of the motion, each tracked from its own first frame: a
classifier never saw the stretch that it judges. Steps count while a robot stands under every
condition; one on the floor would be easy to tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch

from prism_motor._checks import InputError
from prism_motor._ranges import Seed, Threads, between
from prism_motor.analysis.embed import (
    Embedding,
    NotComparableError,
    check_conditions,
    draw_embeddings,
    embed_each,
    make_table,
    record_embedding,
)
from prism_motor.analysis.embed_samples import (
    COMPONENTS,
    FOLDS,
    PERPLEXITY,
    SHUFFLES,
    MatchedSamples,
    measure,
    measure_shuffled,
    project,
)
from prism_motor.analysis.study import Finding, Report, Study, StudyConfig, silent
from prism_motor.analysis.subjects import Subject
from prism_motor.analysis.tracking.rollouts import TrackingRows, follow, read_clips
from prism_motor.tracking.conditions import CONDITIONS
from prism_motor.tracking.evaluation import Piece
from prism_motor.tracking.learning.networks import ACTOR_STREAMS
from prism_motor.tracking.loading import LoadedPolicy
from prism_motor.tracking.references import References

_LONGEST = 10.0
"""How long the motion of the figure is tracked at most, s."""


@dataclass(frozen=True)
class TrackingEmbedConfig(StudyConfig, section="embed"):
    """Conditions, the motion, and how many samples."""

    conditions: tuple[str, ...] = ("nominal", "low-friction", "payload")
    """At least two of nominal, low-friction, payload, training."""
    motion: str = ""
    """Clip to track: the name of a shipped one, or a file; default: the longest of the training."""
    samples: Annotated[int, between(1, 100_000)] = 30
    """Samples per condition in the figure, as in the paper."""
    stretches: Annotated[int, between(FOLDS, 10_000)] = 20
    """Disjoint stretches of the motion for the accuracies; they are divided into five folds."""
    seed: Seed = 1000
    """Seed of t-SNE and bootstrap."""
    threads: Threads = 1
    """Threads of the simulation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_conditions(self.conditions, CONDITIONS, self.samples)


def embed(subject: Subject, config: TrackingEmbedConfig, report: Report = silent) -> Embedding:
    """Let a policy track a motion under every condition and compare its features."""
    loaded: LoadedPolicy = subject.policy
    references, pieces = _plan(loaded, config)
    rows = [
        follow(
            loaded, references, pieces, condition, seed=config.seed, threads=config.threads,
            report=report,
        )[0]
        for condition in config.conditions
    ]  # fmt: skip
    matched = _match(loaded, rows)
    shown, judged = (_select(matched, matched.robots == 0), _select(matched, matched.robots > 0))
    if len(shown.steps) < config.samples:
        raise NotComparableError(
            f"it stands for only {len(shown.steps)} steps of {pieces[0].clip} "
            f"under all of {', '.join(config.conditions)}; {config.samples} are needed. Give a "
            "policy that stands for longer, another --motion, or fewer --samples."
        )
    found = Embedding(
        subject=subject,
        feature="both embeddings",
        width=matched.features.shape[-1],
        samples=len(judged.steps),
        robots=len(np.unique(judged.robots)),
        accuracies=measure(judged, config.seed),
        shuffled=measure_shuffled(judged, config.seed),
        points=project(shown.thin(config.samples).features, config.seed),
    )
    report()
    return found


def _plan(loaded: LoadedPolicy, config: TrackingEmbedConfig) -> tuple[References, list[Piece]]:
    """Return the clips, and of one motion its beginning and disjoint stretches of all of it."""
    references = read_clips(loaded, config.motion)
    index = int(references.lengths.argmax())
    name, first = references.names[index], int(references.starts[index])
    length = int(references.lengths[index])
    least = loaded.config.task.history + 3
    if length // config.stretches < least:
        raise InputError(
            f"{name} has {length} frames, so {config.stretches} stretches of at least {least} do "
            f"not fit. Give a longer --motion, or at most --stretches {length // least}."
        )
    whole = min(length, round(_LONGEST / loaded.config.task.control_dt))
    cuts = np.linspace(0, length, config.stretches + 1).astype(int).tolist()
    stretches = [
        Piece(name, number, first + start, stop - start)
        for number, (start, stop) in enumerate(pairwise(cuts), start=1)
    ]
    return references, [Piece(name, 0, first, whole), *stretches]


def _match(loaded: LoadedPolicy, rows: Sequence[TrackingRows]) -> MatchedSamples:
    """Keep the steps at which robots still stand under every condition, with a full history."""
    kept = np.logical_and.reduce([one.upright for one in rows])
    kept &= rows[0].steps > loaded.config.task.history
    chosen = [one.take(kept) for one in rows]
    layout = loaded.policy.layout
    return MatchedSamples(
        robots=chosen[0].robots,
        steps=chosen[0].steps,
        features=np.stack([_features(loaded, one) for one in chosen]),
        observations=np.stack(
            [layout.select(one.observations, ACTOR_STREAMS).numpy() for one in chosen]
        ),
    )


@torch.inference_mode()
def _features(loaded: LoadedPolicy, rows: TrackingRows) -> np.ndarray:
    """Return what the actor's trunk receives: both embeddings of filtered inputs and latent."""
    policy = loaded.policy
    device = policy.normaliser.mean.device
    normal = policy.normaliser(rows.observations.to(device))
    return policy.actor.features(normal, rows.latents.to(device)).cpu().numpy()


def _select(samples: MatchedSamples, chosen: np.ndarray) -> MatchedSamples:
    return MatchedSamples(
        samples.robots[chosen], samples.steps[chosen], samples.features[:, chosen],
        samples.observations[:, chosen],
    )  # fmt: skip


def _count(subjects: Sequence[Subject], config: TrackingEmbedConfig) -> int:
    total = 0
    for subject in subjects:
        pieces = _plan(subject.policy, config)[1]
        total += len(config.conditions) * (max(piece.frames for piece in pieces) - 1) + 1
    return total


def _caption(found: Sequence[Embedding], config: TrackingEmbedConfig, motion: str) -> str:
    names = ", ".join(condition.replace("-", " ") for condition in config.conditions)
    counts = ", ".join(f"{one.samples} of {one.robots}" for one in found)
    return (
        f"Share of control steps whose condition ({names}) a linear discriminant finds, with 95 % "
        f"intervals over stretches; chance is {100 / len(config.conditions):.0f} % (last column: "
        f"labels shuffled per stretch, mean and range of {SHUFFLES} shuffles). Every policy tracks "
        f"{motion} on its own; samples are matched, the same steps of the same disjoint stretches "
        f"under every condition, while the robot stands under all of them ({counts} stretches per "
        "condition); stretches are judged by classifiers that never saw them. Features: what the "
        "actor's trunk receives, behind the filter of the history. The raw observation is what "
        "the actor sees; the latent is the same under all conditions. Intervals do not cover other "
        f"trainings. Figure: t-SNE of the same {config.samples} steps per condition, tracked from "
        f"the motion's first frame, standardised, at most {COMPONENTS} principal components, "
        f"perplexity {PERPLEXITY:g}, seed {config.seed}; axes and distances between panels mean "
        "nothing."
    )


def _run(subjects: Sequence[Subject], config: TrackingEmbedConfig, report: Report) -> Finding:
    found, left_out = embed_each(subjects, lambda subject: embed(subject, config, report))
    pieces = _plan(found[0].subject.policy, config)[1]
    return Finding(
        title="Do the features of tracking know about friction and payload?",
        caption=_caption(found, config, pieces[0].clip),
        tables={"": make_table(found)},
        data={
            "chance": 1 / len(config.conditions),
            "motion": pieces[0].clip,
            "policies": [record_embedding(embedding) for embedding in found],
        },
        figures={"embed": lambda: draw_embeddings(found, config.conditions)},
        left_out=left_out,
    )


EMBED_TRACKING = Study(
    name="embed",
    domain="tracking",
    help="""Embed features under different dynamics and measure how well these can be separated.

Every policy tracks one motion under each condition from the same frames. Writes embed.json and
embed.png: a t-SNE per run, and cross-validated accuracies.""",
    config=TrackingEmbedConfig,
    count=_count,
    run=_run,
)
"""``prism embed`` of tracking runs."""
