"""``prism eval`` of a policy that learned from demonstrations."""

from __future__ import annotations

from pathlib import Path


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
) -> None:
    """Do what is missing of an evaluation, then print a table of all conditions."""
    from prism._progress import Progress
    from prism.imitate.evaluations import Evaluations, Extras, Protocol
    from prism.manipulation.compliance.config import find_compliance
    from prism.manipulation.compliance.corrector import ComplianceCorrector
    from prism.manipulation.perturbations import find_perturbation
    from prism.manipulation.summary import summarise, table
    from prism.nn.checks import check_size

    check_size("prism eval", "--episodes", episodes)
    for what, values in (("condition", conditions), ("seed", seeds)):
        if len(set(values)) < len(values):
            raise ValueError(f"Give each {what} once; got {list(values)}.")
    for condition in conditions:
        find_perturbation(condition)
    chosen = None if corrector == "none" else ComplianceCorrector(find_compliance(corrector))
    protocol = Protocol(linger=linger, corrector=corrector)
    evaluations = Evaluations(run, protocol, checkpoint, chosen, threads)
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
            solved = 0
            for (condition, seed), states in todo.items():
                if not states:
                    continue
                for episode in evaluations.measure(
                    condition, seed, states, extras=extras, keep=not again
                ):
                    solved += episode.outcome.success
                    progress.step(f"{condition}, {solved} solved")
    finally:
        evaluations.close()
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
    print(table({condition: summarise(rows) for condition, rows in found.items()}))
    print(
        "\nSuccess with its 95 % Wilson interval; the rest are means over episodes. Errors are "
        "between the pose that\nan action commands and the pose that is reached. All episodes are "
        "of one trained policy: none of this says\nhow training seeds differ."
    )
