"""From a run folder to an export: two networks, latents of the clips, contract, model, runner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prism_motor.export import export_onnx, runner
from prism_motor.export.folder import check_export, check_target, copy_runner
from prism_motor.runs import Run, collect_provenance, to_dict
from prism_motor.runs.atomic import atomic_folder, write_json, write_text
from prism_motor.runs.checkpoints import hash_weights
from prism_motor.runs.layout import EXPORT
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import scene_xml
from prism_motor.tracking.contract import make_contract
from prism_motor.tracking.evaluation import prompt_clips
from prism_motor.tracking.learning.networks import ACTOR_STREAMS, GOAL_STREAMS
from prism_motor.tracking.loading import LoadedPolicy, load_policy
from prism_motor.tracking.motions.clip import Clip
from prism_motor.tracking.motions.library import find_clips
from prism_motor.tracking.motions.sampling import make_motion
from prism_motor.tracking.policy import TrackingPolicy
from prism_motor.tracking.references import References

MOST_FRAMES = 60_000
"""Frames of all exported clips together: 20 minutes at 50 Hz; further clips are left out."""


@dataclass(frozen=True)
class TrackingExport:
    """What was exported."""

    folder: Path
    """The export."""
    clips: tuple[str, ...]
    """Clips in it."""
    left_out: tuple[str, ...]
    """Clips of the run that would have made it too large."""


class DeployedActor(nn.Module):
    """The actor on raw observations of its own streams.

    Shape: observation (N, streams of the actor), latent (N, d) -> (N, actions).
    """

    def __init__(self, policy: TrackingPolicy) -> None:
        super().__init__()
        self.normaliser, self.actor = policy.normaliser, policy.actor

    def forward(self, observation: Tensor, latent: Tensor) -> Tensor:
        """Return the mean action."""
        # The actor's streams come first in an observation, so that its own columns are right.
        return self.actor(self.normaliser(observation, ACTOR_STREAMS), latent)


class DeployedBackwardMap(nn.Module):
    """The backward map on raw goals. Shape: (N, streams of a goal) -> (N, d)."""

    def __init__(self, policy: TrackingPolicy) -> None:
        super().__init__()
        self.normaliser, self.backward_map = policy.normaliser, policy.backward_map

    def forward(self, goal: Tensor) -> Tensor:
        """Return the latent."""
        return self.backward_map(self.normaliser(goal, GOAL_STREAMS))


def export_run(run: Path, out: Path | None = None, step: int | None = None) -> TrackingExport:
    """Write an export of a run and check that it can be read back.

    Args:
        run: The run folder.
        out: Folder to write, ``RUN/export`` by default; an existing export is replaced.
        step: Which checkpoint; the newest by default.
    """
    target = out or run / EXPORT
    check_target(target)
    loaded = load_policy(run, step)
    found = find_clips(loaded.config.task.clips)
    rate = 1 / loaded.config.task.control_dt
    clips, left_out = _choose(found, rate)
    references = References([make_motion(clip, rate) for clip in clips])
    lengths = references.lengths.tolist()
    contract = make_contract(
        loaded.config.task,
        list(zip(clips, lengths, strict=True)),
        loaded.config.networks.latent,
        _provenance(run, loaded),
    )
    with atomic_folder(target) as temporary:
        _write(loaded, references, contract, temporary)
        check_export(run, temporary)
    return TrackingExport(target, references.names, left_out)


def _choose(clips: Sequence[Clip], rate: float) -> tuple[list[Clip], tuple[str, ...]]:
    """Return the first clips that fit, and the names of the others."""
    chosen, left_out, frames = [], [], 0.0
    for clip in clips:
        frames += clip.seconds * rate + 1
        if frames > MOST_FRAMES and chosen:
            left_out.append(clip.name)
        else:
            chosen.append(clip)
    return chosen, tuple(left_out)


def _write(
    loaded: LoadedPolicy, references: References, contract: dict[str, Any], folder: Path
) -> None:
    policy, task = loaded.policy, loaded.config.task
    view, goal, latent = (contract[key]["size"] for key in ("observation", "goal", "latent"))
    policy_file = export_onnx(
        DeployedActor(policy),
        folder / runner.POLICY,
        (torch.zeros(1, view), torch.zeros(1, latent)),
        input_names=["observation", "latent"],
        output_names=["action"],
        metadata={"contract": contract},
    )
    backward_file = export_onnx(
        DeployedBackwardMap(policy),
        folder / runner.BACKWARD,
        torch.zeros(1, goal),
        input_names=["goal"],
        output_names=["latent"],
        metadata={"goal": contract["goal"]},
    )
    clips_file = folder / runner.CLIPS
    made_for = contract["provenance"]["policy_sha256"]
    _write_clips(clips_file, policy, references, task.ahead, made_for)
    model_file = folder / runner.MODEL
    scene = scene_xml(make_robot(task.robot), timestep=task.timestep, solver=task.solver)
    write_text(model_file, scene)
    # The policy carries the contract; only then can the contract name the policy's file.
    files = (policy_file, model_file, backward_file, clips_file)
    write_json(folder / runner.CONTRACT, runner.bind(contract, *(f.read_bytes() for f in files)))
    copy_runner(folder)


def _write_clips(
    file: Path, policy: TrackingPolicy, references: References, window: int, made_for: str
) -> None:
    """Write a latent per frame, what is tracked, and where every clip begins."""
    latents = prompt_clips(policy, references, window)
    header = {"format": 1, "policy_sha256": made_for, "clips": list(references.names)}
    first = references.starts[:-1]
    np.savez_compressed(
        file,
        header=np.array(json.dumps({**header, "window": window})),
        latents=latents.cpu().numpy().astype(np.float32),
        qpos=references.qpos.astype(np.float32),
        start_qpos=references.qpos[first],
        start_qvel=references.qvel[first],
    )


def _provenance(run: Path, loaded: LoadedPolicy) -> dict[str, Any]:
    keys = ("created", "prism", "commit", "uncommitted_changes", "packages")
    exported = collect_provenance()
    trained = Run.open(run).provenance()
    return {
        "policy_sha256": hash_weights(loaded.policy.state_dict()),
        "checkpoint": loaded.step,
        "trained": {key: trained.get(key) for key in keys},
        "exported": {key: exported[key] for key in keys},
        "config": to_dict(loaded.config),
    }
