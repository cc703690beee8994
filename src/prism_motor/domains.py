"""Domains: what can be learned, as objects that everything after the task is written against.

Walking and handling are entries of one table. Sessions, run folders, evaluations, reports,
campaigns and commands ask a run's domain for whatever differs, and never ask which domain it is.
Your own module adds one with ``DOMAINS.register("mine", MyDomain())``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from prism_motor._checks import InputError, check_choice, show
from prism_motor._devices import RANDOM_TENSORS, choose_device, resolve_device
from prism_motor._plugins import load_plugins
from prism_motor._registry import Registry
from prism_motor.arms import REFERENCE
from prism_motor.protocols import Evaluator, Film, Key, Preparation, Stretch, Trainer
from prism_motor.runs.configs import ConfigError, apply_overrides
from prism_motor.train.config import EvaluationConfig, RunConfig

if TYPE_CHECKING:
    from prism_motor.reporting import ReportSpec
    from prism_motor.runs import Run
    from prism_motor.statistics.claims import Measure
    from prism_motor.train.distributed import Rank


@dataclass(frozen=True)
class PlayRequest:
    """What ``prism play`` was asked for; a domain refuses what does not apply to it."""

    runs: tuple[Path, ...]
    """Run folders or names of shipped policies, at least one."""
    command: tuple[float, float, float] | Literal["random"] | None = None
    """Velocities to begin with, or ``random``; ``None``: the domain's default."""
    prompts: tuple[str, ...] = ()
    """What to begin with, one after the other; empty: the domain's default."""
    primitives: bool = False
    """Whether simple shapes are drawn even where meshes are installed."""
    device: str | None = None
    """Where policies compute; ``None``: where they were trained, or the CPU."""


