"""The demo: two policies learn to walk side by side, and a page shows the result.

PRISM and a plain MLP of the same size train for the same number of updates on one core each; then
both, and the same two networks as they ship with the package, are evaluated and recorded on video.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from prism_motor._checks import InputError
from prism_motor._console import Progress, count
from prism_motor._extras import MissingExtraError
from prism_motor._ranges import Checked, Count
from prism_motor.analysis.live import TopInteractions
from prism_motor.analysis.recording import record
from prism_motor.arms import arm_colours
from prism_motor.campaigns.config import Arm, Campaign
from prism_motor.campaigns.demo_page import (
    Demo,
    Product,
    ShownPolicy,
    describe_command,
    title_of,
    write_demo,
)
from prism_motor.campaigns.runner import Runner
from prism_motor.locomotion.config import WalkingEvaluation
from prism_motor.locomotion.policy import WalkingPolicy, load_policy
from prism_motor.locomotion.video import VideoConfig, WalkingVideo
from prism_motor.runs import RunError
from prism_motor.runs.layout import VIDEOS
from prism_motor.runs.shipped import shipped_names, working_copy
from prism_motor.sim.rendering import RenderingError
from prism_motor.train.evaluations import Evaluations

ARMS = (Arm("mlp-matched"), Arm("prism"))
"""The arms: a plain MLP, and PRISM with the same number of parameters."""

SHIPPED = ("g1-mlp-matched", "g1-prism")
"""The same two, trained for longer."""

SEED = 1
"""Training seed of both."""

EVALUATION = WalkingEvaluation(conditions=("nominal",), seeds=(101,), envs=50, episodes=1)
"""A subset of the full protocol."""

VIDEOS_SHOWN = (
    VideoConfig(seconds=3.0, command=(0.5, 0.0, 0.0), width=480, height=400),
    VideoConfig(seconds=4.0, command=(0.3, 0.0, 0.5), width=480, height=400),
)
"""Straight ahead, and a left turn."""

_LATER = 75
"""What comes after the trainings, in updates of one policy, which take a second each."""

_PRODUCTS = 6
"""Products shown per policy."""
_ROBOTS, _STEPS = 16, 64
"""Robots and control steps on which the products are chosen and measured."""


@dataclass(frozen=True)
class DemoConfig(Checked, section="demo"):
    """Settings of the demo."""

    updates: Count = 300
    """Updates per arm: the first part of the ``laptop`` preset, in which they learn to walk."""
    evaluation: WalkingEvaluation = EVALUATION
    """How the policies are evaluated."""
    videos: tuple[VideoConfig, ...] = VIDEOS_SHOWN
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


def run_demo(config: DemoConfig, out: Path, command: str = "prism demo") -> Demo:
    """Train, evaluate, record videos and write the page; results of earlier calls are reused.

    Args:
        config: Settings of the demo.
        out: Output folder.
        command: Command that the page gives to reproduce it.
    """
    print(
        "Step 1 of 4: PRISM and an MLP of the same size learn to walk, "
        f"{count(config.updates, 'update')} each, on one core each."
    )
    outcome = Runner(config.campaign(), out, jobs=len(ARMS), later=_LATER).run()
    if outcome.done < outcome.total:
        reasons = "; ".join(f"{name}: {why}" for name, why in outcome.failures.items())
        raise RunError(f"The demo in {out} could not be finished. {reasons}")
    print("Step 2 of 4: the policies that ship with prism do the same episodes.")
    known = shipped_names()
    shipped = [working_copy(name, out) for name in SHIPPED if name in known]
    for run in shipped:
        _evaluate(run, replace(config.evaluation, threads=len(ARMS)))
    runs = [*(out / f"{arm.name}-{SEED}" for arm in ARMS), *shipped]
    policies = [load_policy(run) for run in runs]
    print(f"Step 3 of 4: {count(len(runs) * len(config.videos), 'video')}.")
    problem = _record_all(policies, runs, config)
    print("Step 4 of 4: the products that fire, and the page.", flush=True)
    shown = [
        ShownPolicy(
            run=run,
            title=title_of(policy),
            colour=arm_colours([policy.config.arm])[policy.config.arm],
            shipped=run in shipped,
            videos=tuple(_file(run, policy, video) for video in config.videos),
            products=tuple(find_products(policy)),
        )
        for run, policy in zip(runs, policies, strict=True)
    ]
    captions = tuple(describe_command(video.command) for video in config.videos)
    return write_demo(shown, captions, out, command=command, problem=problem)


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


def _record_all(policies: Sequence[WalkingPolicy], runs: Sequence[Path], config: DemoConfig) -> str:
    """Record every policy; without a working renderer, return why there are no videos."""
    try:
        missing = [
            (file, WalkingVideo(policy, policy.config.task, video, title_of(policy)))
            for run, policy in zip(runs, policies, strict=True)
            for video in config.videos
            if not (file := _file(run, policy, video)).exists()
        ]
        if missing:
            images = sum(len(video) for _, video in missing)
            with Progress("Recording", images, unit="image") as progress:
                for file, video in missing:
                    _record(file, video, progress.step)
    except (RenderingError, MissingExtraError) as error:
        print(f"The page has no videos: {error}")
        return str(error)
    return ""


def _file(run: Path, policy: WalkingPolicy, video: VideoConfig) -> Path:
    return run / VIDEOS / f"{policy.step:08d}-{video.name}.mp4"


def _record(file: Path, video: WalkingVideo, step: Callable[[], None]) -> None:
    from prism_motor.sim.video_files import write_video

    with closing(iter(video)) as images:
        write_video(file, _counted(images, step), video.rate)


def _counted(images: Iterable[Any], step: Callable[[], None]) -> Iterator[Any]:
    for image in images:
        yield image
        step()


def find_products(policy: WalkingPolicy) -> list[Product]:
    """Return the products that move the joint targets of a policy most, strongest first.

    Args:
        policy: The policy; there are none for one without products.
    """
    try:
        TopInteractions(policy, 1)
    except InputError:
        return []
    rollout = record(policy, policy.config.task, seed=1, envs=_ROBOTS, steps=_STEPS, features=False)
    seen = torch.from_numpy(rollout.observations.values)
    top = TopInteractions(policy, _PRODUCTS, seen)
    # Mean over a sample of what all robots saw.
    sample = seen[:: max(1, len(seen) // 100)]
    sizes = torch.tensor([[abs(value) for _, value in top.update(one)] for one in sample]).mean(0)
    found = zip(top.names, top.roles, (1000 * sizes).tolist(), strict=True)
    return sorted((Product(*one) for one in found), key=lambda product: -product.effect)
