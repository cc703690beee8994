"""The manipulation domain: runs that learn from demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor._checks import InputError
from prism_motor.domains import Domain, Evaluator, Key, Preparation, Trainer
from prism_motor.manipulation.config import HandlingEvaluation, HandlingTask, ManipulationConfig
from prism_motor.manipulation.demonstrations.preparation import DemonstrationSettings
from prism_motor.manipulation.episodes import EpisodeFiles, EpisodeRunner, HandlingEpisode
from prism_motor.manipulation.presets import ARMS, PRESETS, make_config
from prism_motor.manipulation.reporting import MEASURES, HandlingReport
from prism_motor.manipulation.rollout import PERTURBATIONS, find_perturbation
from prism_motor.runs.layout import PRETRAINED

if TYPE_CHECKING:
    from prism_motor.manipulation.diffusion.policy import HandlingPolicy
    from prism_motor.runs import Run
    from prism_motor.train.distributed import Rank

_EPISODE_SECONDS = 5.0
"""Length of an evaluated episode, until one is measured."""


class ManipulationDomain(Domain):
    """Robot arms that learn one task from demonstrations with LeRobot's Diffusion Policy."""

    name = "manipulation"
    title = "Handling"
    config = ManipulationConfig
    evaluation = HandlingEvaluation
    episode = HandlingEpisode
    conditions = tuple(PERTURBATIONS)
    measures = MEASURES
    weights = "policy."
    weights_extra = ("statistics/",)
    tuning_metric = ("loss", False)
    preparation = DemonstrationSettings
    presets = PRESETS
    arms = tuple(ARMS)
    can_train_longer = False  # its cosine schedule would rise again
    configure = staticmethod(make_config)  # type: ignore[assignment]
    default_preset = "state"
    short_flags: ClassVar[Mapping[str, str]] = {"--suite": "--task.suite", "--task": "--task.name"}
    renamed_flags: ClassVar[Mapping[str, str]] = {"--conditioner": "--arm", "--steps": "--updates"}
    arm_aliases: ClassVar[Mapping[str, str]] = {"mlp": "mlp-matched", "mlp-larger": "mlp-large"}

    @cached_property
    def reporting(self) -> HandlingReport:
        """What reports need to know."""
        return HandlingReport(self)

    def upgrade(self, data: dict[str, Any]) -> dict[str, Any]:
        """Replace the names that earlier versions used."""
        data = dict(data)
        if "steps" in data:
            data["updates"] = data.pop("steps")
        conditioner = data.get("conditioner")
        if isinstance(conditioner, dict) and conditioner.get("mlp_size") == "larger":
            data["conditioner"] = {**conditioner, "mlp_size": "large"}
        return data

    def prepare(self, config: ManipulationConfig) -> ManipulationConfig:
        """Fill in the policy's input and output sizes and the path of the demonstrations."""
        from prism_motor.manipulation.tasks import dataset_name, find_task, make_environment

        task = config.task
        chosen = find_task(task.suite, task.name)
        demos = config.demos or str(Path("demos") / dataset_name(task.suite, chosen.name))
        if not task.action:
            # A policy with images uses the suite's cameras unless others are named.
            cameras = (task.cameras or None) if config.network.inputs == "images" else ()
            environment = make_environment(chosen, cameras=cameras)
            try:
                task = replace(
                    task,
                    name=chosen.name,
                    state=len(environment.state_names),
                    objects=len(environment.object_names),
                    action=len(environment.action_names),
                    cameras=tuple(environment.cameras),
                )
            finally:
                environment.close()
        return replace(config, task=task, demos=demos)

    def planned(self, config: ManipulationConfig) -> ManipulationConfig:
        """Return the settings with the task's name and without values derived from the task."""
        from prism_motor.manipulation.tasks import find_task

        name = find_task(config.task.suite, config.task.name).name
        task = HandlingTask(suite=config.task.suite, name=name)
        return replace(config, task=task)

    def upgrade_campaign(self, data: dict[str, Any]) -> dict[str, Any]:
        """Read tasks as variants, and the size of an MLP as part of its arm."""
        from prism_motor.manipulation.demonstrations.preparation import upgrade_campaign

        return upgrade_campaign(data)

    def preparations(
        self, settings: Any, folder: Path, configs: Mapping[str, Sequence[Any]]
    ) -> Mapping[str, Preparation]:
        """Record demonstrations for every variant that does not name any."""
        from prism_motor.manipulation.demonstrations.preparation import plan_demonstrations

        return plan_demonstrations(settings, folder, configs)

    def shorten(self, config: ManipulationConfig, fraction: float) -> dict[str, Any]:
        """Shorten the warm-up too; the decay adapts to the number of updates anyway."""
        warmup = round(config.optimiser.warmup * fraction)
        return {**super().shorten(config, fraction), "optimiser.warmup": warmup}

    def guess_evaluation(
        self, config: ManipulationConfig, evaluation: HandlingEvaluation, update: float
    ) -> float:
        """Guess from the number of episodes."""
        return _EPISODE_SECONDS * evaluation.episodes

    def run_name(self, config: ManipulationConfig) -> str:
        """Return SUITE-TASK-PRESET-ARM-SEED."""
        return f"{self.task_name(config)}-{config.preset}-{config.arm}-{config.seed}".replace(
            " ", "-"
        )

    def task_name(self, config: ManipulationConfig) -> str:
        """Name suite and task."""
        return f"{config.task.suite} {config.task.name}"

    def summary(self, trainer: Trainer) -> str:
        """Describe what is trained and its size."""
        config: ManipulationConfig = trainer.config
        size = sum(parameter.numel() for parameter in trainer.models()["policy"].parameters())
        return (
            f"{config.arm} on {self.task_name(config)}, preset {config.preset}, {size:,} parameters"
        )

    def trainer(self, config: ManipulationConfig, rank: Rank) -> Trainer:
        """Read the demonstrations and make the trainer."""
        from prism_motor.manipulation.data import load_for
        from prism_motor.manipulation.diffusion.trainer import HandlingTrainer

        if rank.world_size > 1:
            raise InputError("manipulation trains in a single process; remove --processes.")
        _check_device(config.device)
        return HandlingTrainer(config, load_for(config))

    def finish(self, run: Run) -> str:
        """Write the policy for LeRobot's commands."""
        from prism_motor.manipulation.diffusion.policy import export_policy

        folder = export_policy(self.load_policy(run.path), run.path / PRETRAINED)
        return f"For LeRobot: {folder}."

    def load_policy(self, run: str | Path, step: int | None = None) -> HandlingPolicy:
        """Load a policy that learned from demonstrations."""
        from prism_motor.manipulation.diffusion.policy import load_policy

        return load_policy(run, step)

    def check_evaluation(self, config: Any, evaluation: Any) -> None:
        """Raise if the corrector is unknown."""
        self._protocol(evaluation)

    def identify(self, config: Any, evaluation: Any, condition: str, seed: int) -> dict[str, Any]:
        """Return the condition's values and how actions are executed."""
        return {
            "kind": self.name,
            "condition": {"name": condition, **asdict(find_perturbation(condition))},
            "protocol": self._protocol(evaluation),
        }

    def _protocol(self, evaluation: HandlingEvaluation) -> dict[str, Any]:
        from prism_motor.manipulation.compliance import (
            COMPLIANCE,
            compliance_label,
            find_compliance,
        )

        name = evaluation.corrector
        known: dict[str, Any] = {"linger": evaluation.linger, "corrector": name}
        if name != "none":
            known["corrector"] = compliance_label(name)
            if name not in COMPLIANCE:  # a file name does not identify the settings
                known["settings"] = asdict(find_compliance(name))
        if evaluation.stiffness is not None:
            known["stiffness"] = evaluation.stiffness
        return known

    def evaluation_name(self, evaluation: Any, condition: str, seed: int) -> str:
        """Return a name from condition, corrector and stiffness."""
        protocol = self._protocol(evaluation)
        parts = [condition]
        if protocol["corrector"] != "none":
            parts.append(protocol["corrector"])
        if evaluation.stiffness is not None:
            parts.append(f"kp{evaluation.stiffness:g}")
        return f"{'+'.join(parts)}-{seed}"

    def episode_keys(self, evaluation: Any) -> list[Key]:
        """Return the initial states."""
        return [(state,) for state in range(evaluation.episodes)]

    def lacks_files(
        self, run: Run, evaluation: Any, condition: str, seed: int, step: int, key: Key
    ) -> bool:
        """Return whether a trace or video of an episode is missing."""
        (state,) = key
        files = EpisodeFiles(run.path, self.evaluation_name(evaluation, condition, seed), step)
        return (evaluation.traces and not files.trace(state).is_file()) or (
            state < evaluation.videos and not files.video(state).is_file()
        )

    def labels(self, config: Any) -> dict[str, Any]:
        """Return arm, seed and task."""
        return {**super().labels(config), "suite": config.task.suite, "task": config.task.name}

    def evaluator(self, run: Run, step: int, evaluation: Any) -> Evaluator:
        """Return an evaluator that runs episodes in this process or in workers."""
        return _HandlingEvaluator(self, run, step, evaluation)

    def export(self, run: str | Path, out: Path | None, step: int | None) -> list[str]:
        """Write a LeRobot pretrained folder, for --policy.path of its commands."""
        from prism_motor.manipulation.diffusion.policy import export_policy

        folder = export_policy(self.load_policy(run, step), out or Path(run) / PRETRAINED)
        return [f"{folder}  Use it with: lerobot-eval --policy.path={folder} ..."]


