"""``prism explain``: which products a policy learned and what they do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

if TYPE_CHECKING:
    from prism_motor.analysis.explanation import Explanation


def explain(
    run: Positional[Path],
    out: Path | None = None,
    condition: str = "nominal",
    envs: int = 24,
    seconds: float = 12.0,
    states: int = 1200,
    top: int = 10,
    draws: int = 20,
    seed: int = 1000,
    closed_loop: bool = True,
    threads: int = 1,
    checkpoint: int | None = None,
) -> None:
    """Show which products of inputs a policy learned, and what happens without them.

    Every product is removed alone on states of a rollout, and the change of the joint target is
    measured. Writes explain.json and figures to RUN/analysis/explain.

    Args:
        run: The run folder of a gated or residual actor.
        out: Where to write instead.
        condition: One of nominal, low-friction, payload, pushes, training.
        envs: Robots.
        seconds: How long each walks.
        states: States that every product is removed on.
        top: Products in the table.
        draws: Random sets of products that the strongest are compared with.
        seed: Seed of the rollout and of the random sets.
        closed_loop: Whether the robots also walk an episode each without products.
        threads: Simulation threads.
        checkpoint: Which checkpoint; default: the newest.
    """
    from prism_motor.analysis.explain import explain as explain_policy
    from prism_motor.analysis.explain_files import write_explanation
    from prism_motor.analysis.explanation import ExplainConfig
    from prism_motor.analysis.products import products_of
    from prism_motor.analysis.style import check_matplotlib
    from prism_motor.cli._shipped import writable
    from prism_motor.locomotion.policy import load_policy
    from prism_motor.nn.checks import check_size

    check_matplotlib("prism explain")
    check_size("prism explain", "--threads", threads)
    config = ExplainConfig(condition, envs, seconds, states, top, draws, seed, closed_loop)
    policy = load_policy(run, checkpoint)
    products_of(policy)  # refuses policies without products before a folder is made
    folder = out or writable(run) / "analysis" / "explain"
    folder.mkdir(parents=True, exist_ok=True)
    explanation = explain_policy(policy, config, run=run, threads=threads, progress=True)
    files = write_explanation(explanation, folder)
    _show(explanation)
    print("\n" + "\n".join(map(str, files)))


def _show(explanation: Explanation) -> None:
    from textwrap import fill

    from prism_motor.analysis.explain_files import caption_of, closed_loop_table, table, title_of
    from prism_motor.analysis.text import align

    content = table(explanation)
    print(f"\n{title_of(explanation)}\n")
    print(align([content["columns"], *content["rows"]], numbers=3))
    print("\n" + fill(caption_of(explanation), 100))
    if explanation.gates is not None:
        gates, start = explanation.gates
        low, middle, high = gates.abs().quantile(gates.new_tensor([0.1, 0.5, 0.9])).tolist()
        print(
            f"Gates started at {start:g}; 10 %, 50 %, 90 % of their sizes are now below "
            f"{low:.3f}, {middle:.3f}, {high:.3f}."
        )
    if explanation.closed_loop is not None:
        walked = closed_loop_table(explanation.closed_loop)
        print("\n" + align([walked["columns"], *walked["rows"]], numbers=1))
