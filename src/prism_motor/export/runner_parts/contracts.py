"""Every field of the contracts of both kinds: walking and tracking."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .rules import (
    ANGLE,
    ANGLES,
    FASTEST,
    HASH,
    TEXT,
    WIDEST,
    Each,
    Either,
    Rule,
    RunnerError,
    check_value,
    count,
    number,
    or_null,
    pair,
    positive,
    refusal,
    text,
)

SCHEMA = 2
"""Version of the contract; raised when its meaning changes."""

TRACKING = "tracking"
"""The ``kind`` of contracts for policies that track motions; those for walking name none."""

_SCHEMA = number(SCHEMA, SCHEMA, whole=True)
_ROBOT = {
    "robot": TEXT, "base": TEXT,
    "joints": Each("joint", {
        "name": TEXT, "default": ANGLE, "range": or_null(ANGLES),
        "velocity_limit": or_null(positive(FASTEST)), "torque_limit": positive(1e4),
        "stiffness": positive(1e5), "damping": number(0, 1e4),
    }),
    "control": {
        "meaning": TEXT, "rate": number(1, 1e4), "dt": number(1e-4, 1),
        "timestep": number(1e-5, 0.1), "substeps": count(1e4),
        "zero_warm_start": Rule("true or false", lambda value: isinstance(value, bool)),
    },
    "safety": {
        "meaning": TEXT, "position_tolerance": number(0, 1),
        "angular_velocity": positive(FASTEST), "deadline": positive(1),
    },
}  # fmt: skip
_PROVENANCE = Rule(
    "an object with policy_sha256, 64 hexadecimal digits",
    lambda value: isinstance(value, dict) and HASH.allows(value.get("policy_sha256")),
)
_BLOCK = {"source": TEXT, "size": count(1e5), "scale": positive(1e3), "meaning": TEXT}
_PLACED = {**_BLOCK, "first": number(0, 1e6, whole=True)}

_GAIT = {
    "meaning": TEXT, "cycle": number(1e-2, 1e3), "double_support": number(0, 10),
    "feet": Each("foot", TEXT), "offsets": Each("foot", number(-1, 1)),
    "start": Each("joint", ANGLE), "gains": Each("foot", Each("joint", ANGLE)),
}  # fmt: skip
_STRIDES = Each("foot", Each("part of the command", Each("joint", number(-100, 100))))

WALKING_FIELDS = {
    "schema": _SCHEMA, **_ROBOT,
    "action": {
        "meaning": TEXT, "scale": positive(10), "clip": positive(1e3),
        "added_to": text("reference or default_pose", "reference|default_pose"),
    },
    "observation": {
        "meaning": TEXT, "frames": count(1e3), "frame_size": count(1e5), "size": count(1e6),
        "clip": positive(1e6),
        "blocks": Each("block", _BLOCK),
    },
    "gait": Either("strides", _GAIT, {**_GAIT, "strides": _STRIDES}),
    "command": {
        "meaning": TEXT,
        "ranges": Either(
            "yaw_rate",
            {"forward": pair(-100, 100), "sideways": pair(-100, 100), "heading": ANGLES},
            {"forward": pair(-100, 100), "sideways": pair(-100, 100),
             "yaw_rate": pair(-FASTEST, FASTEST)},
        ),
        "heading_gain": number(0, 100), "yaw_limit": number(0, 100),
        "deadband": number(0, 100), "resample_after": positive(1e6),
    },
    "start": {"meaning": TEXT, "height": positive(100), "joint_noise": number(0, math.pi)},
    "termination": {
        "meaning": TEXT, "duration": positive(1e6), "base_force": positive(1e6),
        "base_force_sensor": TEXT, "roll": or_null(positive(10)),
        "pitch": or_null(positive(10)), "height": or_null(number(0, 100)),
    },
    "provenance": _PROVENANCE,
    "binding": {"meaning": TEXT, "policy_sha256": HASH, "model_sha256": HASH, "sha256": HASH},
}  # fmt: skip
"""Every field of a contract for walking and what it may be; it has these and no others."""

TRACKING_FIELDS = {
    "schema": _SCHEMA, "kind": text(TRACKING, TRACKING), **_ROBOT,
    "action": {
        "meaning": TEXT, "units": Each("joint", positive(10)), "clip": positive(1e3),
        "reach": number(1, 10),
    },
    "observation": {
        "meaning": TEXT, "size": count(1e6), "names": Each("entry of an observation", TEXT),
        "blocks": Each("block", {**_PLACED, "age": number(0, 1e3, whole=True)}),
    },
    "latent": {"meaning": TEXT, "size": count(1e5), "length": positive(1e3)},
    "goal": {
        "meaning": TEXT, "size": count(1e6), "names": Each("entry of a goal", TEXT),
        "blocks": Each("block of a goal", _PLACED),
    },
    "clips": Each("clip", {
        "name": TEXT, "frames": number(2, 1e9, whole=True), "source": or_null(TEXT),
        "licence": or_null(TEXT), "attribution": or_null(TEXT),
    }),
    "upright": {"meaning": TEXT, "height": number(0, 100), "tilt": number(0, 180)},
    "provenance": _PROVENANCE,
    "binding": {
        "meaning": TEXT, "policy_sha256": HASH, "model_sha256": HASH, "backward_sha256": HASH,
        "clips_sha256": HASH, "sha256": HASH,
    },
}  # fmt: skip
"""The same for tracking."""


def is_tracking(contract: Any) -> bool:
    """Return whether a contract is one for tracking, judging only by what it calls itself."""
    return isinstance(contract, dict) and contract.get("kind") == TRACKING


def check_contract(contract: Any) -> None:
    """Raise unless every field is there, of its type and in its range, and all fit together."""
    tracking = is_tracking(contract)
    if not tracking and isinstance(contract, dict) and "kind" in contract:
        words = f"{TRACKING}, or be left out for walking"
        raise RunnerError(refusal("kind", contract["kind"], words))
    check_value(contract, TRACKING_FIELDS if tracking else WALKING_FIELDS, "", {})
    own = _tracking_relations if tracking else _walking_relations
    for field, given, allowed, holds in (*own(contract), *_relations(contract)):
        if not holds:
            raise RunnerError(refusal(field, given, allowed))


_Relation = tuple[str, Any, str, bool]
"""What fields demand of each other: field, its value, what is allowed, if it holds."""


def _equal(field: str, given: float, expected: float, why: str) -> _Relation:
    return field, given, f"{why}, {expected}", math.isclose(given, expected, rel_tol=1e-9)


def _relations(contract: dict[str, Any]) -> Iterator[_Relation]:
    """Yield what both kinds demand."""
    control, joints = contract["control"], contract["joints"]
    product = control["timestep"] * control["substeps"]
    yield _equal("control.dt", control["dt"], product, "timestep * substeps")
    yield _equal("control.rate", control["rate"], 1 / control["dt"], "1 / dt")
    yield _at_least_a_step(contract, "safety", "deadline")
    names = [joint["name"] for joint in joints]
    for i, joint in enumerate(joints):
        low, high = joint["range"] or (-WIDEST, WIDEST)
        inside = low - 1e-6 <= joint["default"] <= high + 1e-6
        yield f"joints[{i}].default", joint["default"], f"in its range, {low} to {high}", inside
        unique = names.count(names[i]) == 1
        yield f"joints[{i}].name", names[i], "a name that no other joint has", unique


def _at_least_a_step(contract: dict[str, Any], group: str, name: str) -> _Relation:
    given, least = contract[group][name], contract["control"]["dt"]
    return f"{group}.{name}", given, f"at least control.dt, {least}", given >= least * (1 - 1e-9)


def _walking_relations(contract: dict[str, Any]) -> Iterator[_Relation]:
    view = contract["observation"]
    total, whole = sum(b["size"] for b in view["blocks"]), view["frames"] * view["frame_size"]
    yield _equal(
        "observation.frame_size", view["frame_size"], total, "the sum of the blocks' sizes"
    )
    yield _equal("observation.size", view["size"], whole, "frames * frame_size")
    yield _at_least_a_step(contract, "command", "resample_after")
    for foot in contract["gait"].get("strides", [])[:1]:
        parts = "3 entries, one per part of the command"
        yield "gait.strides[0]", f"{len(foot)} entries", parts, len(foot) == 3


def _tracking_relations(contract: dict[str, Any]) -> Iterator[_Relation]:
    for group in ("observation", "goal"):
        view, first = contract[group], 0
        yield _equal(
            f"{group}.size", view["size"], len(view["names"]), "as many as there are names"
        )
        for i, block in enumerate(view["blocks"]):
            field = f"{group}.blocks[{i}].first"
            yield _equal(field, block["first"], first, "where the block before it ends")
            first += block["size"]
        yield _equal(f"{group}.size", view["size"], first, "the sum of the blocks' sizes")
    latent = contract["latent"]
    yield _equal("latent.length", latent["length"], math.sqrt(latent["size"]), "the root of size")
    names = [clip["name"] for clip in contract["clips"]]
    for i, name in enumerate(names):
        words = "a name that no other clip has"
        yield f"clips[{i}].name", name, words, names.count(name) == 1
