"""Policies under trial: where they are, what they were trained on, and how they act on a robot."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prism_motor._checks import InputError, PrismError
from prism_motor._devices import choose_device
from prism_motor._extras import missing_extra
from prism_motor.domains import open_run, require_domain
from prism_motor.runs.checkpoints import checkpoint_steps
from prism_motor.runs.layout import CHECKPOINTS, CONFIG, is_run
from prism_motor.runs.seals import fingerprint

STATE, ACTION, IMAGES = "observation.state", "action", "observation.images."
"""LeRobot's names of what a policy sees and does; those of images end with the camera."""


@dataclass(frozen=True)
class PolicySource:
    """Where a policy is and which one it is."""

    path: str
    """A LeRobot policy folder, or a run folder."""
    step: int | None
    """Checkpoint of a run folder; ``None`` for a LeRobot folder."""
    sha256: str
    """Hash of its files."""


@dataclass(frozen=True)
class DemonstrationFacts:
    """What is known of the dataset that a policy was trained on."""

    fps: int
    """Its frames per second."""
    names: Mapping[str, list[str]]
    """Names of the coordinates by column, where it has them."""
    images: Mapping[str, tuple[int, int]]
    """Height and width of images by camera."""


def find_policy(path: Path) -> PolicySource:
    """Return what a path stands for, or raise if there is no policy."""
    path = path.expanduser().resolve()
    if is_run(path):
        require_domain(path, "manipulation", "a pilot")
        steps = checkpoint_steps(path / CHECKPOINTS)
        if not steps:
            raise InputError(f"{path} has no checkpoint yet. Train it first.")
        return PolicySource(str(path), max(steps), _hash(path, max(steps)))
    if not (path / CONFIG).is_file() or not list(path.glob("*.safetensors")):
        raise InputError(
            f"{path} is no policy: give a run folder of manipulation, or a LeRobot folder with "
            "config.json and model.safetensors, such as RUN/pretrained or "
            "checkpoints/last/pretrained_model."
        )
    return PolicySource(str(path), None, _hash(path, None))


def is_unchanged(source: PolicySource) -> bool:
    """Return whether the files of a policy are as they were."""
    try:
        return _hash(Path(source.path), source.step) == source.sha256
    except OSError:
        return False


