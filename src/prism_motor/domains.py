"""What can be learned: a domain is a value, and all that comes after a task is written against it.

Walking and handling are entries of one table. Session, run folder, evaluations, report, campaigns
and the commands ask the domain of a run for what differs, and never which domain it is. A user's
module adds one with ``DOMAINS.register("mine", MyDomain())``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from prism_motor._checks import InputError, check_choice
from prism_motor._plugins import load_plugins
from prism_motor._registry import Registry
from prism_motor.arms import REFERENCE
from prism_motor.runs.configs import apply_overrides
from prism_motor.train.config import EvaluationConfig, RunConfig

if TYPE_CHECKING:
    from torch import Tensor, nn

    from prism_motor.reporting import ReportSpec
    from prism_motor.runs import Run
    from prism_motor.statistics.claims import Measure
    from prism_motor.train.distributed import Rank

State = tuple[dict[str, "Tensor"], dict[str, Any]]
"""Tensors and plain data that training goes on from."""

Key = tuple[Any, ...]
"""What identifies an episode within an evaluation."""


class Trainer(Protocol):
    """What learns: one update after the other, resumable to the bit."""

    config: Any
    """The run."""
    updates: int
    """Finished updates."""
    seconds: float
    """Time they took."""

    def update(self) -> dict[str, float] | None:
        """Do one update; return a row of metrics when one is due."""
        ...

    def state(self) -> State:
        """Return all that :meth:`restore` needs to go on exactly."""
        ...

    def state_before(self) -> State:
        """Return the state from before the update that has just failed."""
        ...

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Go on from a saved state."""
        ...

    def models(self) -> dict[str, nn.Module]:
        """Return the networks that must agree between processes."""
        ...

    def describe(self, row: Mapping[str, float]) -> str:
        """Say in one line what a row of metrics means."""
        ...


class Evaluator(Protocol):
    """Runs episodes of one policy; made once for all conditions and seeds of an evaluation."""

    def steps(self, keys: Sequence[Key]) -> int:
        """Return how many steps of progress some episodes are at most."""
        ...

    def run(
        self,
        condition: str,
        seed: int,
        keys: Sequence[Key],
        note: Callable[..., None],
        report: Callable[[], None],
    ) -> None:
        """Run episodes; call ``note`` with those that end and ``report`` with each step.

        Torch may be given other threads; they are put back afterwards.
        """
        ...

    def close(self) -> None:
        """Free what was opened."""
        ...


class Preparation(Protocol):
    """Something that policies need before they can train, made once for all arms of a variant."""

    @property
    def path(self) -> Path:
        """The folder that it will be in."""
        ...

    @property
    def seed(self) -> int:
        """Seed of everything random about it."""
        ...

    @property
    def total(self) -> int:
        """How many pieces it consists of."""
        ...

    @property
    def title(self) -> str:
        """What it is called in tables: ``demonstrations``."""
        ...

    @property
    def verb(self) -> str:
        """What is done to make it: ``record``."""
        ...

    @property
    def unit(self) -> str:
        """What one piece is called: ``demonstration``."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the runs that use it, by dotted key."""
        ...

    def command(self) -> list[str]:
        """Return the arguments of ``prism`` that make what is missing."""
        ...

    def check(self) -> None:
        """Raise if its folder holds something else."""
        ...

    def count_done(self) -> int:
        """Return how many pieces are done; all of them only when it can be used."""
        ...

    def progress(self) -> tuple[int, float] | None:
        """Return how many pieces are done and the seconds that they took, once known."""
        ...


