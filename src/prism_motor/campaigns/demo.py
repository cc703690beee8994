"""The demo: two policies learn to walk side by side, and a page shows how far they got.

PRISM and a plain MLP of the same size train for the same number of updates, one core each; then
both, and a policy that comes with the package, are evaluated and filmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prism_motor._extras import MissingExtraError
from prism_motor._progress import Progress
from prism_motor.campaigns.config import Arm, Campaign, Evaluation
from prism_motor.campaigns.runner import Runner
from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.video import Film, VideoConfig
from prism_motor.report import Report, write_report
from prism_motor.runs import RunError
from prism_motor.runs.shipped import shipped_names, working_copy
from prism_motor.sim.rendering import RenderingError
from prism_motor.train.walking_evaluations import Evaluations

ARMS = (Arm("mlp-larger", "mlp-larger"), Arm("gated", "gated"))
"""What learns: a plain MLP, and PRISM with as many parameters."""

SHIPPED = "g1-gated"
"""The policy that has learned already."""

SEED = 1
"""Training seed of both."""

EVALUATION = Evaluation(("nominal", "training"), (101,), envs=50, episodes=1)
"""A part of the full protocol."""

FILM = VideoConfig(seconds=8.0, width=480, height=360)
"""Walking forward."""


@dataclass(frozen=True)
class DemoConfig:
    """How much is done."""

    updates: int = 300
    """Policy updates of each arm: the first part of the ``laptop`` preset."""
    evaluation: Evaluation = EVALUATION
    """How policies are evaluated."""
    film: VideoConfig = FILM
    """What is filmed."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the preset, for both arms."""

    def campaign(self) -> Campaign:
        """Return the trainings and their evaluations."""
        return Campaign(
            name="demo",
            arms=ARMS,
            seeds=(SEED,),
            iterations=self.updates,
            overrides=self.overrides,
            evaluation=self.evaluation,
        )


def run_demo(config: DemoConfig, out: Path, command: str = "prism demo") -> Report:
    """Train, evaluate, film, and write the page; what an earlier call did is used again.

    Args:
        config: How much is done.
        out: Folder of the demo.
        command: What the page says makes it again.
    """
    outcome = Runner(config.campaign(), out, jobs=len(ARMS)).run()
    if outcome.done < outcome.total:
        reasons = "; ".join(f"{name}: {why}" for name, why in outcome.failures.items())
        raise RunError(f"The demo in {out} could not be finished. {reasons}")
    runs = [out / f"{arm.name}-{SEED}" for arm in ARMS]
    if SHIPPED in shipped_names():
        runs.append(working_copy(SHIPPED, out))
        _evaluate(runs[-1], config.evaluation)
    _film_all(runs, config.film)
    return write_report(
        out, title="Learning to walk, side by side", intro=_intro(config), command=command
    )


def _evaluate(run: Path, wanted: Evaluation) -> None:
    """Evaluate a policy in this process, as far as it is not done."""
    evaluations = Evaluations(run, wanted.protocol())
    todo = evaluations.plan(wanted.conditions, wanted.seeds)
    if not todo:
        return
    steps = wanted.episodes * (evaluations.policy.config.task.episode_steps + 1)
    with Progress(f"Evaluating {run.name}", len(todo) * steps, lines=2) as progress:
        for condition, seed in todo:
            evaluations.measure(condition, seed, threads=len(ARMS), report=progress.step)


def _film_all(runs: list[Path], settings: VideoConfig) -> None:
    """Film every policy; a machine that cannot draw gets a page without films."""
    for run in runs:
        try:
            _film(run, settings)
        except (RenderingError, MissingExtraError) as error:
            print(f"The page has no films: {error}")
            return


def _film(run: Path, settings: VideoConfig) -> None:
    from prism_motor.sim.video_files import write_video

    policy = load_policy(run)
    file = run / "videos" / f"{policy.step:08d}-{settings.condition}.mp4"
    if file.exists():
        return
    title = f"{policy.config.arm}, update {policy.step}"
    film = Film(policy, policy.config.task, settings, title)
    with (
        Progress(f"Filming {run.name}", len(film), lines=1) as progress,
        closing(iter(film)) as pictures,
    ):
        write_video(file, _counted(pictures, progress.step), film.rate)


def _counted(pictures: Iterable[Any], count: Callable[[], None]) -> Iterator[Any]:
    for picture in pictures:
        yield picture
        count()


def _intro(config: DemoConfig) -> str:
    return (
        f"Two policies for the Unitree G1 have just had {config.updates} updates each on this "
        "machine, side by side and from scratch: gated is PRISM, mlp-larger a plain MLP with as "
        "many parameters. That is only the beginning of a training; a third policy, which was "
        "trained for longer and comes with the package, shows what comes out at the end. Which "
        "network is better is a question for campaigns over several training seeds."
    )
