"""Tracking runs that are trained within a second."""

from prism_motor.tracking.domain import TRACKING
from prism_motor.train import session


def make_run(folder, arm="prism", **overrides):
    """Train a tiny policy and return its run folder."""
    config = TRACKING.make_config("tiny", arm, overrides=overrides)
    run, trainer = session.start(config, folder)
    session.train(run, trainer, config.updates)
    return folder
