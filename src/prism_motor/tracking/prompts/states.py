"""States by which a policy is prompted with a reward: some of its replay buffer, in a small file.

The file goes with a policy that is shipped without its buffer. Latents are never stored: the loaded
policy's own backward map makes them of the states. A file that was drawn for other weights is
refused all the same, because it does not say where *this* policy gets to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from prism_motor._extras import missing_extra
from prism_motor.runs.atomic import atomic_file
from prism_motor.runs.checkpoints import hash_weights, select
from prism_motor.runs.layout import PROMPTS, REPLAY, RunError
from prism_motor.tracking.bodies import kinematics
from prism_motor.tracking.observations import clip_observations, read_frames

if TYPE_CHECKING:
    from torch import Tensor

    from prism_motor.runs import Run
    from prism_motor.runs.checkpoints import Checkpoint
    from prism_motor.tracking.observations import Layout
    from prism_motor.tracking.references import References

COUNT = 3000
"""States in a file: 0.43 MB."""
FORMAT = 1
_HEADER = "header"
_SEED = 15
_POSITIONS, _VELOCITIES = 36, 35
_FIELD = "physics"


@dataclass(frozen=True)
class PromptStates:
    """States, and where they come from."""

    qpos: np.ndarray
    """Positions (N, 36)."""
    qvel: np.ndarray
    """Velocities (N, 35)."""
    source: str
    """Where they come from, in a few words."""
    note: str = ""
    """What the user should know about that, if anything."""

    def __len__(self) -> int:
        return len(self.qpos)

    def observations(self, layout: Layout) -> Tensor:
        """Return them as a backward map sees them (N, size)."""
        bodies = kinematics().bodies(self.qpos, self.qvel)
        return clip_observations(read_frames(self.qpos, self.qvel, bodies, layout), layout)


def draw_states(run: Run, checkpoint: Checkpoint, count: int = COUNT) -> PromptStates | None:
    """Draw states of a checkpoint's replay buffer, always the same ones; ``None`` without one."""
    plain = checkpoint.state.get("replay")
    tail = checkpoint.tensors.get(f"replay.tail.{_FIELD}")
    if not isinstance(plain, dict) or tail is None:
        return None
    files = [
        (run.path / REPLAY / one["file"], one["first"], one["rows"]) for one in plain["segments"]
    ]
    if not all(file.is_file() for file, _, _ in files):
        return None
    oldest = max(0, plain["added"] - plain["capacity"])
    total = (plain["added"] - oldest) * plain["envs"]
    if not total:
        return None
    drawn = torch.randperm(total, generator=torch.Generator().manual_seed(_SEED))[:count]
    drawn = drawn.sort().values + oldest * plain["envs"]
    chosen = [_rows(_read_field(file), first, plain["envs"], drawn) for file, first, _ in files]
    chosen.append(_rows(tail, plain["tail"], plain["envs"], drawn))
    states = torch.cat(chosen).double().numpy()
    finite = states[np.isfinite(states).all(axis=1)]
    return PromptStates(
        finite[:, :_POSITIONS],
        finite[:, _POSITIONS:],
        f"{len(finite):,} states of the replay buffer",
    )


def _rows(values: Tensor, first: int, envs: int, drawn: Tensor) -> Tensor:
    """Return the drawn ones of some rows (rows, envs, n) that begin with row ``first``."""
    flat = values.reshape(-1, values.shape[-1])
    within = drawn - first * envs
    return flat[within[(within >= 0) & (within < len(flat))]]


def _read_field(file: Path) -> Tensor:
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        return opened.get_tensor(_FIELD)


def write_states(run: Run) -> Path | None:
    """Write the states of a run's newest checkpoint beside it; ``None`` without a buffer."""
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise missing_extra("Saving states for prompts", "locomotion", error) from error
    checkpoint = run.load()
    states = draw_states(run, checkpoint)
    if states is None:
        return None
    # Where a robot is on the ground matters to nobody, and half precision is 1 mrad.
    qpos = states.qpos.copy()
    qpos[:, :2] = 0.0
    tensors = {
        "qpos": torch.from_numpy(qpos).half(),
        "qvel": torch.from_numpy(np.clip(states.qvel, -1000, 1000)).half(),
    }
    labels = {
        "format": FORMAT,
        "policy_sha256": hash_weights(select(checkpoint.tensors, "policy.")),
        "step": checkpoint.step,
    }
    file = run.path / PROMPTS
    with atomic_file(file) as opened:
        # One entry, because safetensors writes several in any order.
        opened.write(save(tensors, {_HEADER: json.dumps(labels)}))
    return file


def read_states(file: Path, weights: str) -> PromptStates:
    """Read states that belong to a policy.

    Args:
        file: The file.
        weights: Hash of the policy's weights; a file of others is refused.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            labels: Any = json.loads((opened.metadata() or {}).get(_HEADER, "{}"))
            values = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} cannot be read: {error}. {_REMEDY}") from error
    sizes = {"qpos": _POSITIONS, "qvel": _VELOCITIES}
    whole = isinstance(labels, dict) and labels.get("format") == FORMAT
    whole = whole and all(
        name in values and values[name].ndim == 2 and values[name].shape[1] == size
        for name, size in sizes.items()
    )
    if not whole or len(values["qpos"]) != len(values["qvel"]) or not len(values["qpos"]):
        raise RunError(f"{file} does not hold states of the 29-joint G1. {_REMEDY}")
    if labels.get("policy_sha256") != weights:
        raise RunError(
            f"{file} belongs to other weights: to {str(labels.get('policy_sha256'))[:8]} (update "
            f"{labels.get('step')}), not to {weights[:8]}. {_REMEDY}"
        )
    qpos, qvel = (values[name].double().numpy() for name in sizes)
    if not np.isfinite(qpos).all() or not np.isfinite(qvel).all():
        raise RunError(f"{file} holds numbers that are not finite. {_REMEDY}")
    length = np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    qpos[:, 3:7] /= np.maximum(length, 1e-6)
    return PromptStates(qpos, qvel, f"{len(qpos):,} states of {PROMPTS} (weights {weights[:8]})")


_REMEDY = "Delete it; training to the end (prism train --resume RUN) writes it anew."


def find_states(run: Run, checkpoint: Checkpoint, references: References) -> PromptStates:
    """Return the best states there are for prompting a policy with rewards.

    These are those of its file, of its replay buffer, or else the frames of the clips, with a note.
    """
    file, note = run.path / PROMPTS, f"{run.path} has neither {PROMPTS} nor a replay buffer."
    if file.is_file():
        try:
            return read_states(file, hash_weights(select(checkpoint.tensors, "policy.")))
        except RunError as error:
            note = str(error)
    drawn = draw_states(run, checkpoint)
    if drawn is not None:
        return drawn
    frames = len(references.qpos)
    return PromptStates(
        references.qpos,
        references.qvel,
        f"{frames:,} frames of the clips",
        f"{note} Rewards are prompted with the {frames:,} frames of the clips instead, which know "
        "nothing of what the policy can do besides.",
    )