class Domain(ABC):
    """Everything about a domain that the rest of the package needs to know."""

    name: ClassVar[str]
    """Its name in commands and as ``kind`` in config.json."""
    title: ClassVar[str]
    """What its policies do, for headings: ``Walking``."""
    config: ClassVar[type[RunConfig]] = RunConfig
    """Settings of a run."""
    evaluation: ClassVar[type[EvaluationConfig]] = EvaluationConfig
    """Settings of an evaluation: flags of ``prism eval`` and keys of a campaign file."""
    episode: ClassVar[type]
    """One evaluated episode; its class variable ``KEY`` names the fields that identify it."""
    conditions: ClassVar[tuple[str, ...]] = ("nominal",)
    """Names of all conditions; the first changes nothing."""
    measures: ClassVar[tuple[Measure, ...]]
    """What is measured per episode; the first is a rate."""
    weights: ClassVar[str] = "policy."
    """Prefixes of the policy's tensors in a checkpoint."""
    weights_extra: ClassVar[tuple[str, ...]] = ()
    """Prefixes of other tensors that the policy needs."""
    process_tensors: ClassVar[tuple[str, ...]] = RANDOM_TENSORS
    """Prefixes of tensors that differ between data-parallel processes."""
    tuning_metric: ClassVar[tuple[str, bool]] = ("loss", False)
    """The metric that tuning runs are scored by, and whether higher is better."""
    presets: ClassVar[Mapping[str, Any]]
    """Presets by name; their type is up to :meth:`make_config`."""
    arms: ClassVar[Iterable[str]]
    """Names of all arms."""
    can_train_longer: ClassVar[bool] = True
    """Whether a run may be extended beyond its plan; not if its schedule ends with the plan."""
    default_preset: ClassVar[str]
    """The default preset."""
    preset_flags: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Flags of ``prism train`` that choose among presets, with their values."""
    leading: ClassVar[tuple[str, ...]] = ()
    """Settings, by dotted key, that decide what others are by default: flags of ``prism train``
    which are read first, and which :meth:`make_config` takes as overrides."""
    short_flags: ClassVar[Mapping[str, str]] = {}
    """Short names of flags of ``prism train``."""
    renamed_flags: ClassVar[Mapping[str, str]] = {}
    """Former names of flags of ``prism train``."""
    reference: ClassVar[str] = REFERENCE
    """The arm that others are compared with."""
    arm_aliases: ClassVar[Mapping[str, str]] = {}
    """Former names of arms."""
    companions: ClassVar[tuple[str, ...]] = ()
    """Files of a run folder that go with its policy where it is shipped."""
    player: ClassVar[str] = ""
    """What ``prism play`` shows, as ``"module:NAME"``: a function of a :class:`PlayRequest` that
    returns a :class:`prism_motor.viewer.app.Show`; empty: policies cannot be played."""
    film: ClassVar[type | None] = None
    """Settings of videos, the flags of ``prism video``, if there are any: see :meth:`films`."""
    preparation: ClassVar[type | None] = None
    """Settings of what campaigns prepare before training, if anything: see :meth:`preparations`."""

    @cached_property
    def reporting(self) -> ReportSpec:
        """What reports need to know; the defaults suit most domains."""
        from prism_motor.reporting import ReportSpec

        return ReportSpec(self)

    def preset_name(self, preset: str | None, chosen: Mapping[str, str]) -> str:
        """Return the full name of a preset.

        Args:
            preset: What was given as its name; default: the default preset.
            chosen: Values of the :attr:`preset_flags` that were given.
        """
        return preset or self.default_preset

    def arm_name(self, name: str) -> str:
        """Return the current name of an arm."""
        return self.arm_aliases.get(name, name)

    def upgrade(self, data: dict[str, Any]) -> dict[str, Any]:
        """Translate a run's settings written by an earlier version to current names."""
        return data

    def read_config(self, data: dict[str, Any], where: str = "config") -> Any:
        """Read the settings of a run."""
        from prism_motor.runs import from_dict

        if not isinstance(data, dict):
            raise ConfigError(f"{where}: expected a table of settings, got {show(data)}.")
        if data.get("kind", self.name) != self.name:
            raise ConfigError(
                f"{where}: kind is {show(data['kind'])}, but these are settings of {self.name}."
            )
        data = self.upgrade(data)
        if isinstance(data.get("arm"), str):
            data = {**data, "arm": self.arm_name(data["arm"])}
        return from_dict(self.config, data, where)

    def make_config(
        self,
        preset: str,
        arm: str,
        *,
        seed: int = 1,
        name: str | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the settings of a run.

        Args:
            preset: One of the presets.
            arm: One of the arms, by its present or a former name.
            seed: Training seed.
            name: What the arm is called in tables; default: its own name.
            overrides: Settings by dotted key that differ from the preset.
        """
        return self.configure(preset, self.arm_name(arm), seed=seed, name=name, overrides=overrides)

    def configure(
        self,
        preset: str,
        arm: str,
        *,
        seed: int,
        name: str | None,
        overrides: Mapping[str, Any] | None,
    ) -> Any:
        """Do the work of :meth:`make_config`; by default a preset is the settings of a run."""
        check_choice("arm", arm, self.arms)
        start = self.presets[check_choice("preset", preset, self.presets)]
        chosen = replace(start, preset=preset, arm=name or arm, seed=seed)
        return apply_overrides(chosen, overrides or {})

    def flags(self, preset: str, arm: str, leading: Mapping[str, str] | None = None) -> Any:
        """Return the settings whose fields are the flags of ``prism train``.

        Args:
            preset: One of the presets.
            arm: One of the arms.
            leading: Values of the :attr:`leading` settings that were given.
        """
        return self.make_config(preset, arm, overrides=leading)

    def prepare(self, config: Any) -> Any:
        """Check settings before anything is written, and fill in what follows from the task."""
        return config

    def check_ready(self, config: Any) -> None:  # noqa: B027  # most need nothing
        """Raise if this machine lacks something that a run needs, quickly and before any work."""

    def check_device(self, config: Any) -> None:
        """Raise if this machine cannot compute a run where its settings say."""
        resolve_device(config.device)

    def planned(self, config: Any) -> Any:
        """Return settings without what :meth:`prepare` fills in, to compare plan and run."""
        return config

    def protocol(self, preset: str) -> EvaluationConfig:
        """Return how policies of a preset are evaluated unless another way is asked for."""
        return self.evaluation()  # type: ignore[call-arg]

    def upgrade_campaign(self, data: dict[str, Any]) -> dict[str, Any]:
        """Translate a campaign file written for an earlier version to current names."""
        return data

    def preparations(
        self, settings: Any, folder: Path, configs: Mapping[str, Sequence[Any]]
    ) -> Mapping[str, Preparation]:
        """Return what a campaign prepares before training, by variant.

        Args:
            settings: An instance of :attr:`preparation`.
            folder: The campaign's folder.
            configs: The settings of the runs of all arms, by variant.
        """
        return {}

    def shorten(self, config: Any, fraction: float) -> dict[str, Any]:
        """Return the settings, by dotted key, that shorten a run to a fraction; for tuning."""
        return {"updates": max(1, round(config.updates * fraction))}

    def guess_evaluation(self, config: Any, evaluation: Any, update: float) -> float:
        """Estimate the seconds of one condition and seed from those of an update."""
        return 0.0

    def run_name(self, config: Any) -> str:
        """Return the default name of a run's folder."""
        return f"{config.preset}-{config.arm}-{config.seed}"

    def task_name(self, config: Any) -> str:
        """Name what is learned; runs of different tasks never share a table."""
        return config.preset

    def summary(self, trainer: Trainer) -> str:
        """Describe in a few words what is about to be trained."""
        config: RunConfig = trainer.config
        return f"{config.arm} on {self.task_name(config)}"

    @abstractmethod
    def trainer(self, config: Any, rank: Rank) -> Trainer:
        """Make the trainer of a run."""

    def share(self, config: Any, processes: int) -> Any:
        """Return what each of several processes trains of a run; raise if there may be but one."""
        if processes > 1:
            raise InputError(f"{self.name} trains in a single process; remove --processes.")
        return config

    def size(self, config: Any) -> tuple[int, int]:
        """Return how many samples a run learns from and how many steps of physics make them."""
        return config.updates, 0

    def stretches(self, config: Any) -> list[Stretch]:
        """Return the parts of a run whose updates cost alike, with what to measure them by."""
        return [Stretch(config, config.updates)]

    def rehearse(self, config: Any) -> Trainer:
        """Make a trainer to be measured; its data may be made up."""
        from prism_motor.train.distributed import ALONE

        return self.trainer(config, ALONE)

    def reserved(self, config: Any, trainer: Trainer) -> int:
        """Return the bytes that a run will fill beyond those that a measured trainer has.

        Args:
            config: The run.
            trainer: The trainer of a :class:`Stretch` of it.
        """
        return 0

    def video_listener(
        self, trainer: Trainer, folder: Path, every: int, say: Callable[[str], None]
    ) -> Callable[[dict[str, float]], None]:
        """Return the listener that records videos during training, called per row of metrics."""
        raise InputError(f"--video-every: {self.name} has no videos of training.")

    def check_videos(self) -> None:
        """Raise before training begins if videos cannot be made."""
        raise InputError(f"--video-every: {self.name} has no videos of training.")

    def finish(self, run: Run) -> str:
        """Do what follows training, and return a message about it."""
        return ""

    @abstractmethod
    def load_policy(self, run: str | Path, step: int | None = None) -> Any:
        """Load the policy of a checkpoint on the CPU; the newest by default.

        What it returns needs a method ``to(device)`` to be used on other devices, as modules have.
        """

    def place_policy(
        self, run: str | Path, step: int | None = None, device: str | None = None
    ) -> Any:
        """Load the policy of a checkpoint on a device.

        Args:
            run: The run folder.
            step: Which checkpoint; the newest by default.
            device: The device; default: that of the training, or the CPU where it is missing.
        """
        policy = self.load_policy(run, step)
        chosen = choose_device(device, open_run(run)[2].device)
        if chosen == "cpu":
            return policy
        if not hasattr(policy, "to"):
            raise InputError(f"Policies of {self.name} stay on the CPU: give --device cpu.")
        return policy.to(chosen)

    def place_subject(
        self, run: str | Path, step: int | None = None, device: str | None = None
    ) -> Any:
        """Load a policy for a study, on a device: with its ``config``, ``step`` and ``network``.

        By default that is the policy itself, which may call its network ``actor``.
        """
        return self.place_policy(run, step, device)

    def check_evaluation(self, config: Any, evaluation: Any) -> None:
        """Raise unless a policy with these settings can be evaluated this way."""
        for condition in evaluation.conditions:
            check_choice("condition", condition, self.conditions)

    def identify(self, config: Any, evaluation: Any, condition: str, seed: int) -> dict[str, Any]:
        """Return what identifies a stored evaluation as the requested one."""
        return {"kind": self.name, "condition": {"name": condition}, "protocol": {}}

    def evaluation_name(self, evaluation: Any, condition: str, seed: int) -> str:
        """Return the name of an evaluation's file."""
        return f"{condition}-{seed}"

    def episode_keys(self, config: Any, evaluation: Any) -> list[Key]:
        """Return the keys of the episodes of one condition and seed; by default 0, 1, ..."""
        return [(number,) for number in range(evaluation.episodes)]

    def lacks_files(
        self, run: Run, evaluation: Any, condition: str, seed: int, step: int, key: Key
    ) -> bool:
        """Return whether a finished episode lacks a requested file, e.g. its video."""
        return False

    def labels(self, config: Any) -> dict[str, Any]:
        """Return what every stored episode records about its policy."""
        return {"arm": config.arm, "training_seed": config.seed}

    def evaluator(self, run: Run, step: int, evaluation: Any) -> Evaluator:
        """Make the evaluator of a policy; by default it runs one episode after another."""
        from prism_motor.train.evaluations import EpisodeByEpisode

        return EpisodeByEpisode(self, run, step, evaluation.device)

    def run_episode(self, policy: Any, condition: str, seed: int, key: Key) -> Any:
        """Run one episode and return it."""
        raise NotImplementedError(f"{type(self).__name__} needs run_episode or evaluator.")

    def read_results(self, config: Any, file: Path) -> tuple[str, list[dict[str, Any]]]:
        """Read results that another program wrote: its name, and its episodes as stored rows."""
        raise InputError(f"{self.name} reads no results of other programs; remove --read.")

    def evaluation_table(self, found: Mapping[str, Sequence[Any]]) -> str:
        """Format the episodes of all conditions as a table, with a note on how to read it."""
        from prism_motor.reporting import episode_table

        return episode_table(self.reporting, found)

    def films(
        self, run: str | Path, settings: Any, step: int | None, device: str | None
    ) -> Sequence[Film]:
        """Return the videos of a policy; nothing is simulated before they are made.

        Args:
            run: The run folder.
            settings: An instance of :attr:`film`.
            step: Which checkpoint; the newest by default.
            device: The policy's device; default: that of the training, or the CPU.
        """
        raise InputError(f"Policies of {self.name} have no videos.")

    def export(self, run: str | Path, out: Path | None, step: int | None) -> list[str]:
        """Write the policy as files for other programs; return what to tell the user.

        By default ONNX, for policies that are modules with a known input size.
        """
        import torch

        from prism_motor.export import export_onnx
        from prism_motor.runs.layout import EXPORT

        policy = self.load_policy(run, step)
        size = getattr(policy, "in_features", None)
        if size is None:
            raise InputError(f"Policies of {self.name} cannot be exported.")
        file = (out or Path(run) / EXPORT) / "policy.onnx"
        file.parent.mkdir(parents=True, exist_ok=True)
        export_onnx(policy, file, torch.zeros(1, size))
        return [str(file)]


DOMAINS: Registry[Domain] = Registry(
    "domain",
    {
        "locomotion": "prism_motor.locomotion.domain:LOCOMOTION",
        "manipulation": "prism_motor.manipulation.domain:MANIPULATION",
        "tracking": "prism_motor.tracking.domain:TRACKING",
        "gymnasium": "prism_motor.gymnasium_control.domain:GYMNASIUM",
    },
)
"""Domains by name."""

_UNNAMED = "locomotion"
"""The domain of old runs, which do not name theirs."""


def domain_of(config: Mapping[str, Any]) -> Domain:
    """Return the domain of a run by its config.json, after loading the plugins it needs."""
    load_plugins(config.get("plugins") or (), recorded=True)
    return DOMAINS[config.get("kind", _UNNAMED)]


def open_run(path: str | Path) -> tuple[Run, Domain, Any]:
    """Open a run folder and return it with its domain and its settings."""
    from prism_motor.runs import Run

    run = Run.open(path)
    domain = domain_of(run.config)
    return run, domain, domain.read_config(run.config, str(run.config_file))


def require_domain(path: str | Path, name: str, what: str) -> None:
    """Raise unless a run belongs to a domain.

    Args:
        path: The run folder.
        name: Name of the domain.
        what: What needs that domain, for the message.
    """
    from prism_motor.runs import Run, RunError

    run = Run.open(path)
    kind = run.config.get("kind", _UNNAMED)
    if kind != name:
        raise RunError(f"{run.path} is a {kind} run, but {what} needs a {name} run.")
