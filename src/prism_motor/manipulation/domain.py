"""The manipulation domain: runs that learn from demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor._checks import InputError
from prism_motor.domains import Domain
from prism_motor.manipulation.backbones import BACKBONES
from prism_motor.manipulation.compliance import check_moves_hand
from prism_motor.manipulation.config import HandlingEvaluation, HandlingTask, ManipulationConfig
from prism_motor.manipulation.data import drawn_as, tasks_of
from prism_motor.manipulation.demonstrations.preparation import DemonstrationSettings
from prism_motor.manipulation.episodes import (
    EpisodeFiles,
    EpisodeRunner,
    HandlingEpisode,
    Scenes,
)
from prism_motor.manipulation.presets import ARMS, PRESETS, make_config, preset_of
from prism_motor.manipulation.reporting import MEASURES, HandlingReport
from prism_motor.manipulation.rollout import PERTURBATIONS, find_perturbation
from prism_motor.protocols import Evaluator, Key, Preparation, Trainer
from prism_motor.runs.layout import PRETRAINED

if TYPE_CHECKING:
    from prism_motor.manipulation.policy import HandlingPolicy
    from prism_motor.manipulation.tasks import Task
    from prism_motor.runs import Run
    from prism_motor.train.distributed import Rank

_EPISODE_SECONDS = 5.0
"""Length of an evaluated episode, until one is measured."""


class ManipulationDomain(Domain):
    """Robot arms that learn from demonstrations with LeRobot's Diffusion Policy or SmolVLA."""

    name = "manipulation"
    title = "Manipulation"
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
    preset_flags: ClassVar[Mapping[str, Sequence[str]]] = {"--backbone": tuple(BACKBONES)}
    short_flags: ClassVar[Mapping[str, str]] = {"--suite": "--task.suite", "--task": "--task.name"}
    renamed_flags: ClassVar[Mapping[str, str]] = {"--conditioner": "--arm", "--steps": "--updates"}
    arm_aliases: ClassVar[Mapping[str, str]] = {"mlp": "mlp-matched", "mlp-larger": "mlp-large"}

    @cached_property
    def reporting(self) -> HandlingReport:
        """What reports need to know."""
        return HandlingReport(self)

    def preset_name(self, preset: str | None, chosen: Mapping[str, str]) -> str:
        """Complete the name of a preset with the backbone."""
        if "--backbone" in chosen:
            return preset_of(chosen["--backbone"], preset)
        return super().preset_name(preset, chosen)

    def flags(
        self, preset: str, arm: str, leading: Mapping[str, str] | None = None
    ) -> ManipulationConfig:
        """Return the settings of a preset, with its seed."""
        return self.make_config(preset, arm, seed=PRESETS[preset].seed)

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
        from prism_motor.manipulation.tasks import dataset_name, make_environment, tasks_name

        backbone, task = BACKBONES[config.backbone], config.task
        tasks = tasks_of(config)
        first, several = tasks[0], len(tasks) > 1
        if several and not backbone.follows_instructions:
            raise InputError(
                f"{backbone.name} learns one task, because it takes no instructions; got "
                f"{len(tasks)} of {task.suite}. Give one, or choose --backbone smolvla."
            )
        demos = config.demos or "demos"
        if not config.demos and not several:
            demos = str(Path("demos") / dataset_name(task.suite, first.name))
        config = backbone.prepare(config)
        backbone.check_early(config)
        if not task.action:
            # A policy with images uses the suite's cameras unless others are named.
            cameras = (task.cameras or None) if config.network.inputs == "images" else ()
            environment = make_environment(first, cameras=cameras)
            try:
                task = replace(
                    task,
                    name=tasks_name(task.suite, task.name),
                    state=len(environment.state_names),
                    objects=0 if several else len(environment.object_names),
                    action=len(environment.action_names),
                    cameras=tuple(environment.cameras),
                )
            finally:
                environment.close()
        config = replace(config, task=task, demos=demos)
        return replace(config, network=config.network.change(drawn_size=drawn_as(config)))

    def check_ready(self, config: ManipulationConfig) -> None:
        """Raise if the suite cannot run yet."""
        from prism_motor.manipulation.tasks import find_suite

        for suite in dict.fromkeys(task.suite for task in tasks_of(config)):
            find_suite(suite).check_ready()

    def planned(self, config: ManipulationConfig) -> ManipulationConfig:
        """Return the settings with the task's name and without values derived from the task."""
        from prism_motor.manipulation.tasks import tasks_name

        name = tasks_name(config.task.suite, config.task.name)
        task = HandlingTask(suite=config.task.suite, name=name)
        network = config.network
        return replace(config, task=task, network=network.change(**network.derived))

    def protocol(self, preset: str) -> HandlingEvaluation:
        """Return the usual evaluation with as many episodes as the preset has."""
        rollouts = PRESETS[preset].rollouts if preset in PRESETS else HandlingEvaluation.episodes
        return HandlingEvaluation(episodes=rollouts)

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
        return _EPISODE_SECONDS * len(self.episode_keys(config, evaluation))

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
        from prism_motor.manipulation.trainer import HandlingTrainer

        config = self.share(config, rank.world_size)
        return HandlingTrainer(config, load_for(config))

    def size(self, config: ManipulationConfig) -> tuple[int, int]:
        """Return the samples of all batches; they come from demonstrations."""
        return config.updates * config.batch, 0

    def rehearse(self, config: ManipulationConfig) -> Trainer:
        """Make a trainer on made-up demonstrations, which the real ones need not precede."""
        from prism_motor.manipulation.demonstrations.made_up import make_up
        from prism_motor.manipulation.trainer import HandlingTrainer

        return HandlingTrainer(config, make_up(config))

    def finish(self, run: Run) -> str:
        """Write the policy for LeRobot's commands."""
        from prism_motor.manipulation.policy import export_policy

        folder = export_policy(self.load_policy(run.path), run.path / PRETRAINED)
        return f"For LeRobot: {folder}."

    def load_policy(self, run: str | Path, step: int | None = None) -> HandlingPolicy:
        """Load a policy that learned from demonstrations."""
        from prism_motor.manipulation.policy import load_policy

        return load_policy(run, step)

    def check_evaluation(self, config: Any, evaluation: Any) -> None:
        """Raise if the corrector or a task is unknown."""
        self._protocol(evaluation)
        tasks_of(config, evaluation.tasks)

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

    def episode_keys(self, config: Any, evaluation: Any) -> list[Key]:
        """Return the initial states of every task."""
        return [
            (task.suite, task.name, state)
            for task in tasks_of(config, evaluation.tasks)
            for state in range(evaluation.episodes)
        ]

    def lacks_files(
        self, run: Run, evaluation: Any, condition: str, seed: int, step: int, key: Key
    ) -> bool:
        """Return whether a trace or video of an episode is missing."""
        if not (evaluation.traces or evaluation.videos):
            return False
        tasks = _by_name(tasks_of(self.read_config(run.config)))
        suite, name, state = key
        place = tasks[suite, name], state
        called = self.evaluation_name(evaluation, condition, seed)
        files = EpisodeFiles(run.path, called, step, len(tasks) > 1)
        return (evaluation.traces and not files.trace(*place).is_file()) or (
            state < evaluation.videos and not files.video(*place).is_file()
        )

    def read_results(self, config: Any, file: Path) -> tuple[str, list[dict[str, Any]]]:
        """Read the episodes of lerobot-eval."""
        from prism_motor.manipulation.lerobot_results import EVALUATOR, read_eval_info

        return EVALUATOR, read_eval_info(file, tasks_of(config))

    def evaluator(self, run: Run, step: int, evaluation: Any) -> Evaluator:
        """Return an evaluator that runs episodes in this process or in workers."""
        return _HandlingEvaluator(self, run, step, evaluation)

    def export(self, run: str | Path, out: Path | None, step: int | None) -> list[str]:
        """Write a LeRobot pretrained folder, for --policy.path of its commands."""
        from prism_motor.manipulation.policy import export_policy

        folder = export_policy(self.load_policy(run, step), out or Path(run) / PRETRAINED)
        return [f"{folder}  Use it with: lerobot-eval --policy.path={folder} ..."]