def _hash(path: Path, step: int | None) -> str:
    """Return one hash of all files of a policy."""
    if step is None:
        files = [file for file in path.iterdir() if file.suffix in (".json", ".safetensors")]
    else:
        checkpoint = next(
            folder
            for folder in (path / CHECKPOINTS).iterdir()
            if folder.name.isdigit() and int(folder.name) == step
        )
        files = [path / CONFIG, *(file for file in checkpoint.rglob("*") if file.is_file())]
    lines = [f"{file.relative_to(path)} {fingerprint(file)['sha256']}" for file in sorted(files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def find_demonstrations(source: PolicySource) -> DemonstrationFacts | None:
    """Return what is known of a policy's demonstrations; ``None`` if they are not on this machine.

    A run folder names them, and so does the train_config.json of lerobot-train.
    """
    place = Path(source.path)
    folders: list[Path] = []
    for run in (place, place.parent):
        if is_run(run):
            folders.append(Path(open_run(run)[2].demos))
            folders.append(run.parent / folders[-1])
    training = place / "train_config.json"
    if training.is_file():
        from lerobot.utils.constants import HF_LEROBOT_HOME

        dataset = json.loads(training.read_text(encoding="utf-8")).get("dataset") or {}
        folders += [Path(dataset["root"])] if dataset.get("root") else []
        folders += [HF_LEROBOT_HOME / dataset["repo_id"]] if dataset.get("repo_id") else []
    for folder in folders:
        if (folder / "meta" / "info.json").is_file():
            info = json.loads((folder / "meta" / "info.json").read_text(encoding="utf-8"))
            return _describe(info)
    return None


def _describe(info: dict[str, Any]) -> DemonstrationFacts:
    """Return what the info.json of a dataset says."""
    columns = info.get("features", {})
    names = {key: columns[key].get("names") for key in (STATE, ACTION) if key in columns}
    images = {}
    for key, column in columns.items():
        if key.startswith(IMAGES):
            sides = [side for side in column["shape"] if side != 3]
            images[key.removeprefix(IMAGES)] = (sides[0], sides[1])
    return DemonstrationFacts(
        fps=int(info["fps"]),
        names={key: value for key, value in names.items() if isinstance(value, list)},
        images=images,
    )


class PilotPolicy:
    """A policy that acts on a robot, through LeRobot's own pipelines.

    Args:
        network: LeRobot's policy.
        preprocess: LeRobot's pipeline from observations to its inputs.
        postprocess: LeRobot's pipeline from its outputs to actions.
    """

    def __init__(self, network: Any, preprocess: Any, postprocess: Any) -> None:
        self.network, self.preprocess, self.postprocess = network, preprocess, postprocess
        config = network.config
        self.inputs: dict[str, tuple[int, ...]] = {
            key: tuple(feature.shape) for key, feature in config.input_features.items()
        }
        self.actions: int = config.output_features[ACTION].shape[0]
        self.resizes = getattr(config, "resize_shape", None) is not None
        self.device = torch.device(config.device)

    @property
    def cameras(self) -> dict[str, tuple[int, ...]]:
        """Shapes of images by camera."""
        return {
            key.removeprefix(IMAGES): shape
            for key, shape in self.inputs.items()
            if key.startswith(IMAGES)
        }

    def range_of(self, column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the least and greatest value of each coordinate in the demonstrations, if known.

        Where only mean and deviation were kept, three deviations stand for the range.
        """
        steps = [*getattr(self.preprocess, "steps", ()), *getattr(self.postprocess, "steps", ())]
        for step in steps:
            found = (getattr(step, "stats", None) or {}).get(column)
            if not found:
                continue
            values = {k: np.asarray(v, dtype=np.float64).reshape(-1) for k, v in found.items()}
            if {"min", "max"} <= values.keys():
                return values["min"], values["max"]
            if {"mean", "std"} <= values.keys():
                half = 3 * values["std"]
                return values["mean"] - half, values["mean"] + half
        return None

    def reset(self, seed: int) -> None:
        """Start a trial; the noise of policies that draw some depends only on ``seed``."""
        torch.manual_seed(seed)
        for part in (self.network, self.preprocess, self.postprocess):
            part.reset()

    def act(
        self, state: NDArray[np.float32], images: Mapping[str, NDArray[np.uint8]], task: str
    ) -> NDArray[np.float32]:
        """Return the next action, in the units of the demonstrations.

        Args:
            state: The robot's state.
            images: Images (height, width, 3) by camera; those that it does not know are left out.
            task: Instruction for policies that follow one.
        """
        from lerobot.policies.utils import prepare_observation_for_inference

        seen: dict[str, Any] = {STATE: state} if STATE in self.inputs else {}
        seen |= {IMAGES + camera: images[camera] for camera in self.cameras}
        with torch.inference_mode():
            batch = prepare_observation_for_inference(seen, self.device, task, "")
            action = self.postprocess(self.network.select_action(self.preprocess(batch)))
        return action.squeeze(0).to("cpu", torch.float32).numpy()

    def rehearse(self, task: str) -> None:
        """Act once on an empty picture, so that the first action of a trial is not the slowest."""
        known = self.range_of(STATE)
        size = self.inputs.get(STATE, (0,))[0]
        state = np.zeros(size) if known is None else (known[0] + known[1]) / 2
        images = {
            camera: np.zeros((shape[1], shape[2], 3), np.uint8)
            for camera, shape in self.cameras.items()
        }
        self.reset(0)
        found = self.act(state.astype(np.float32), images, task)
        self.reset(0)
        if found.shape != (self.actions,) or not np.isfinite(found).all():
            raise InputError(
                f"Its first action is {found.tolist()}, but {self.actions} finite numbers are "
                "needed. The policy's weights diverged, or its files do not belong together."
            )


def load_policy(source: PolicySource, device: str | None) -> PilotPolicy:
    """Load a policy; what LeRobot prints meanwhile is kept off the screen, for it may name it.

    Args:
        source: Which one.
        device: Where it computes; ``None``: where it was trained, if this machine can.
    """
    with _in_silence():
        if source.step is None:
            return _load_folder(Path(source.path), device)
        from prism_motor.manipulation.policy import export_policy
        from prism_motor.manipulation.policy import load_policy as load_run

        with TemporaryDirectory() as place:
            folder = export_policy(load_run(source.path, source.step), Path(place) / "policy")
            return _load_folder(folder, device)


def _load_folder(folder: Path, device: str | None) -> PilotPolicy:
    try:
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import get_policy_class, make_pre_post_processors

        import prism_motor.integrations.lerobot  # noqa: F401  registers our policies
        from prism_motor.integrations.lerobot.robots import register_devices
    except ImportError as error:
        raise missing_extra("A pilot", "pilot", error) from error
    register_devices()  # plugins may bring policies, too
    try:
        config = PreTrainedConfig.from_pretrained(folder)
        config.device = choose_device(device, str(config.device))
        network = get_policy_class(config.type).from_pretrained(folder, config=config)
        network.eval()
        on_device = {"device_processor": {"device": str(config.device)}}
        pipelines = make_pre_post_processors(config, str(folder), preprocessor_overrides=on_device)
    except PrismError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(f"LeRobot cannot load {folder}: {reason}") from error
    return PilotPolicy(network, *pipelines)


@contextmanager
def _in_silence() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