class Domain(ABC):
    """Everything about a domain that the rest of the package needs to know."""

    name: ClassVar[str]
    """Its name in commands and as ``kind`` in config.json."""
    title: ClassVar[str]
    """What policies of it do, for headings: ``Walking``."""
    config: ClassVar[type[RunConfig]] = RunConfig
    """Settings of a run."""
    evaluation: ClassVar[type[EvaluationConfig]] = EvaluationConfig
    """Settings of an evaluation: the flags of ``prism eval`` and keys of a campaign file."""
    episode: ClassVar[type]
    """One evaluated episode; its class variable ``KEY`` names the fields that identify it."""
    conditions: ClassVar[tuple[str, ...]] = ("nominal",)
    """Names of all conditions; the first changes nothing."""
    measures: ClassVar[tuple[Measure, ...]]
    """What is measured about an episode; the first is a rate."""
    weights: ClassVar[str] = "policy."
    """What the names of the policy's tensors in a checkpoint begin with."""
    weights_extra: ClassVar[tuple[str, ...]] = ()
    """What the names of other tensors that the policy needs begin with."""
    process_tensors: ClassVar[tuple[str, ...]] = ("torch_rng",)
    """What the names of tensors begin with that differ between data-parallel processes."""
    tuning_metric: ClassVar[tuple[str, bool]] = ("loss", False)
    """The metric that tuning runs are scored by, and whether more of it is better."""
    presets: ClassVar[Mapping[str, Any]]
    """Presets by name; :meth:`make_config` knows what they are."""
    arms: ClassVar[Iterable[str]]
    """Names of all arms."""
    can_train_longer: ClassVar[bool] = True
    """Whether a run may have more updates than planned; not if its schedule ends with the last."""
    default_preset: ClassVar[str]
    """Preset unless another is named."""
    short_flags: ClassVar[Mapping[str, str]] = {}
    """Short names of flags of ``prism train``."""
    renamed_flags: ClassVar[Mapping[str, str]] = {}
    """Former names of flags of ``prism train``."""
    reference: ClassVar[str] = REFERENCE
    """The arm that others are compared with."""
    arm_aliases: ClassVar[Mapping[str, str]] = {}
    """Former names of arms."""
    preparation: ClassVar[type | None] = None
    """Settings of what campaigns make before they train, if anything: see :meth:`preparations`."""

    @cached_property
    def reporting(self) -> ReportSpec:
        """What reports must know; the defaults suit most domains."""
        from prism_motor.reporting import ReportSpec

        return ReportSpec(self)

    def arm_name(self, name: str) -> str:
        """Return the present name of an arm."""
        return self.arm_aliases.get(name, name)

    def upgrade(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of a run, as an earlier version wrote them, by present names."""
        return data

    def read_config(self, data: dict[str, Any], where: str = "config") -> Any:
        """Read the settings of a run."""
        from prism_motor.runs import from_dict

        return from_dict(self.config, self.upgrade(data), where)

    def make_config(
        self,
        preset: str,
        arm: str,
        *,
        seed: int = 1,
        name: str | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the settings of a run; here the preset is such settings.

        Args:
            preset: One of the presets.
            arm: One of the arms.
            seed: Training seed.
            name: What the arm is called in tables; default: as it is.
            overrides: Settings by dotted key that differ from the preset.
        """
        check_choice("arm", arm, self.arms)
        start = self.presets[check_choice("preset", preset, self.presets)]
        chosen = replace(start, preset=preset, arm=name or arm, seed=seed)
        return apply_overrides(chosen, overrides or {})

    def flags(self, preset: str, arm: str) -> Any:
        """Return the settings whose fields are the flags of ``prism train``."""
        return self.make_config(preset, arm)

    def prepare(self, config: Any) -> Any:
        """Check settings before anything is written, and fill in what only the task knows."""
        return config

    def planned(self, config: Any) -> Any:
        """Return settings without what :meth:`prepare` fills in, to compare a plan with a run."""
        return config

    def upgrade_campaign(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return a campaign file, as an earlier version wrote it, by present names."""
        return data

    def preparations(
        self, settings: Any, folder: Path, configs: Mapping[str, Sequence[Any]]
    ) -> Mapping[str, Preparation]:
        """Return what a campaign makes before it trains, by variant.

        Args:
            settings: An instance of :attr:`preparation`.
            folder: The campaign's folder.
            configs: The runs' settings of all arms by variant.
        """
        return {}

    def shorten(self, config: Any, fraction: float) -> dict[str, Any]:
        """Return the settings, by dotted key, that make a run a fraction as long; for tuning."""
        return {"updates": max(1, round(config.updates * fraction))}

    def guess_evaluation(self, config: Any, evaluation: Any, update: float) -> float:
        """Guess the seconds of one condition and seed from those of an update."""
        return 0.0

    def run_name(self, config: Any) -> str:
        """Return the name of a run's folder, unless another is given."""
        return f"{config.preset}-{config.arm}-{config.seed}"

    def task_name(self, config: Any) -> str:
        """Name what is learned; runs of different tasks never share a table."""
        return config.preset

    def summary(self, trainer: Trainer) -> str:
        """Say in a few words what is about to be trained."""
        config: RunConfig = trainer.config
        return f"{config.arm} on {self.task_name(config)}"

    @abstractmethod
    def trainer(self, config: Any, rank: Rank) -> Trainer:
        """Make what trains a run."""

    def video_listener(
        self, trainer: Trainer, folder: Path, every: int, say: Callable[[str], None]
    ) -> Callable[[dict[str, float]], None]:
        """Return what films the policy while it trains, called with every row of metrics."""
        raise InputError(f"--video-every: {self.name} has no videos of training.")

    def check_videos(self) -> None:
        """Raise before training begins if videos cannot be made."""
        raise InputError(f"--video-every: {self.name} has no videos of training.")

    def finish(self, run: Run) -> str:
        """Do what comes right after training, and say so."""
        return ""

    @abstractmethod
    def load_policy(self, run: str | Path, step: int | None = None) -> Any:
        """Load the policy of a checkpoint; the newest by default."""

    def check_evaluation(self, config: Any, evaluation: Any) -> None:
        """Raise unless a policy of these settings can be evaluated like this."""
        for condition in evaluation.conditions:
            check_choice("condition", condition, self.conditions)

    def identify(self, config: Any, evaluation: Any, condition: str, seed: int) -> dict[str, Any]:
        """Return what makes a stored evaluation the one that is asked for."""
        return {"kind": self.name, "condition": {"name": condition}, "protocol": {}}

    def evaluation_name(self, evaluation: Any, condition: str, seed: int) -> str:
        """Return the name of an evaluation's file."""
        return f"{condition}-{seed}"

    def episode_keys(self, evaluation: Any) -> list[Key]:
        """Return what identifies the episodes of one condition and seed; here numbers from 0."""
        return [(number,) for number in range(evaluation.episodes)]

    def lacks_files(
        self, run: Run, evaluation: Any, condition: str, seed: int, step: int, key: Key
    ) -> bool:
        """Say whether an episode that is done lacks a file that is asked for, e.g. its video."""
        return False

    def labels(self, config: Any) -> dict[str, Any]:
        """Return what every stored episode says about its policy."""
        return {"arm": config.arm, "training_seed": config.seed}

    def evaluator(self, run: Run, step: int, evaluation: Any) -> Evaluator:
        """Make what runs the episodes of a policy; here one after the other."""
        from prism_motor.train.evaluations import EpisodeByEpisode

        return EpisodeByEpisode(self, run, step)

    def run_episode(self, policy: Any, condition: str, seed: int, key: Key) -> Any:
        """Run one episode and return it."""
        raise NotImplementedError(f"{type(self).__name__} needs run_episode or evaluator.")

    def evaluation_table(self, found: Mapping[str, Sequence[Any]]) -> str:
        """Write the episodes of all conditions as a table, with a note on how to read it."""
        from prism_motor.reporting import episode_table

        return episode_table(self.reporting, found)

    def export(self, run: str | Path, out: Path | None, step: int | None) -> list[str]:
        """Write the policy as files for others; return what to tell the user.

        Here ONNX, for policies that are modules of a known input size.
        """
        import torch

        from prism_motor.export import export_onnx
        from prism_motor.runs.layout import EXPORT

        policy = self.load_policy(run, step)
        size = getattr(policy, "in_features", None)
        if size is None:
            raise InputError(f"Policies of {self.name} have no export.")
        file = (out or Path(run) / EXPORT) / "policy.onnx"
        file.parent.mkdir(parents=True, exist_ok=True)
        export_onnx(policy, file, torch.zeros(1, size))
        return [str(file)]


DOMAINS: Registry[Domain] = Registry(
    "domain",
    {
        "locomotion": "prism_motor.locomotion.domain:LOCOMOTION",
        "manipulation": "prism_motor.manipulation.domain:MANIPULATION",
    },
)
"""Domains by name."""

_UNNAMED = "locomotion"
"""Runs from before there were several domains do not name theirs."""


def domain_of(config: Mapping[str, Any]) -> Domain:
    """Return the domain of a run by its config.json, after loading the plugins that it needs."""
    load_plugins(config.get("plugins") or ())
    return DOMAINS[config.get("kind", _UNNAMED)]


def open_run(path: str | Path) -> tuple[Run, Domain, Any]:
    """Open a run folder and return it with its domain and its settings."""
    from prism_motor.runs import Run

    run = Run.open(path)
    domain = domain_of(run.config)
    return run, domain, domain.read_config(run.config, str(run.config_file))


def require_domain(path: str | Path, name: str, what: str) -> None:
    """Raise unless a run is of a domain.

    Args:
        path: The run folder.
        name: Name of the domain.
        what: What needs it, for the message.
    """
    from prism_motor.runs import Run, RunError

    run = Run.open(path)
    kind = run.config.get("kind", _UNNAMED)
    if kind != name:
        raise RunError(f"{run.path} is a run of {kind}, and {what} is for runs of {name}.")