def _by_name(tasks: Sequence[Task]) -> dict[tuple[str, str], Task]:
    """Return tasks by suite and name."""
    return {(task.suite, task.name): task for task in tasks}


class _HandlingEvaluator:
    """Runs episodes of one policy, one task after another."""

    def __init__(
        self, domain: ManipulationDomain, run: Run, step: int, evaluation: HandlingEvaluation
    ) -> None:
        self.domain, self.path, self.step = domain, run.path, step
        self.evaluation = evaluation
        self.policy = domain.place_policy(run.path, step, evaluation.device)
        self.tasks = _by_name(tasks_of(self.policy.config))
        self.scenes = Scenes(self.policy, evaluation.stiffness)
        # Whatever is missing on this machine is noticed before the first episode.
        first = self.scenes.of(tasks_of(self.policy.config, evaluation.tasks)[0])
        if evaluation.corrector != "none":
            check_moves_hand(first)

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

        jobs = [
            pool.EpisodeJob(self.tasks[suite, name], initial_state=state)
            for suite, name, state in keys
        ]
        if jobs:
            self._check_states(jobs[0].task, max(state for *_, state in keys))
        name = self.domain.evaluation_name(self.evaluation, condition, seed)
        options: dict[str, Any] = {
            "condition": condition,
            "seed": seed,
            "evaluation": self.evaluation,
            "files": EpisodeFiles(self.path, name, self.step, len(self.tasks) > 1),
        }

        def finish(done: pool.EpisodeResult[HandlingEpisode]) -> None:
            if done.result is not None:
                note(done.result)
            report()

        make_runner: Callable[[], EpisodeRunner]
        if self.evaluation.workers:
            make_runner = partial(load_runner, self.path, self.step, **options)
        else:
            make_runner = partial(EpisodeRunner, self.policy, self.scenes, **options)
        workers = self.evaluation.workers
        pool.run_episodes(make_runner, jobs, workers=workers, on_done=finish)

    def _check_states(self, task: Task, state: int) -> None:
        """Raise if there are not so many initial states; a suite's tasks have equally many."""
        there = self.scenes.of(task).initial_states
        if state >= there:
            raise InputError(
                f"{task.suite} {task.name} has {there} fixed initial states, "
                f"so at most that many episodes per seed; got {state + 1}."
            )

    def close(self) -> None:
        """Free the simulator."""
        self.scenes.close()


MANIPULATION = ManipulationDomain()
"""The manipulation domain."""
