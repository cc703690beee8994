"""Short clips and small environments, for tests."""

from dataclasses import replace

import torch

from prism_motor.tracking.env import TrackingEnv
from prism_motor.tracking.motions.library import find_clip
from prism_motor.tracking.motions.sampling import make_motion
from prism_motor.tracking.presets import PRESETS
from prism_motor.tracking.references import References, action_units
from prism_motor.tracking.task import NOMINAL, StartConfig, TrackingRandomisation

FULL = TrackingRandomisation()
"""Everything random, as in the paper."""


def cut(name, frames, first=0):
    """Return some frames of a shipped clip."""
    clip, within = find_clip(name), slice(first, first + frames)
    parts = {key: getattr(clip, key)[within] for key in ("position", "quaternion", "joints")}
    return replace(clip, **parts)


def short_references(frames=40, names=("squat", "wave"), first=70):
    """Return some frames of clips, at 50 Hz: those in which they move."""
    return References([make_motion(cut(name, frames, first), 50.0) for name in names])


def make_task(references, randomisation=NOMINAL, unit="clips", **changes):
    """Return the task of the preset tiny, with its units."""
    task = replace(PRESETS["tiny"].task, randomisation=randomisation, **changes)
    task = replace(task, actions=replace(task.actions, unit=unit))
    return replace(task, units=action_units(task.actions, task.robot, references))


def make_env(envs=3, randomisation=NOMINAL, references=None, seed=0, threads=1, **changes):
    """Return an environment on short clips."""
    references = references or short_references()
    starts = {"starts": StartConfig(lying=0.0), **changes}
    task = make_task(references, randomisation, **starts)
    return TrackingEnv(task, references, envs, seed=seed, threads=threads)


def draw_actions(env, seed, size=0.3):
    """Return random actions."""
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(env.envs, len(env.robot.joints), generator=generator)
