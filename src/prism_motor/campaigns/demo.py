"""The demo: two policies learn to walk side by side, and a page shows how far they got.

PRISM and a plain MLP of the same size train for the same number of updates, one core each; then
both, and a policy that comes with the package, are evaluated and filmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._console import Progress
from prism_motor._extras import MissingExtraError
from prism_motor.campaigns.config import Arm, Campaign
from prism_motor.campaigns.files import write_page
from prism_motor.campaigns.runner import Runner
from prism_motor.locomotion.config import WalkingEvaluation
from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.video import Film, VideoConfig
from prism_motor.runs import RunError
from prism_motor.runs.layout import VIDEOS
from prism_motor.runs.shipped import shipped_names, working_copy
from prism_motor.sim.rendering import RenderingError
from prism_motor.train.evaluations import Evaluations

if TYPE_CHECKING:
    from prism_motor.report.write import Report

ARMS = (Arm("mlp-matched"), Arm("prism"))
"""What learns: a plain MLP, and PRISM with as many parameters."""

SHIPPED = "g1-prism"
"""The policy that has learned already."""

SEED = 1
"""Training seed of both."""

EVALUATION = WalkingEvaluation(
    conditions=("nominal", "training"), seeds=(101,), envs=50, episodes=1
)
"""A part of the full protocol."""

VIDEO = VideoConfig(seconds=8.0, width=480, height=360)
"""Walking forward."""


@dataclass(frozen=True)
class DemoConfig:
    """How much is done."""

    updates: int = 300
    """Updates of each arm: the first part of the ``laptop`` preset."""
    evaluation: WalkingEvaluation = EVALUATION
    """How policies are evaluated."""
    video: VideoConfig = VIDEO
    """What is filmed."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the preset, for both arms."""

    def campaign(self) -> Campaign:
        """Return the trainings and their evaluations."""
        return Campaign(
            name="demo",
            preset="laptop",
            arms=ARMS,
            seeds=(SEED,),
            updates=self.updates,
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
        _evaluate(runs[-1], replace(config.evaluation, threads=len(ARMS)))
    _film_all(runs, config.video)
    return write_page(
        out, title="Learning to walk, side by side", intro=_intro(config), command=command
    )


def _evaluate(run: Path, wanted: WalkingEvaluation) -> None:
    """Evaluate a policy in this process, as far as it is not done."""
    evaluations = Evaluations(run, wanted)
    missing = {pair: keys for pair in wanted.pairs if (keys := evaluations.missing(*pair))}
    if not missing:
        return
    steps = sum(evaluations.steps(keys) for keys in missing.values())
    try:
        with Progress(f"Evaluating {run.name}", steps, unit="step") as progress:
            for (condition, seed), keys in missing.items():
                evaluations.measure(condition, seed, keys, report=progress.step)
    finally:
        evaluations.close()


def _film_all(runs: list[Path], settings: VideoConfig) -> None:
    """Film every policy; a machine that cannot draw gets a page without videos."""
    for run in runs:
        try:
            _film(run, settings)
        except (RenderingError, MissingExtraError) as error:
            print(f"The page has no videos: {error}")
            return


def _film(run: Path, settings: VideoConfig) -> None:
    from prism_motor.sim.video_files import write_video

    policy = load_policy(run)
    file = run / VIDEOS / f"{policy.step:08d}-{settings.condition}.mp4"
    if file.exists():
        return
    title = f"{policy.config.arm}, update {policy.step}"
    video = Film(policy, policy.config.task, settings, title)
    with (
        Progress(f"Filming {run.name}", len(video), unit="image") as progress,
        closing(iter(video)) as images,
    ):
        write_video(file, _counted(images, progress.step), video.rate)


def _counted(images: Iterable[Any], count: Callable[[], None]) -> Iterator[Any]:
    for image in images:
        yield image
        count()


def _intro(config: DemoConfig) -> str:
    return (
        f"Two policies for the Unitree G1 have just had {config.updates} updates each on this "
        "machine, side by side and from scratch: prism is PRISM, mlp-matched a plain MLP with as "
        "many parameters. That is only the beginning of a training; a third policy, which was "
        "trained for longer and comes with the package, shows what comes out at the end. Which "
        "network is better is a question for campaigns over several training seeds."
    )
