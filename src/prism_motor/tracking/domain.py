"""Tracking as a domain: what the rest of the package asks about tracking runs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prism_motor._console import count
from prism_motor._devices import resolve_device
from prism_motor.domains import Domain
from prism_motor.protocols import Evaluator, Key, Stretch, Trainer
from prism_motor.runs import to_dict
from prism_motor.runs.layout import PROMPTS
from prism_motor.sim.engines import resolve_engine
from prism_motor.tracking.conditions import CONDITIONS, find_condition
from prism_motor.tracking.config import TrackingConfig, TrackingEvaluation
from prism_motor.tracking.evaluation import TrackingEpisode
from prism_motor.tracking.presets import ARMS, PRESETS, make_config
from prism_motor.tracking.reporting import MEASURES, TrackingReport
from prism_motor.tracking.video import TrackingFilm, TrackingVideo, film_clips

if TYPE_CHECKING:
    from prism_motor.runs import Run
    from prism_motor.tracking.evaluation import Piece
    from prism_motor.tracking.loading import LoadedPolicy
    from prism_motor.tracking.policy import TrackingPolicy
    from prism_motor.tracking.task import TrackingTask
    from prism_motor.train.distributed import Rank


_MEASURED_ROWS = 100
"""Rows of the replay buffer in measurements; what it costs to draw from more is not noticeable."""

_MEASURED_LAYERS = 1
_MEASURED_EMBEDDING = 2
"""Depth of networks in measurements. Those of the paper take 20 GB; a layer more is the same work
once more, so that time and memory go with the number of weights."""


class TrackingDomain(Domain):
    """The whole G1, which learns to track motions without a task's reward."""

    name = "tracking"
    title = "Tracking"
    config = TrackingConfig
    evaluation = TrackingEvaluation
    episode = TrackingEpisode
    film = TrackingFilm
    conditions = tuple(CONDITIONS)
    measures = MEASURES
    weights = "policy."
    tuning_metric = ("upright", True)
    presets = PRESETS
    arms = ARMS
    configure = staticmethod(make_config)  # type: ignore[assignment]
    default_preset = "laptop"
    companions = (PROMPTS,)
    player = "prism_motor.viewer.tracking.show:make_show"
    short_flags: ClassVar[Mapping[str, str]] = {"--clips": "--task.clips"}

    @cached_property
    def reporting(self) -> TrackingReport:
        """What reports need to know."""
        return TrackingReport(self)

    def upgrade(self, data: dict[str, Any]) -> dict[str, Any]:
        """Give runs of earlier versions the first version of the solver, which they had."""
        task = data.get("task", {})
        # The overrides of a campaign have no seed: what they leave out is the preset's.
        if "seed" not in data or not isinstance(task, dict):
            return data
        return {**data, "task": {"solver": 1, **task}}

    def flags(
        self, preset: str, arm: str, leading: Mapping[str, str] | None = None
    ) -> TrackingConfig:
        """Return the settings of a preset, with its seed."""
        return self.make_config(preset, arm, seed=PRESETS[preset].seed)

    def prepare(self, config: TrackingConfig) -> TrackingConfig:
        """Read the clips, fill in how far actions reach and what engine ``auto`` stands for."""
        from prism_motor.tracking.references import action_units, load_references

        references = load_references(config.task)
        references.check_windows(config.latents.window)
        task = config.task
        units = task.units or action_units(task.actions, task.robot, references)
        engine = resolve_engine(config.engine, config.device)
        return replace(config, task=replace(task, units=units), engine=engine)

    def planned(self, config: TrackingConfig) -> TrackingConfig:
        """Return the settings without how far actions reach."""
        return replace(config, task=replace(config.task, units=()))

    def check_device(self, config: TrackingConfig) -> None:
        """Raise if the device or the engine is missing."""
        resolve_engine(config.engine, resolve_device(config.device))

    def shorten(self, config: TrackingConfig, fraction: float) -> dict[str, Any]:
        """Shorten the warm start alike."""
        warm = round(config.warm_start.updates * fraction)
        return {**super().shorten(config, fraction), "warm_start.updates": warm}

    def guess_evaluation(
        self, config: TrackingConfig, evaluation: TrackingEvaluation, update: float
    ) -> float:
        """Guess from a few clips of ten seconds, with their baselines."""
        return 20.0

    def task_name(self, config: TrackingConfig) -> str:
        """Name the robot and how many clips it learns."""
        clips = config.task.clips
        if len(clips) == 1:  # a clip, or a folder of them
            return f"{config.preset}, {Path(clips[0]).stem}"
        return f"{config.preset}, {count(len(clips), 'clip') if clips else 'all shipped clips'}"

    def summary(self, trainer: Trainer) -> str:
        """Describe what is trained, with its memory."""
        from prism_motor.tracking.policy import count_deployed

        config: TrackingConfig = trainer.config
        size = count_deployed(trainer.models()["policy"])
        memory = trainer.replay.bytes / 1e9  # type: ignore[attr-defined]
        return (
            f"{config.arm} on {self.task_name(config)}, {count(config.envs, 'environment')}, "
            f"{size:,} deployed parameters, replay buffer {memory:.2f} GB"
        )

    def trainer(self, config: TrackingConfig, rank: Rank) -> Trainer:
        """Make the trainer."""
        from prism_motor.tracking.trainer import TrackingTrainer

        return TrackingTrainer(self.share(config, rank.world_size))

    def size(self, config: TrackingConfig) -> tuple[int, int]:
        """Return control steps and physics steps of all environments."""
        samples = config.samples_at(config.updates)
        return samples, samples * config.task.substeps

    def stretches(self, config: TrackingConfig) -> list[Stretch]:
        """Measure the warm start by an update without what precedes it, the rest by few sweeps.

        Networks that are deeper than a laptop's are measured with fewer layers.
        """
        warm, learner, networks = config.warm_start, config.learner, config.networks
        sweeps = min(learner.sweeps, max(1, math.ceil(1 / learner.gradient_steps)))
        few = replace(config.replay, rows=min(config.replay.rows, _MEASURED_ROWS))
        flat = replace(
            networks,
            layers=min(networks.layers, _MEASURED_LAYERS),
            critic_embedding=min(networks.critic_embedding, _MEASURED_EMBEDDING),
            actor_embedding=min(networks.actor_embedding, _MEASURED_EMBEDDING),
        )
        actor, whole = _compare_weights(config, replace(config, networks=flat))
        told = f"{count(flat.layers, 'layer')} of {networks.layers}" if flat != networks else ""
        config = replace(config, replay=few, networks=flat)
        small = replace(
            config,
            warm_start=replace(warm, updates=0),
            anchor=replace(config.anchor, weight=0.0, final=0.0),
            learner=replace(
                learner,
                sweeps=sweeps,
                gradient_steps=min(1.0, learner.gradient_steps),
                warmup_steps=0,
                actor_delay=0,
            ),
            prioritise_every=0,
        )
        rest = Stretch(
            small,
            config.updates - warm.updates,
            learner.sweeps / sweeps,
            memory_scale=whole,
            learning_scale=max(1.0, learner.gradient_steps),
            network_scale=whole,
            told=told,
        )
        if not warm.updates:
            return [rest]
        begun = replace(warm, tumbling_steps=1, spreading_steps=1, cloning_steps=1)
        small = replace(config, warm_start=begun)
        first = Stretch(small, warm.updates, memory_scale=whole, network_scale=actor, told=told)
        return [first, rest]

    def reserved(self, config: TrackingConfig, trainer: Trainer) -> int:
        """Return the size of the replay buffer, of which a measured run has a few rows."""
        from prism_motor.tracking.learning.replay import replay_bytes

        if config.replay.place == "device" and not config.device.startswith("cpu"):
            return 0
        replay = trainer.replay  # type: ignore[attr-defined]
        _, scale = _compare_weights(config, trainer.config)  # by which its rows count, too
        return replay_bytes(config.replay.rows, config.envs, replay.sizes) - round(
            scale * replay.bytes
        )

    def finish(self, run: Run) -> str:
        """Keep some states, so that the policy can be prompted without its replay buffer."""
        from prism_motor.tracking.prompts.states import write_states

        file = write_states(run)
        return "" if file is None else f"States for prompts: {file.name}."

    def check_videos(self) -> None:
        """Make a tiny video and discard it."""
        from prism_motor.tracking.training_videos import check_videos

        check_videos()

    def video_listener(
        self, trainer: Trainer, folder: Path, every: int, say: Callable[[str], None]
    ) -> Callable[[dict[str, float]], None]:
        """Return the listener that records a video every few updates."""
        from prism_motor.tracking.training_videos import TrackingVideos

        return TrackingVideos(folder, trainer, every, say)  # type: ignore[arg-type]

    def load_policy(self, run: str | Path, step: int | None = None) -> TrackingPolicy:
        """Load a tracking policy."""
        from prism_motor.tracking.loading import load_policy

        return load_policy(run, step).policy

    def place_subject(
        self, run: str | Path, step: int | None = None, device: str | None = None
    ) -> LoadedPolicy:
        """Load a policy with its settings."""
        from prism_motor.tracking.loading import load_policy

        loaded = load_policy(run, step)
        return replace(loaded, policy=self.place_policy(run, loaded.step, device))

    def check_evaluation(self, config: Any, evaluation: Any) -> None:
        """Raise if a clip cannot be read."""
        super().check_evaluation(config, evaluation)
        self.episode_keys(config, evaluation)

    def identify(self, config: Any, evaluation: Any, condition: str, seed: int) -> dict[str, Any]:
        """Return the condition's values, how clips are prompted and cut, and which they are."""
        from prism_motor.tracking.references import clips_digest

        random = find_condition(condition, config.task.randomisation)
        protocol = {
            "piece": evaluation.piece,
            "window": evaluation.window or config.task.ahead,
            "clips": list(evaluation.clips),
            "clips_sha256": clips_digest(evaluation.clips or config.task.clips),
        }
        return {
            "kind": self.name,
            "condition": {"name": condition, "randomisation": to_dict(random)},
            "protocol": protocol,
        }

    def evaluation_name(self, evaluation: Any, condition: str, seed: int) -> str:
        """Return a name from the condition and from clips that are not those of the training."""
        if not evaluation.clips:
            return super().evaluation_name(evaluation, condition, seed)
        digest = hashlib.sha256("\n".join(evaluation.clips).encode()).hexdigest()
        return f"{condition}+clips-{digest[:8]}-{seed}"

    def episode_keys(self, config: Any, evaluation: Any) -> list[Key]:
        """Return clip and number of every piece."""
        from prism_motor.tracking.references import clips_digest

        task = replace(config.task, clips=evaluation.clips or config.task.clips)
        return list(_piece_keys(task, evaluation.piece, clips_digest(task.clips)))

    def evaluator(self, run: Run, step: int, evaluation: Any) -> Evaluator:
        """Make an evaluator that tracks many pieces at once."""
        from prism_motor.tracking.loading import load_policy

        loaded = load_policy(run.path, step)
        policy = self.place_policy(run.path, step, evaluation.device)
        return _TrackingEvaluator(policy, loaded.config, evaluation)

    def films(
        self, run: str | Path, settings: TrackingFilm, step: int | None, device: str | None
    ) -> list[TrackingVideo]:
        """Return a video per clip, under names that no earlier video of the run has."""
        from prism_motor.tracking.loading import load_policy

        loaded = load_policy(run, step)
        policy, config = self.place_policy(run, step, device), loaded.config
        title = f"{config.arm}, {config.preset}, seed {config.seed}, update {loaded.step}"
        return film_clips(policy, config.task, settings, title, f"{loaded.step:08d}")

    def export(self, run: str | Path, out: Path | None, step: int | None) -> list[str]:
        """Write both networks as ONNX, latents, the contract, the robot's model and the runner."""
        from prism_motor.export.folder import describe_export
        from prism_motor.tracking.export import MOST_FRAMES, export_run

        made = export_run(Path(run), out, step)
        lines = [*describe_export(made.folder), f"Clips: {', '.join(made.clips)}"]
        if made.left_out:
            lines.append(f"Left out, beyond {MOST_FRAMES} frames: {', '.join(made.left_out)}")
        return lines


