"""Making a plan: everything is checked, then drawn, then sealed."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from prism_motor._checks import InputError, PrismError, check_choice, check_name
from prism_motor._console import note
from prism_motor.integrations.lerobot.robots import encode_robot, make_robot, parse_robot
from prism_motor.pilots.checks import RobotFeatures, check_fit, read_features
from prism_motor.pilots.config import PilotConfig
from prism_motor.pilots.order import draw_poses, make_order
from prism_motor.pilots.plan import (
    PilotPlan,
    PlannedPower,
    RobotPlan,
    SealedArm,
    SealedPart,
    StartPose,
    check_new,
    write_plan,
)
from prism_motor.pilots.policies import (
    DemonstrationFacts,
    PolicySource,
    find_demonstrations,
    find_policy,
    load_policy,
)
from prism_motor.runs import collect_provenance, to_dict
from prism_motor.runs.seals import fingerprint
from prism_motor.statistics import boschloo, power_paired, power_unpaired

USUAL_RATE = 30
"""Control steps per second, if nothing says otherwise."""


def make_plan(
    folder: Path,
    config: PilotConfig,
    arms: Sequence[str],
    robot_flags: Sequence[str],
    plugins: Sequence[str] = (),
) -> PilotPlan:
    """Check everything that a pilot needs, and write its plan.

    Args:
        folder: The pilot's new folder.
        config: The settings.
        arms: ``NAME=FOLDER``; a name that comes several times has several policies.
        robot_flags: Flags under ``--robot.``.
        plugins: User modules, already loaded.
    """
    check_new(folder)
    named = read_arms(arms)
    reference = next(iter(named)) if config.reference is None else config.reference
    check_choice("reference arm", reference, named)
    _check_trials(config, named)
    # The robot is made, but not connected.
    settings = parse_robot(robot_flags)
    robot = make_robot(settings)
    features = read_features(robot)
    if config.home is not None and len(config.home) != len(features.actions):
        raise InputError(
            f"--home needs {len(features.actions)} numbers, one for each of "
            f"{', '.join(features.actions)}; got {len(config.home)}."
        )
    pictures = _find_pictures(config, features)
    # Every policy is loaded and acts once.
    demos = {
        (name, i): find_demonstrations(source)
        for name, sources in named.items()
        for i, source in enumerate(sources)
    }
    fps = _find_rate(config, list(demos.values()))
    for name, sources in named.items():
        for i, source in enumerate(sources):
            _check_policy(f"{name} ({source.path})", source, demos[name, i], features, fps, config)
    # The letters are drawn from the system's own randomness, so that the seed does not tell.
    letters = list(ascii_uppercase[: len(named)])
    hidden = dict(zip(secrets.SystemRandom().sample(letters, len(letters)), named, strict=True))
    policies = len(named[reference])
    order = make_order(letters, config.trials, policies, config.seed)
    calibration = robot.calibration_fpath
    plan = PilotPlan(
        settings={
            **to_dict(replace(config, reference=None, poses=None)),
            "poses": None if config.poses is None else str(config.poses.resolve()),
        },
        fps=fps,
        arms=tuple(letters),
        policies=policies,
        order=tuple(order),
        poses=tuple(
            StartPose(number, seed, pictures.get(number, {}))
            for number, seed in enumerate(draw_poses(config.trials, config.seed), start=1)
        ),
        power=tuple(PlannedPower(pair, find_power(config, pair)) for pair in config.rate_pairs),
        robot=RobotPlan(
            flags=tuple(robot_flags),
            settings=encode_robot(settings),
            state=features.state,
            actions=features.actions,
            calibration=fingerprint(calibration)["sha256"] if calibration.is_file() else None,
        ),
        plugins=tuple(plugins),
        provenance=find_provenance(),
    )
    sealed = SealedPart(
        arms={
            letter: to_dict(SealedArm(name, tuple(named[name])))
            for letter, name in sorted(hidden.items())
        },
        reference=next(letter for letter, name in hidden.items() if name == reference),
    )
    write_plan(folder, plan, sealed)
    return plan


def read_arms(given: Sequence[str]) -> dict[str, list[PolicySource]]:
    """Return the policies of every arm from ``NAME=FOLDER``."""
    named: dict[str, list[PolicySource]] = {}
    for word in given:
        name, equals, place = word.partition("=")
        if not equals or not place:
            raise InputError(f"--arm takes NAME=FOLDER, e.g. prism=RUN/pretrained; got {word!r}.")
        named.setdefault(check_name("arm", name), []).append(find_policy(Path(place)))
    if not 2 <= len(named) <= len(ascii_uppercase):
        raise InputError(
            f"A pilot compares 2 to {len(ascii_uppercase)} arms, got {len(named)}. Give --arm "
            "NAME=FOLDER for each."
        )
    sizes = {name: len(sources) for name, sources in named.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InputError(
            f"Every arm needs the same number of policies (training seeds), got {listed}."
        )
    return named


def find_power(config: PilotConfig, rates: tuple[float, float]) -> float:
    """Return the power of a pilot's primary test at two true rates."""
    if config.test == "mcnemar":
        return power_paired(config.trials, rates)
    return power_unpaired(boschloo, config.trials, rates)


def find_provenance() -> dict[str, Any]:
    """Return versions, commit and time, without the command, which names the arms."""
    found = collect_provenance()
    return {key: value for key, value in found.items() if key != "command"}


def _check_trials(config: PilotConfig, named: dict[str, list[PolicySource]]) -> None:
    policies = len(next(iter(named.values())))
    if config.trials % policies:
        raise InputError(
            f"--trials {config.trials} cannot be shared equally by {policies} policies of each "
            f"arm: give a multiple of {policies}."
        )


def _find_rate(config: PilotConfig, demos: Sequence[DemonstrationFacts | None]) -> int:
    rates = {one.fps for one in demos if one is not None}
    if any(one is None for one in demos):
        note(
            "The demonstrations of a policy are not on this machine, so nothing says at which "
            "rate it was trained. Compare --fps with their meta/info.json yourself."
        )
    if config.fps is not None:
        return config.fps
    return rates.pop() if len(rates) == 1 else USUAL_RATE


def _check_policy(
    who: str,
    source: PolicySource,
    demos: DemonstrationFacts | None,
    features: RobotFeatures,
    fps: int,
    config: PilotConfig,
) -> None:
    policy = load_policy(source, config.device)
    check_fit(who, policy, demos, features, fps)
    try:
        policy.rehearse(config.task)
    except PrismError as error:
        raise InputError(f"{who} cannot act: {error}") from error


def _find_pictures(config: PilotConfig, features: RobotFeatures) -> dict[int, dict[str, str]]:
    """Return the hashes of given pictures by start pose and camera; every pose needs one."""
    if config.poses is None:
        return {}
    found: dict[int, dict[str, str]] = {}
    for pose in range(1, config.trials + 1):
        files = {name: config.poses / f"{pose}-{name}.png" for name in features.cameras}
        there = {name: file for name, file in files.items() if file.is_file()}
        if not there:
            raise InputError(
                f"{config.poses} has no picture of start pose {pose}: expected "
                f"{' or '.join(file.name for file in files.values()) or 'a robot with cameras'}."
            )
        found[pose] = {name: fingerprint(file)["sha256"] for name, file in there.items()}
    return found
