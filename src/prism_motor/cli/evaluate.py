"""``prism eval``: evaluate a trained policy by its domain's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._checks import InputError
from prism_motor._console import Progress, count
from prism_motor._ranges import Checked, Step
from prism_motor.cli.flags import parse_together
from prism_motor.domains import DOMAINS, open_run
from prism_motor.runs.shipped import writable

if TYPE_CHECKING:
    from prism_motor.train.evaluations import Evaluations

_USAGE = """usage: prism eval RUN [--conditions NAMES] [--seeds NUMBERS] [--out FOLDER] [OPTIONS]

Evaluates the policy of a run folder, or one shipped with prism, and writes every episode to
RUN/evaluations. A second call with the same checkpoint only runs what is missing.
prism eval RUN --help shows the options for that run. Conditions:
{conditions}"""


@dataclass(frozen=True)
class EvalOptions(Checked, section="--"):
    """Which policy to evaluate."""

    checkpoint: Step | None = None
    """Which checkpoint; default: the one to report, else the newest."""
    again: bool = False
    """Repeat finished episodes."""
    out: Path | None = None
    """Folder for a copy of the run that gets the results; default: the run itself."""
    read: Path | None = None
    """Store the results of another program instead: an eval_info.json of lerobot-eval."""


def evaluate(arguments: Sequence[str], plugins: Sequence[str] = ()) -> None:
    """Evaluate a trained policy; see ``prism eval --help``.

    Args:
        arguments: What was typed after ``prism eval``.
        plugins: User modules, already loaded.
    """
    from prism_motor.train.evaluations import Evaluations

    # Without a run, print the usage: the flags depend on the run's domain.
    words = list(arguments)
    if not words or words[0].startswith("-"):
        known = [f"  {name}: {', '.join(DOMAINS[name].conditions)}" for name in DOMAINS]
        print(_USAGE.format(conditions="\n".join(known)))
        raise SystemExit(0 if words and words[0] in ("-h", "--help") else 2)
    given = words.pop(0)
    _, domain, config = open_run(given)
    defaults = domain.protocol(config.preset)
    options, changes = parse_together(
        EvalOptions,
        defaults,
        words,
        prog=f"prism eval {given}",
        description=f"Evaluate {config.arm} on {domain.task_name(config)}. Conditions: "
        f"{', '.join(domain.conditions)}.",
    )
    changes = {key: tuple(v) if isinstance(v, list) else v for key, v in changes.items()}
    evaluation = replace(defaults, **changes)
    # Find out what is missing.
    run = writable(Path(given), options.out)
    evaluations = Evaluations(run, evaluation, options.checkpoint)
    if options.read is not None:
        _store(evaluations, options.read)
        return
    todo = {pair: evaluations.missing(*pair, options.again) for pair in evaluation.pairs}
    total = len(evaluation.pairs) * len(domain.episode_keys(config, evaluation))
    left = sum(len(keys) for keys in todo.values())
    if left < total:
        print(f"{count(total - left, 'episode')} already done (--again repeats them).")
    steps = {pair: evaluations.steps(keys) for pair, keys in todo.items()}
    # Run it, one condition and seed at a time.
    noted = 0
    try:
        with Progress(config.arm, sum(steps.values()), unit="step") as progress:
            for (condition, seed), keys in todo.items():
                if not keys:
                    continue
                end = progress.done + steps[condition, seed]
                episodes = evaluations.measure(
                    condition, seed, keys, again=options.again, report=progress.step
                )
                noted += len(episodes)
                progress.step(f"{condition}, seed {seed}", end - progress.done)
    finally:
        evaluations.close()
    if noted < left:
        print(f"{count(left - noted, 'episode')} missing; the same command tries again.")
    print(
        f"\n{run}: {config.arm} on {domain.task_name(config)}, preset {config.preset}, training "
        f"seed {config.seed}, checkpoint {evaluations.step}\n"
    )
    table = domain.evaluation_table(evaluations.found())
    print(table)
    _track(run, table, evaluations.step)


def _track(run: Path, table: str, step: int) -> None:
    """Show a table where the training of the run was shown, if it was asked for."""
    from prism_motor.runs import Run
    from prism_motor.train.trackers import Trackers, read_memory

    if read_memory(run):
        trackers = Trackers(run, Run.open(run).config)
        trackers.show_table("evaluation", table, step)
        trackers.close()


def _store(evaluations: Evaluations, file: Path) -> None:
    """Store the results of another program."""
    (condition, seed), *more = evaluations.evaluation.pairs
    if more:
        raise InputError("--read: give one condition and one seed, those of the results.")
    by, rows = evaluations.domain.read_results(evaluations.config, file)
    stored = evaluations.store(condition, seed, by, rows, file)
    print(f"{stored}: {count(len(rows), 'episode')} of {by}. Next: prism report")
