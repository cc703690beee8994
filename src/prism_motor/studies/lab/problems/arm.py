"""The arm of the physics study: its targets one by one, and the slip of its hand."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from prism_motor.studies.fitting import Split, Splits
from prism_motor.studies.lab.problems.problem import DataRequest, Problem
from prism_motor.studies.physics.config import PhysicsConfig
from prism_motor.studies.physics.dataset import make_dataset
from prism_motor.studies.physics.robot import (
    JOINTS,
    TARGETS,
    Data,
    Model,
    PhysicsTarget,
    engine,
    load_arm,
    measure,
    target_columns,
)

_FEWEST_EPISODES = 40
"""Training episodes at least, so that few samples are not a single motion."""

_SIGNALS = "positions, velocities and torques of four joints"


def slip_power(model: Model, data: Data) -> float:
    """Return the power that friction takes from the hand, -F_t . v_t where it touches, in W."""
    mujoco = engine()
    wrench, jacobian, lost = np.empty(6), np.empty((3, model.nv)), 0.0
    for i in range(data.ncon):
        contact = data.contact[i]
        mujoco.mj_contactForce(model, data, i, wrench)
        mujoco.mj_jac(model, data, jacobian, None, contact.pos, model.body("hand").id)
        # In the contact's frame: along the normal, then along the surface.
        velocity = contact.frame.reshape(3, 3) @ jacobian @ data.qvel
        lost -= float(wrench[1:3] @ velocity[1:3])
    return lost


_SLIP = PhysicsTarget("slip", "Slip power of the hand", "−F_t · v_t", slip_power)


@lru_cache(maxsize=12)  # several problems share the episodes of a seed
def _episodes(request: DataRequest) -> Splits:
    config = PhysicsConfig()
    rows = round(config.episode_seconds / config.sample_seconds)
    held_out = math.ceil(request.held_out / rows)
    found = make_dataset(
        PhysicsConfig(
            train_episodes=max(_FEWEST_EPISODES, math.ceil(request.samples / rows)),
            validation_episodes=held_out,
            test_episodes=held_out,
            extrapolation=request.reach,
            data_seed=request.seed,
        )
    )
    kept = np.linspace(0, len(found.train.inputs) - 1, request.samples).round().astype(int)
    train = Split(found.train.inputs[kept], found.train.targets[kept])
    return Splits(train, found.validation, found.test, found.extrapolation)


def _columns(target: str, request: DataRequest) -> Splits:
    """Return the data with one target of the study."""
    columns, found = target_columns()[target], _episodes(request)
    parts = (found.train, found.validation, found.test, found.extrapolation)
    return Splits(*(Split(part.inputs, part.targets[:, columns]) for part in parts))


def _slip(request: DataRequest) -> Splits:
    """Return the same states with the slip power of the hand."""
    model, found = load_arm(), _episodes(request)
    parts = (found.train, found.validation, found.test, found.extrapolation)
    return Splits(
        *(
            Split(part.inputs, measure(model, *np.split(part.inputs, 3, axis=1), targets=(_SLIP,)))
            for part in parts
        )
    )


_FACTORS = {
    "joint_power": 2,
    "absolute_power": 2,
    "kinetic_energy": 3,
    "coriolis": 3,
    "contact_power": 2,
}
"""Longest products of the study's targets; entries of M(q) count as one signal."""


def _problem(target: PhysicsTarget) -> Problem:
    return Problem(
        f"arm-{target.name.replace('_', '-')}",
        f"Arm: {target.label[0].lower()}{target.label[1:]}".replace("coriolis", "Coriolis"),
        target.formula,
        _SIGNALS,
        (3 * len(JOINTS), target.size),
        _FACTORS[target.name],
        lambda request: _columns(target.name, request),
    )


ARM_PROBLEMS: tuple[Problem, ...] = (
    *(_problem(target) for target in TARGETS),
    Problem("arm-slip", "Arm: slip power of the hand", _SLIP.formula, _SIGNALS, (12, 1), 2, _slip),
)
"""One problem per target of the study, and slip."""
