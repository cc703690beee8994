"""``prism eval`` of a policy that learned from demonstrations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._errors import InputError

if TYPE_CHECKING:
    from prism_motor.manipulation.rollout import HandlingOutcome


def evaluate_manipulation(
    run: Path,
    conditions: tuple[str, ...],
    seeds: tuple[int, ...],
    episodes: int,
    threads: int,
    checkpoint: int | None,
    again: bool,
    corrector: str,
    videos: int,
    traces: bool,
    linger: int,
    stiffness: float | None,
    workers: int,
) -> None:
    """Do what is missing of an evaluation, then print a table of all conditions."""
    from prism_motor._progress import Progress
    from prism_motor.manipulation.compliance import (
        COMPLIANCE,
        ComplianceCorrector,
        compliance_label,
        find_compliance,
    )
    from prism_motor.manipulation.rollout import find_perturbation
    from prism_motor.manipulation.summary import summarise, summary_table
    from prism_motor.nn.checks import check_size
    from prism_motor.train.handling_evaluations import Evaluations, Extras, Protocol

    check_size("prism eval", "--episodes", episodes)
    for what, values in (("condition", conditions), ("seed", seeds)):
        if len(set(values)) < len(values):
            raise InputError(f"Give each {what} once; got {list(values)}.")
    for condition in conditions:
        find_perturbation(condition)
    chosen, settings = None, None
    if corrector != "none":
        chosen = ComplianceCorrector(find_compliance(corrector))
        settings = None if corrector in COMPLIANCE else asdict(chosen.config)
        corrector = compliance_label(corrector)
    protocol = Protocol(linger, corrector, settings, stiffness)
    evaluations = Evaluations(run, protocol, checkpoint, chosen, threads, workers)
    extras = Extras(traces, videos)
    pairs = [(condition, seed) for condition in conditions for seed in seeds]
    todo = {
        pair: list(range(episodes)) if again else evaluations.missing(*pair, episodes, extras)
        for pair in pairs
    }
    total = sum(len(states) for states in todo.values())
    if total < len(pairs) * episodes:
        done = len(pairs) * episodes - total
        print(f"{done} episodes are done already (--again repeats them).")
    config = evaluations.policy.config
    try:
        with Progress(f"{config.task.name}, {config.arm}", total) as progress:
            solved, crashed = 0, 0
            for (condition, seed), states in todo.items():

                def report(
                    state: int, outcome: HandlingOutcome | None, name: str = condition
                ) -> None:
                    nonlocal solved, crashed
                    solved += outcome is not None and outcome.success
                    crashed += outcome is None
                    progress.step(f"{name}, {solved} solved")

                if states:
                    options = {"extras": extras, "keep": not again, "report": report}
                    evaluations.measure(condition, seed, states, **options)
    finally:
        evaluations.close()
    if crashed:
        print(f"{crashed} episodes crashed and are missing; the same command tries them again.")
    found = {
        condition: [
            outcome
            for seed in seeds
            for state, outcome in evaluations.read(condition, seed).items()
            if state < episodes
        ]
        for condition in conditions
    }
    print(
        f"\n{run}: {config.arm} on {config.task.suite} {config.task.name}, preset "
        f"{config.preset}, training seed {config.seed}, checkpoint {evaluations.policy.step}"
        + (f", {corrector}" if chosen else "")
        + "\n"
    )
    print(summary_table({condition: summarise(rows) for condition, rows in found.items()}))
    print(
        "\nSuccess with its 95 % Wilson interval; the rest are means over episodes. Errors are "
        "between the pose that\nan action commands and the pose that is reached. All episodes are "
        "of one trained policy: none of this says\nhow training seeds differ."
    )
