"""Robots and learners of random numbers, for tests."""

from dataclasses import replace

import torch

from prism_motor.tracking.learning.experts import ExpertClip, ExpertClips
from prism_motor.tracking.learning.latents import project
from prism_motor.tracking.learning.learner import TrackingLearner
from prism_motor.tracking.learning.replay import ReplayBuffer, transition_fields
from prism_motor.tracking.observations import JOINTS, Layout, RobotFrames
from prism_motor.tracking.presets import PRESETS

TINY = PRESETS["tiny"].settings


def random_frames(count, layout=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sizes = (JOINTS, JOINTS, 3, 3, (layout or Layout(compact=True)).sizes["privileged"])
    return RobotFrames(*(torch.randn(count, size, generator=generator) for size in sizes))


def frame(frames, index):
    return RobotFrames(**{name: value[index : index + 1] for name, value in vars(frames).items()})


def change(settings, **sections):
    """Return settings with fields of some sections replaced: ``learner={"gamma": 0.9}``."""
    changed = {name: replace(getattr(settings, name), **new) for name, new in sections.items()}
    return replace(settings, **changed)


def make_learner(settings=TINY, seed=1, precision="fp32"):
    """Return a learner with a buffer and clips that depend on nothing but the settings' sizes."""
    layout = PRESETS["tiny"].task.layout
    sizes = transition_fields(layout, settings.networks.latent, len(settings.auxiliary.weights))
    generator = torch.Generator().manual_seed(3)
    replay = ReplayBuffer(settings.replay.rows, 4, sizes, seed=5)
    for _ in range(20):
        values = {name: torch.randn(4, n, generator=generator) for name, n in sizes.items()}
        values["latent"] = project(values["latent"])
        values["action"] = values["action"].tanh()
        replay.add(ends=torch.rand(4, generator=generator) < 0.1, **values)
    clips = [
        ExpertClip(
            f"clip{i}",
            torch.randn(40, layout.size, generator=generator) + 1,
            torch.randn(40, layout.actions, generator=generator).tanh(),
        )
        for i in range(3)
    ]
    learner = TrackingLearner(settings, layout, seed=seed, precision=precision)
    return learner, replay, ExpertClips(clips, settings.latents.window)
