"""Walking as a domain: what the rest of the package asks about walking runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor._console import count
from prism_motor._devices import resolve_device
from prism_motor.domains import Domain
from prism_motor.locomotion.conditions import CONDITIONS, find_condition
from prism_motor.locomotion.config import LocomotionConfig, WalkingEvaluation, WalkingFilm
from prism_motor.locomotion.evaluation import WalkingEpisode
from prism_motor.locomotion.presets import arm_names, make_config, preset_names
from prism_motor.locomotion.reporting import MEASURES, WalkingReport
from prism_motor.protocols import Evaluator, Key, Stretch, Trainer
from prism_motor.runs import to_dict
from prism_motor.sim.engines import resolve_engine

if TYPE_CHECKING:
    from prism_motor.locomotion.policy import WalkingPolicy
    from prism_motor.locomotion.video import WalkingVideo
    from prism_motor.runs import Run
    from prism_motor.train.distributed import Rank

_EVALUATION_COST = 0.4
"""Cost of an evaluation's control step, relative to one of training."""

_MEASURED_ENVS = 256
"""Most environments by which the speed of a run is measured."""


class LocomotionDomain(Domain):
    """Legged robots that learn by PPO on rsl_rl."""

    name = "locomotion"
    title = "Walking"
    config = LocomotionConfig
    evaluation = WalkingEvaluation
    episode = WalkingEpisode
    film = WalkingFilm
    conditions = tuple(CONDITIONS)
    measures = MEASURES
    weights = "actor."
    process_tensors = ("env.", *Domain.process_tensors)
    tuning_metric = ("reward_per_second", True)
    configure = staticmethod(make_config)  # type: ignore[assignment]
    player = "prism_motor.viewer.walking.show:make_show"
    default_preset = "laptop"
    short_flags: ClassVar[Mapping[str, str]] = {"--degree": "--actor.degree"}
    renamed_flags: ClassVar[Mapping[str, str]] = {
        "--actor": "--arm",
        "--iterations": "--updates",
    }
    arm_aliases: ClassVar[Mapping[str, str]] = {
        "mlp-larger": "mlp-matched",
        "gated": "prism",
        "residual": "prism-residual",
    }

    @property
    def presets(self) -> dict[str, Any]:  # type: ignore[override]
        """Presets by name, including users' tasks."""
        return preset_names()

    @property
    def arms(self) -> list[str]:  # type: ignore[override]
        """Names of all arms, including those of users' actors."""
        return arm_names()

    @cached_property
    def reporting(self) -> WalkingReport:
        """What reports need to know."""
        return WalkingReport(self)

    def upgrade(self, data: dict[str, Any]) -> dict[str, Any]:
        """Rename settings of earlier versions, which also had the first version of the solver."""
        data = dict(data)
        if "iterations" in data:
            data["updates"] = data.pop("iterations")
        task = data.get("task")
        # The overrides of a campaign have no seed: what they leave out is the preset's.
        if "seed" in data and isinstance(task, dict):
            simulation = task.get("simulation", {})
            if isinstance(simulation, dict):
                data["task"] = {**task, "simulation": {"solver": 1, **simulation}}
        return data

    def flags(
        self, preset: str, arm: str, leading: Mapping[str, str] | None = None
    ) -> LocomotionConfig:
        """Return the settings whose fields are flags; for a control, those of the matched arm."""
        return make_config(preset, self.arm_name(arm), match=False)

    def check_device(self, config: LocomotionConfig) -> None:
        """Raise if the device or the engine is missing."""
        resolve_engine(config.engine, resolve_device(config.device))

    def shorten(self, config: LocomotionConfig, fraction: float) -> dict[str, Any]:
        """Shorten the schedule too, so that the learning rate decays as in a full run."""
        decay = config.ppo.decay_samples * fraction
        return {**super().shorten(config, fraction), "ppo.decay_samples": decay}

    def guess_evaluation(
        self, config: LocomotionConfig, evaluation: WalkingEvaluation, update: float
    ) -> float:
        """Estimate from the number of control steps, which cost less than in training."""
        steps = evaluation.envs * evaluation.episodes * config.task.episode_steps
        return _EVALUATION_COST * steps * update / config.samples_per_update

    def size(self, config: LocomotionConfig) -> tuple[int, int]:
        """Return control steps and physics steps of all environments."""
        samples = config.updates * config.samples_per_update
        return samples, samples * config.task.simulation.substeps

    def share(self, config: LocomotionConfig, processes: int) -> LocomotionConfig:
        """Return the run with a share of its environments."""
        return replace(config, envs=config.share(processes))

    def stretches(self, config: LocomotionConfig) -> list[Stretch]:
        """Measure by fewer environments: everything in an update is proportional to them."""
        envs = min(config.envs, _MEASURED_ENVS)
        scale = config.envs / envs
        told = f"{envs:,} of {config.envs:,} environments" if scale > 1 else ""
        small = replace(config, envs=envs)
        return [Stretch(small, config.updates, scale, memory_scale=scale, told=told)]

    def summary(self, trainer: Trainer) -> str:
        """Describe what is trained, with how many environments."""
        config: LocomotionConfig = trainer.config
        return f"{config.arm} on {config.preset}, {count(config.envs, 'environment')}"

    def prepare(self, config: LocomotionConfig) -> LocomotionConfig:
        """Raise if task, robot and actor do not fit, and say what engine ``auto`` stands for."""
        from prism_motor.locomotion.env import check_task
        from prism_motor.locomotion.mirror import check_mirror
        from prism_motor.locomotion.observations import resolve_bypass

        check_task(config.task)
        resolve_bypass(config.actor, config.task)
        if config.ppo.mirror:
            check_mirror(config.task)
        return replace(config, engine=resolve_engine(config.engine, config.device))

    def trainer(self, config: LocomotionConfig, rank: Rank) -> Trainer:
        """Make the PPO trainer."""
        from prism_motor.locomotion.trainer import WalkingTrainer

        return WalkingTrainer(config, rank)

    def check_videos(self) -> None:
        """Make a tiny video and discard it."""
        from prism_motor.locomotion.training_videos import check_videos

        check_videos()

    def video_listener(
        self, trainer: Trainer, folder: Path, every: int, say: Callable[[str], None]
    ) -> Callable[[dict[str, float]], None]:
        """Return the listener that records a video every few updates."""
        from prism_motor.locomotion.training_videos import WalkingVideos

        return WalkingVideos(folder, trainer, every, say)  # type: ignore[arg-type]

    def films(
        self, run: str | Path, settings: WalkingFilm, step: int | None, device: str | None
    ) -> list[WalkingVideo]:
        """Return one video of a robot under a command."""
        from prism_motor.locomotion.video import WalkingVideo

        config = settings.config()
        policy = self.place_policy(run, step, device)
        trained = policy.config
        title = f"{trained.arm}, {trained.preset}, seed {trained.seed}, update {policy.step}"
        name = f"{policy.step:08d}-{config.name}"
        return [WalkingVideo(policy, trained.task, config, title, name)]

    def load_policy(self, run: str | Path, step: int | None = None) -> WalkingPolicy:
        """Load a walking policy."""
        from prism_motor.locomotion.policy import load_policy

        return load_policy(run, step)

    def check_evaluation(self, config: Any, evaluation: Any) -> None:
        """Raise if a condition needs what the policy was not trained with."""
        for condition in evaluation.conditions:
            find_condition(condition).apply(config.task)

    def identify(self, config: Any, evaluation: Any, condition: str, seed: int) -> dict[str, Any]:
        """Return the condition's values and the size of the evaluation."""
        changed = find_condition(condition).apply(config.task)
        return {
            "condition": {
                "name": condition,
                "randomisation": to_dict(changed.randomisation),
                "observation_noise": changed.observations.noise,
            },
            "protocol": {"envs": evaluation.envs, "episodes": evaluation.episodes},
        }

    def episode_keys(self, config: Any, evaluation: Any) -> list[Key]:
        """Return (environment, episode) of all episodes."""
        return [(env, n) for env in range(evaluation.envs) for n in range(evaluation.episodes)]

    def evaluator(self, run: Run, step: int, evaluation: Any) -> Evaluator:
        """Make an evaluator that runs all environments at once."""
        policy = self.place_policy(run.path, step, evaluation.device)
        return _WalkingEvaluator(policy, evaluation)

    def export(self, run: str | Path, out: Path | None, step: int | None) -> list[str]:
        """Write ONNX, the contract, the robot's model and the runner."""
        from prism_motor.export.folder import describe_export
        from prism_motor.locomotion.export import export_run

        return describe_export(export_run(Path(run), out, step))


class _WalkingEvaluator:
    """Runs all environments of a condition and seed together."""

    def __init__(self, policy: WalkingPolicy, evaluation: WalkingEvaluation) -> None:
        self.policy, self.evaluation = policy, evaluation

    def steps(self, keys: Sequence[Key]) -> int:
        """Return the control steps of an evaluation without falls."""
        return self.evaluation.episodes * (self.policy.config.task.episode_steps + 1)

    def run(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        note: Callable[..., None],
        report: Callable[[], None],
    ) -> None:
        """Run all episodes and note them together, because only all of them are balanced."""
        import torch

        from prism_motor.locomotion.evaluation import Protocol, evaluate

        # The policy is small, and one thread keeps its rounding the same everywhere.
        torch.set_num_threads(1)
        note(
            *evaluate(
                self.policy,
                self.policy.config.task,
                condition,
                seed=seed,
                protocol=Protocol(self.evaluation.envs, self.evaluation.episodes),
                threads=self.evaluation.threads,
                report=report,
            )
        )

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


LOCOMOTION = LocomotionDomain()
"""The domain."""