def _check_device(name: str) -> None:
    """Raise if this machine lacks a device."""
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"device: {name} cannot be used on this machine: {reason}") from error


class _HandlingEvaluator:
    """Runs episodes of one policy in a simulator that is created once."""

    def __init__(
        self, domain: ManipulationDomain, run: Run, step: int, evaluation: HandlingEvaluation
    ) -> None:
        from prism_motor.manipulation.data import environment_of
        from prism_motor.manipulation.diffusion.policy import check_fit

        self.domain, self.path, self.step = domain, run.path, step
        self.evaluation = evaluation
        self.policy = domain.load_policy(run.path, step)
        self.scene = environment_of(self.policy.config, evaluation.stiffness)
        check_fit(self.policy, self.scene)

    def steps(self, keys: Sequence[Key]) -> int:
        """Return the number of episodes."""
        return len(keys)

    def run(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        note: Callable[..., None],
        report: Callable[[], None],
    ) -> None:
        """Run episodes, leaving out any that crash repeatedly."""
        from prism_motor.manipulation import workers as pool
        from prism_motor.manipulation.episodes import load_runner

        task = self.scene.task
        if keys and max(keys)[0] >= self.scene.initial_states:
            raise InputError(
                f"{task.suite} {task.name} has {self.scene.initial_states} fixed initial states, "
                f"so at most that many episodes per seed; got {max(keys)[0] + 1}."
            )
        name = self.domain.evaluation_name(self.evaluation, condition, seed)
        options: dict[str, Any] = {
            "condition": condition,
            "seed": seed,
            "evaluation": self.evaluation,
            "files": EpisodeFiles(self.path, name, self.step),
        }

        def finish(done: pool.EpisodeResult[HandlingEpisode]) -> None:
            if done.result is not None:
                note(done.result)
            report()

        make_runner: Callable[[], EpisodeRunner]
        if self.evaluation.workers:
            make_runner = partial(load_runner, self.path, self.step, **options)
        else:
            make_runner = partial(EpisodeRunner, self.policy, self.scene, **options)
        jobs = [pool.EpisodeJob(task, initial_state=state) for (state,) in keys]
        workers = self.evaluation.workers
        pool.run_episodes(make_runner, jobs, workers=workers, on_done=finish)

    def close(self) -> None:
        """Free the simulator."""
        self.scene.close()


MANIPULATION = ManipulationDomain()
"""The manipulation domain."""