def _compare_weights(config: TrackingConfig, other: TrackingConfig) -> tuple[float, float]:
    """Return how many times the weights of another run's actor, and of all its networks, one has.

    The other one differs in the depth of its networks, if at all.
    """
    if config.networks == other.networks:
        return 1.0, 1.0
    from prism_motor.tracking.learning.parts import count_weights

    actor, whole = count_weights(config, config.task.layout)
    other_actor, other_whole = count_weights(other, other.task.layout)
    return actor / other_actor, whole / other_whole


@lru_cache(maxsize=16)
def _piece_keys(task: TrackingTask, seconds: float, digest: str) -> tuple[Key, ...]:
    """Return the pieces of a task's clips; the digest tells clips of the same names apart."""
    from prism_motor.tracking.evaluation import cut_pieces
    from prism_motor.tracking.references import load_references

    pieces = cut_pieces(load_references(task), seconds, task.control_dt)
    return tuple((piece.clip, piece.number) for piece in pieces)


class _TrackingEvaluator:
    """Tracks pieces of clips, with the policy and with what needs none."""

    def __init__(
        self, policy: TrackingPolicy, config: TrackingConfig, evaluation: TrackingEvaluation
    ) -> None:
        from prism_motor.tracking.evaluation import cut_pieces
        from prism_motor.tracking.references import load_references

        self._policy, self._evaluation, self._task = policy, evaluation, config.task
        task = replace(config.task, clips=evaluation.clips or config.task.clips)
        self._references = load_references(task)
        self._pieces = cut_pieces(self._references, evaluation.piece, config.task.control_dt)
        self._window = evaluation.window or config.task.ahead

    def steps(self, keys: Sequence[Key]) -> int:
        """Return the control steps of all batches, with policy and baselines."""
        from prism_motor.tracking.evaluation import find_pieces

        pieces = find_pieces(self._pieces, list(keys))
        counts = [
            sum(max(piece.frames for piece in batch) - 1 for batch in self._batches(one, pieces))
            for one in self._evaluation.conditions
        ]
        return 4 * max(counts)

    def _batches(self, condition: str, pieces: Sequence[Piece]) -> list[Sequence[Piece]]:
        """Return what is tracked together: alone where robots would share random numbers."""
        alone = find_condition(condition, self._task.randomisation).is_random
        size = 1 if alone else self._evaluation.envs
        return [pieces[first : first + size] for first in range(0, len(pieces), size)]

    def run(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        note: Callable[..., None],
        report: Callable[[], None],
    ) -> None:
        """Track pieces, as many at once as there are environments."""
        import torch

        from prism_motor.tracking.evaluation import baselines, find_pieces, policy_controller

        torch.set_num_threads(1)  # one thread keeps rounding the same everywhere
        units = torch.tensor(self._task.units)
        own = policy_controller(self._policy, self._references, self._window)
        controllers = {"": own, **baselines(self._references, units)}
        for batch in self._batches(condition, find_pieces(self._pieces, list(keys))):
            note(*self._batch(condition, seed, batch, controllers, report))

    def _batch(
        self,
        condition: str,
        seed: int,
        pieces: Sequence[Piece],
        controllers: Mapping[str, Any],
        report: Callable[[], None],
    ) -> list[TrackingEpisode]:
        from prism_motor.tracking.evaluation import measure, track

        dt = self._task.control_dt
        rows: list[dict[str, Any]] = [{} for _ in pieces]
        for name, control in controllers.items():
            tracked = track(
                control,
                self._task,
                self._references,
                pieces,
                condition=condition,
                seed=_piece_seed(seed, pieces[0]),
                threads=self._evaluation.threads,
                report=report,
            )
            for row, one in zip(rows, tracked, strict=True):
                found = measure(one, self._references, dt)
                if name:
                    found = {f"{name}_{key}": found[key] for key in ("upright", "emd")}
                row.update(found)
        return [
            TrackingEpisode(condition, seed, piece.clip, piece.number, **row)
            for piece, row in zip(pieces, rows, strict=True)
        ]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _piece_seed(seed: int, piece: Piece) -> int:
    """Return the seed of what is random along a piece, which does not depend on other pieces."""
    text = f"{seed} {piece.clip} {piece.number}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


TRACKING = TrackingDomain()
"""The domain."""
