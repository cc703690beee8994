"""index.html: the study on one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from prism_motor import _page as shell
from prism_motor.studies.physics.arm import JOINTS, signal_names
from prism_motor.studies.physics.config import TUNING_SEED, PhysicsConfig
from prism_motor.studies.physics.results import Results
from prism_motor.studies.physics.summary import ArmSummary, best_arm, verdict
from prism_motor.studies.physics.targets import TARGETS

_STYLE = """
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr));
  gap: 0.6rem; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr));
  gap: 0.4rem 1.6rem; align-items: start; }
.scene { max-width: 680px; }
td.best { font-weight: 650; background: var(--panel); }
tr.other td { color: var(--soft); }
.key { font-size: 0.9rem; } .key b { font-weight: 650; }
.mlp { color: var(--ink); } .prism { color: var(--accent); } .alternative { color: #d55e00; }
"""

_STROBE_CAPTION = "The arm in one test episode, older poses paler; only the hand meets the table."


def render_page(
    config: PhysicsConfig,
    results: Results,
    summaries: Sequence[ArmSummary],
    pictures: Mapping[str, bytes],
    command: str,
) -> str:
    """Return the page as text.

    Args:
        config: What was run.
        results: All runs.
        summaries: One per arm.
        pictures: SVG by name: ``strobe``, ``curves``, one per target, and where available
            ``traces`` and ``pairs``.
        command: The command that makes this page again.
    """
    sections = [
        _question(),
        f"<div class='scene'>{shell.figure(pictures['strobe'], _STROBE_CAPTION)}</div>",
        "<h2>What came out</h2>",
        _verdict(summaries, config),
        _panels(pictures),
        "<h2>The numbers</h2>",
        _tables(summaries, config),
        _traces(pictures),
        "<h2>While learning</h2>",
        shell.figure(
            pictures["curves"], "Validation error, geometric mean over targets and seeds."
        ),
        _products(results, pictures),
        _method(config),
        _reproduce(results, command),
    ]
    return shell.render_page("Physics from first-order signals", sections, style=_STYLE)


def _question() -> str:
    return (
        "<h1>Physics from first-order signals</h1>"
        "<p>A robot measures positions, velocities and torques, while power, kinetic energy, "
        "Coriolis torques and contact power are products of them. Can a small network of a fixed "
        "size learn those products from the raw signals, and does it help to build products into "
        "its first layer? Here a simulated four-joint arm gives the exact answers; every network "
        "gets the same data and steps and, apart from one larger MLP, the same number of "
        "parameters.</p>"
    )


def _verdict(summaries: Sequence[ArmSummary], config: PhysicsConfig) -> str:
    items = "".join(
        f"<li><b>{escape(subject)}</b>{escape(finding)}</li>"
        for subject, finding in verdict(summaries)
    )
    return (
        f"<ul>{items}</ul><p class='note'>Errors are the share of variance left unexplained "
        f"(1 &minus; R²): geometric mean and 95 % interval over {config.seeds} seeds. &ldquo;Not "
        "separable&rdquo; means that the intervals overlap. These sentences are computed from the "
        "numbers below.</p>"
    )


def _panels(pictures: Mapping[str, bytes]) -> str:
    panels = "".join(f"<figure>{shell.image(pictures[t.name], t.label)}</figure>" for t in TARGETS)
    return (
        "<p class='key'>Filled: held-out test episodes. Open: the same states, faster than in "
        "training. Colours: <b class='mlp'>plain MLP</b>, <b class='prism'>PRISM</b>, "
        "<b class='alternative'>alternatives</b>. Logarithmic axes, lower is better.</p>"
        f"<div class='panels'>{panels}</div>"
    )


def _tables(summaries: Sequence[ArmSummary], config: PhysicsConfig) -> str:
    captions = {
        "test": "Held-out test episodes: % of variance unexplained (95 % interval)",
        "extrapolation": f"Velocities and torques {config.extrapolation:g} times as large: "
        "% of variance unexplained (95 % interval)",
    }
    tables = "".join(
        f"<h3>{escape(caption)}</h3><div class='scroll'>{_table(summaries, name)}</div>"
        for name, caption in captions.items()
    )
    edge = "".join(
        f" {escape(s.contender.label)} chose the edge of the sweep." for s in summaries if s.at_edge
    )
    return (
        f"{tables}<p class='note'>Shaded: lowest error among networks of equal size. The larger "
        f"MLP (grey) has twice the parameters and stands outside that comparison.{edge}</p>"
    )


def _table(summaries: Sequence[ArmSummary], dataset: str) -> str:
    equal = [s for s in summaries if s.contender.budget_scale == 1.0]
    best = {t.name: best_arm(equal or summaries, dataset, t.name) for t in TARGETS}
    head = "".join(f"<th>{escape(target.label)}</th>" for target in TARGETS)
    rows = []
    for s in summaries:
        cells = "".join(
            f"<td{' class=best' if best[t.name] is s else ''}>"
            f"{escape(str(s.errors[dataset][t.name])).replace(' [', '<small>[')}"
            "</small></td>"
            for t in TARGETS
        )
        other = "" if s.contender.budget_scale == 1.0 else " class=other"
        rows.append(
            f"<tr{other}><td>{escape(s.contender.label)}</td>{cells}"
            f"<td>{s.parameters:,}</td><td>{s.learning_rate:g}</td></tr>"
        )
    return (
        f"<table><thead><tr><th>Network</th>{head}<th>Parameters</th><th>Learning rate</th>"
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _traces(pictures: Mapping[str, bytes]) -> str:
    if "traces" not in pictures:
        return ""
    return "<h2>What such an error looks like</h2>" + shell.figure(
        pictures["traces"], "The first test episode, predicted by the first reported seed."
    )


def _products(results: Results, pictures: Mapping[str, bytes]) -> str:
    if "pairs" not in pictures:
        return ""
    runs = results.of_arm("prism2")
    strength = np.mean([run["pair_strength"] for run in runs], axis=0)
    names = signal_names()
    ranked = sorted(
        ((strength[i, j], names[i], names[j]) for i in range(len(names)) for j in range(i + 1)),
        reverse=True,
    )[:10]
    items = "".join(
        f"<li><code>{escape(a)} · {escape(b)}</code> {value / ranked[0][0]:.2f}</li>"
        for value, a, b in ranked
    )
    ranks = _power_ranks(strength)
    listed = "".join(
        f"<li><code>{escape(_written(p))}</code></li>" for p in runs[0]["products"][:6]
    )
    picture = shell.figure(
        pictures["pairs"],
        "Exact second-degree coefficients of the layer, times how strongly the head reads each "
        f"feature; mean over {len(runs)} seeds. Inputs are standardised.",
    )
    return (
        "<h2>What PRISM of degree 2 found</h2><div class='two'>"
        f"{picture}<div><p>Strongest products of two signals (largest = 1):</p><ol>{items}</ol>"
        f"<p>The products <code>tau_i · dq_i</code>, which make the net joint power, rank "
        f"{', '.join(map(str, ranks))} of {len(names) * (len(names) + 1) // 2}.</p>"
        "<p>The strongest single features of the first seed, as <code>layer.interactions()</code> "
        "names them (the share says how much of the feature the two names stand for):</p>"
        f"<ul>{listed}</ul></div></div>"
    )


def _power_ranks(strength: np.ndarray) -> list[int]:
    """Return the ranks of each joint's torque times velocity among all pairs."""
    joints = len(JOINTS)
    every = strength[np.tril_indices(len(strength))]
    powers = (strength[2 * joints + i, joints + i] for i in range(joints))
    return sorted(1 + int((every > power).sum()) for power in powers)


def _written(product: Mapping[str, Any]) -> str:
    return (
        f"{product['coefficient']:+.2f} {' · '.join(product['inputs'])} "
        f"(share {product['share']:.0%})"
    )


def _method(config: PhysicsConfig) -> str:
    rates = ", ".join(f"{rate:g}" for rate in config.learning_rates)
    episodes = config.train_episodes, config.validation_episodes, config.test_episodes
    definitions = "".join(
        f"<li><b>{escape(t.label)}</b> {escape(t.formula)}: "
        f"{escape((t.compute.__doc__ or '').splitlines()[0])}</li>"
        for t in TARGETS
    )
    return (
        "<h2>How it was done</h2>"
        f"<ul>{definitions}</ul>"
        "<ul><li>Data: MuJoCo, smooth random torques and pulls towards random poses, some below "
        f"the table. {episodes[0]} training, {episodes[1]} validation and {episodes[2]} test "
        f"episodes of {config.episode_seconds:g} s, split by episode. Inputs are the joint "
        "positions, velocities and torques of one instant, standardised on the training part.</li>"
        f"<li>Extrapolation: the test states with velocities and torques &times; "
        f"{config.extrapolation:g}; the simulator computes all targets anew.</li>"
        "<li>Networks: one front layer (a linear layer with SiLU for the MLP, an interaction layer "
        f"for the others), then the same head of two hidden layers of {config.head}; one network "
        f"learns all targets, each with the same weight. The front is as wide as "
        f"{config.budget:,} parameters allow, within 1 %. PRISM of degree 1 is the "
        "<code>linear</code> interaction.</li>"
        f"<li>Training: Adam, warm-up and cosine schedule, {config.steps:,} steps of "
        f"{config.batch} states. Each network chose its learning rate among {rates} by the "
        f"validation error of seed {TUNING_SEED}, which is not reported.</li>"
        f"<li>Intervals: 95 % t intervals of the logarithm over {config.seeds} seeds (geometric "
        "mean). Seeds change the initial weights and the order of the batches; the data stay the "
        "same, so the intervals do not cover another draw of episodes.</li></ul>"
    )


def _reproduce(results: Results, command: str) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    seconds = sum(job["seconds"] for job in results.jobs.values())
    return (
        f"<h2>Run it again</h2><pre>{escape(command)}</pre>"
        f"<p class='note'>{escape(versions)}. {len(results.jobs)} training runs of "
        f"{seconds / len(results.jobs):.1f} s on average, {results.config.workers} at a time; "
        "each one is in results.json.</p>"
    )
