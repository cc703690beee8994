"""The demo: two policies learn to walk side by side, and a page shows the result.

PRISM and a plain MLP of the same size train for the same number of updates on one core each; then
both, and a policy shipped with the package, are evaluated and recorded on video.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_motor._console import Progress
from prism_motor._extras import MissingExtraError
from prism_motor._ranges import Checked, Count
from prism_motor.campaigns.config import Arm, Campaign
from prism_motor.campaigns.files import write_page
from prism_motor.campaigns.runner import Runner
from prism_motor.locomotion.config import WalkingEvaluation
from prism_motor.locomotion.policy import load_policy
from prism_motor.locomotion.video import VideoConfig, WalkingVideo
from prism_motor.runs import RunError
from prism_motor.runs.layout import VIDEOS
from prism_motor.runs.shipped import shipped_names, working_copy
from prism_motor.sim.rendering import RenderingError
from prism_motor.train.evaluations import Evaluations

if TYPE_CHECKING:
    from prism_motor.report.write import Report

ARMS = (Arm("mlp-matched"), Arm("prism"))
"""The arms: a plain MLP, and PRISM with the same number of parameters."""

SHIPPED = "g1-prism"
"""The fully trained policy."""

SEED = 1
"""Training seed of both."""

EVALUATION = WalkingEvaluation(
    conditions=("nominal", "training"), seeds=(101,), envs=50, episodes=1
)
"""A subset of the full protocol."""

VIDEO = VideoConfig(seconds=8.0, width=480, height=360)
"""Walking forward."""


@dataclass(frozen=True)
class DemoConfig(Checked, section="demo"):
    """Settings of the demo."""

    updates: Count = 300
    """Updates per arm: the first part of the ``laptop`` preset."""
    evaluation: WalkingEvaluation = EVALUATION
    """How the policies are evaluated."""
    video: VideoConfig = VIDEO
    """What the videos show."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the preset, for both arms."""

    def campaign(self) -> Campaign:
        """Return the campaign that trains and evaluates both arms."""
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
    """Train, evaluate, record videos and write the page; results of earlier calls are reused.

    Args:
        config: Settings of the demo.
        out: Output folder.
        command: Command that the page gives to reproduce it.
    """
    outcome = Runner(config.campaign(), out, jobs=len(ARMS)).run()
    if outcome.done < outcome.total:
        reasons = "; ".join(f"{name}: {why}" for name, why in outcome.failures.items())
        raise RunError(f"The demo in {out} could not be finished. {reasons}")
    runs = [out / f"{arm.name}-{SEED}" for arm in ARMS]
    if SHIPPED in shipped_names():
        runs.append(working_copy(SHIPPED, out))
        _evaluate(runs[-1], replace(config.evaluation, threads=len(ARMS)))
    _record_all(runs, config.video)
    return write_page(
        out, title="Learning to walk, side by side", intro=_intro(config), command=command
    )


def _evaluate(run: Path, wanted: WalkingEvaluation) -> None:
    """Run the missing evaluations of a policy in this process."""
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


def _record_all(runs: list[Path], settings: VideoConfig) -> None:
    """Record every policy; without a working renderer, the page has no videos."""
    for run in runs:
        try:
            _record(run, settings)
        except (RenderingError, MissingExtraError) as error:
            print(f"The page has no videos: {error}")
            return


def _record(run: Path, settings: VideoConfig) -> None:
    from prism_motor.sim.video_files import write_video

    policy = load_policy(run)
    file = run / VIDEOS / f"{policy.step:08d}-{settings.condition}.mp4"
    if file.exists():
        return
    title = f"{policy.config.arm}, update {policy.step}"
    video = WalkingVideo(policy, policy.config.task, settings, title)
    with (
        Progress(f"Recording {run.name}", len(video), unit="image") as progress,
        closing(iter(video)) as images,
    ):
        write_video(file, _counted(images, progress.step), video.rate)


def _counted(images: Iterable[Any], count: Callable[[], None]) -> Iterator[Any]:
    for image in images:
        yield image
        count()


def _intro(config: DemoConfig) -> str:
    return (
        "Two policies for the Unitree G1 have just been trained from scratch on this machine, side "
        f"by side, for {config.updates} updates each: prism is PRISM, mlp-matched a plain MLP with "
        "as many parameters. That is only the beginning of training; a third policy, which was "
        "trained for longer and ships with the package, shows the end result. Which network is "
        "better is a question for campaigns over several training seeds."
    )
