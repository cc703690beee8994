"""The whole demo: simulate, train, draw, write the page."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from prism_motor._errors import InputError
from prism_motor._extras import missing_extra
from prism_motor._figures import STYLE, to_svg
from prism_motor._progress import Progress
from prism_motor.studies.physics.config import PhysicsConfig
from prism_motor.studies.physics.contenders import choose_contenders
from prism_motor.studies.physics.dataset import Dataset, make_dataset
from prism_motor.studies.physics.figures import (
    draw_curves,
    draw_overview,
    draw_pairs,
    draw_target,
)
from prism_motor.studies.physics.page import render_page
from prism_motor.studies.physics.results import Results
from prism_motor.studies.physics.scenes import draw_strobe, draw_traces
from prism_motor.studies.physics.study import run_study
from prism_motor.studies.physics.summary import ArmSummary, summarise, text_table, verdict
from prism_motor.studies.physics.targets import TARGETS


def run_demo(config: PhysicsConfig, out: Path, command: str = "prism physics") -> Path:
    """Run the study into ``out`` and return the path of its page.

    Finished runs of an earlier start with the same settings are reused.

    Args:
        config: What to run.
        out: Output folder: results.json, figure.png and index.html.
        command: The command to show on the page.
    """
    _check_extra()
    arms = choose_contenders(config.arms)
    if not any(arm.budget_scale == 1.0 for arm in arms):
        raise InputError(
            f"arms={config.arms} holds no arm of the common budget to compare; add e.g. 'mlp'."
        )
    _prepare_folder(out)
    results = Results(out, config)
    episodes = config.train_episodes + config.validation_episodes + config.test_episodes
    with Progress("simulating episodes", episodes, lines=2) as progress:
        dataset = make_dataset(config, progress.step)
    run_study(config, dataset, results)

    from matplotlib import rc_context

    summaries = summarise(config, results)
    with rc_context(STYLE):
        draw_overview(summaries, config.seeds).savefig(out / "figure.png", dpi=160)
        pictures = _pictures(config, dataset, results, summaries)
    page = out / "index.html"
    page.write_text(render_page(config, results, summaries, pictures, command), encoding="utf-8")
    print(f"\n{text_table(summaries)}\n")
    print("\n".join(f"- {subject}{finding}" for subject, finding in verdict(summaries)))
    return page


def _pictures(
    config: PhysicsConfig, dataset: Dataset, results: Results, summaries: list[ArmSummary]
) -> dict[str, bytes]:
    runs = [(s.contender, results.of_arm(s.contender.name)) for s in summaries]
    figures = {target.name: draw_target(target, summaries) for target in TARGETS}
    figures["strobe"] = draw_strobe(dataset, config.sample_seconds)
    figures["curves"] = draw_curves(runs)
    entries = {contender.name: (contender.label, found) for contender, found in runs}
    if {"mlp", "prism2"} <= entries.keys():
        predictions = {
            label: np.array(found[0]["trace"], dtype=float)
            for label, found in (entries["mlp"], entries["prism2"])
        }
        figures["traces"] = draw_traces(dataset, predictions, config.sample_seconds)
    if "prism2" in entries:
        strength = np.mean([run["pair_strength"] for run in entries["prism2"][1]], axis=0)
        figures["pairs"] = draw_pairs(strength)
    return {name: to_svg(figure) for name, figure in figures.items()}


def _check_extra() -> None:
    """Find a missing package before the simulation starts."""
    try:
        import matplotlib  # noqa: F401
        import mujoco  # noqa: F401
        import scipy  # noqa: F401
        import tqdm  # noqa: F401
    except ImportError as error:
        raise missing_extra("prism_motor.studies.physics", "analysis", error) from error


def _prepare_folder(out: Path) -> None:
    """Create the folder and prove that it can be written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(
            f"Cannot write to the output folder {out} ({error.strerror}). "
            "Choose another one with --out."
        ) from error
