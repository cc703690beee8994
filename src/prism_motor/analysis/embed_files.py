"""Embeddings as files: embed.json with its table, and embed.png."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from prism_motor.analysis.embed import COMPONENTS, PERPLEXITY, SHUFFLES, EmbedConfig, Embedding
from prism_motor.analysis.embed_figure import draw_embeddings
from prism_motor.analysis.style import STYLE, save_png
from prism_motor.analysis.telling_apart import Accuracy
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.atomic import write_json

SCHEMA = 1
"""Version of the file; raised when its meaning changes."""

TITLE = "Do the features know about friction and payload?"

_SHOWN = {
    "features": "features, %",
    "features, 50 components": "50 components, %",
    "observations": "raw observation, %",
    "observations, 50 components": "50 components of it, %",
}
"""Accuracies in the table, with their titles."""


def write_embeddings(
    found: Sequence[Embedding], config: EmbedConfig, left_out: Sequence[str], folder: Path
) -> list[Path]:
    """Write embed.json and embed.png; return their paths."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "embed.json"
    write_json(
        file,
        {
            "schema": SCHEMA,
            "title": TITLE,
            "caption": make_caption(found, config),
            "table": make_table(found),
            "config": to_dict(config),
            "chance": 1 / len(config.conditions),
            "policies": [_record(embedding) for embedding in found],
            "left_out": list(left_out),
            "provenance": collect_provenance(),
        },
    )
    with rc_context(STYLE):
        figure = draw_embeddings(found, config.conditions)
        return [file, save_png(figure, folder / "embed.png")]


def make_table(found: Sequence[Embedding]) -> dict[str, Any]:
    """Return the accuracies as columns and rows of text."""
    rows = [
        [
            embedding.subject.arm,
            str(embedding.subject.policy.config.seed),
            f"{embedding.feature} ({embedding.width})",
            *(_percent(embedding.accuracies[name]) for name in _SHOWN),
            _range(embedding.shuffled),
        ]
        for embedding in found
    ]
    columns = ["arm", "training seed", "features (width)", *_SHOWN.values(), "labels shuffled, %"]
    return {"columns": columns, "rows": rows}


def make_caption(found: Sequence[Embedding], config: EmbedConfig) -> str:
    """Say what the numbers and the picture are."""
    names = ", ".join(condition.replace("-", " ") for condition in config.conditions)
    counts = ", ".join(f"{one.samples} of {one.robots} robots" for one in found)
    return (
        f"Share of samples whose condition ({names}) a linear discriminant finds, with 95 % "
        f"intervals over robots; chance is {100 / len(config.conditions):.0f} % (last column: "
        f"labels exchanged at random per robot, mean and range of {SHUFFLES} times). Every policy "
        "walks by itself; samples are matched, the same robots at the same steps with the same "
        f"commands under every condition ({counts} per condition), and robots are predicted by "
        "classifiers that never saw them. Intervals do not cover other trainings. Arms see their "
        "own states and have features of different width: compare each with its raw observation, "
        f"and at equal width with {COMPONENTS} principal components. Picture: t-SNE of "
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


def _record(embedding: Embedding) -> dict[str, Any]:
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
