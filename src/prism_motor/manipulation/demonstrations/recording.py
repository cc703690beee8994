"""Recording one demonstration of a scripted expert, and its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor._checks import InputError
from prism_motor.manipulation.environment import Environment, Expert, Image, Observation
from prism_motor.runs.atomic import atomic_file

GRIPPERS = ("gripper", "gripper.pos")
"""Names of the action that opens and closes the fingers; the second is LeRobot's."""


def is_gripper(action: str) -> bool:
    """Return whether an action of that name opens and closes the fingers."""
    return action in GRIPPERS


@dataclass(frozen=True)
class Demonstration:
    """Observations and actions at every step of a demonstration."""

    states: NDArray[np.float32]
    """Steps x proprioception."""
    objects: NDArray[np.float32]
    """Steps x object poses."""
    actions: NDArray[np.float32]
    """Steps x action."""
    images: dict[str, Image] = field(default_factory=dict)
    """By camera: steps x height x width x 3."""

    def __len__(self) -> int:
        return len(self.actions)


def record_demonstration(
    environment: Environment,
    expert: Expert,
    *,
    seed: int,
    hold: int,
    images: bool,
    noise: float = 0.0,
) -> Demonstration | None:
    """Let an expert act from a random reset; return ``None`` if it does not solve the task.

    Args:
        environment: The environment.
        expert: The expert.
        seed: Seed of the reset and the noise.
        hold: Steps to continue after success, so that the steps just before it can be learned from
            with a whole chunk of actions.
        images: Whether to record images.
        noise: Standard deviation of noise added to the actions of the hand when they are
            executed. Actions are recorded without it, so they show how to recover.
    """
    random = np.random.default_rng(seed)
    spread = noise * np.array([not is_gripper(name) for name in environment.action_names])
    observations: list[Observation] = []
    actions: list[NDArray[np.float32]] = []
    observation = environment.reset(seed=seed, images=images)
    expert.reset()
    left = None
    while left is None or left > 0:
        # Record the expert's action, but execute it with noise.
        action = expert.act()
        observations.append(observation)
        actions.append(np.asarray(action, dtype=np.float32))
        disturbed = action + spread * random.standard_normal(len(spread))
        executed = np.clip(disturbed, environment.action_low, environment.action_high)
        step = environment.step(executed.astype(np.float32), images=images)
        observation = step.observation
        # Continue for a few steps after success; give up at the horizon.
        if left is not None:
            left -= 1
        elif step.success:
            left = hold
        elif step.timeout:
            return None
    return Demonstration(
        states=np.stack([seen.state for seen in observations]),
        objects=np.stack([seen.objects for seen in observations]),
        actions=np.stack(actions),
        images={
            camera: np.stack([seen.images[camera] for seen in observations])
            for camera in (environment.cameras if images else ())
        },
    )


def save_demonstration(demonstration: Demonstration, file: Path) -> None:
    """Write a demonstration to a file atomically."""
    arrays: dict[str, Any] = {
        "states": demonstration.states,
        "objects": demonstration.objects,
        "actions": demonstration.actions,
        **{f"image/{camera}": images for camera, images in demonstration.images.items()},
    }
    with atomic_file(file) as stream:
        np.savez(stream, **arrays)


def load_demonstration(file: Path) -> Demonstration:
    """Read a demonstration from its file."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            images = {
                name.removeprefix("image/"): arrays[name]
                for name in arrays.files
                if name.startswith("image/")
            }
            return Demonstration(arrays["states"], arrays["objects"], arrays["actions"], images)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # damaged files raise nearly anything
        raise InputError(
            f"{file} is not a demonstration: {error}. Delete it; it is recorded again."
        ) from error
