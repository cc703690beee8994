"""Reading an export: contract, networks, model and clips, only if they were exported together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .clips import Clip, read_clips
from .contracts import SCHEMA, check_contract, is_tracking
from .networks import POLICY, check_network, check_policy, open_policy
from .rules import CONTRACT, WIDEST, RunnerError, parse_json, shown
from .simulation import import_mujoco

MODEL = "robot.xml"
"""File of the robot's model in an export."""
BACKWARD, CLIPS = "backward.onnx", "clips.npz"
"""Further files of an export for tracking."""

_BOUND = {"policy_sha256": POLICY, "model_sha256": MODEL}
_BOUND_TRACKING = {**_BOUND, "backward_sha256": BACKWARD, "clips_sha256": CLIPS}
"""The files whose hashes a contract's binding holds."""


@dataclass(frozen=True)
class Export:
    """An export that was read and found to be consistent."""

    contract: dict[str, Any]
    """The contract."""
    session: Any
    """The policy in onnxruntime, on one thread."""
    model: Any
    """The ``mjModel``."""
    clips: dict[str, Clip] = field(default_factory=dict)
    """Clips by name; none in an export for walking."""
    backward: Any = None
    """The map from goals to latents in onnxruntime; ``None`` in an export for walking."""


def load_export(path: str | Path) -> Export:
    """Read an export folder; raise unless contract, policy and model are those exported together.

    Nothing can be edited: every value of the contract and every byte of the other two files is
    bound by ``binding``, and the policy carries the contract as well.
    """
    folder = Path(path)
    _require(folder, (CONTRACT, *_BOUND.values()))
    contract = _read_contract(folder / CONTRACT)
    tracking, binding = is_tracking(contract), contract["binding"]
    files = _BOUND_TRACKING if tracking else _BOUND
    _require(folder, files.values())
    for key, name in files.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != binding[key]:
            raise RunnerError(
                f"{folder / name} is not the file that was exported with {CONTRACT}: its SHA-256 "
                "differs. Export the run again."
            )
    session = open_policy(folder / POLICY)
    try:
        _check_binding(contract, session)
    except RecursionError as error:
        raise RunnerError(f"{CONTRACT} is nested too deeply. Export the run again.") from error
    check_policy(contract, session)
    model = _read_model(contract, folder / MODEL)
    if not tracking:
        return Export(contract, session, model)
    backward = open_policy(folder / BACKWARD)
    goal, size = contract["goal"]["size"], contract["latent"]["size"]
    check_network(BACKWARD, backward, {"goal": goal}, size)
    return Export(contract, session, model, read_clips(contract, folder / CLIPS), backward)


def _require(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} is not a complete export: it has no {name}. "
                "Write one with: prism export RUN"
            )


def _read_contract(path: Path) -> dict[str, Any]:
    try:
        contract = parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RunnerError(f"{path} is not a contract: {error!a}. Export the run again.") from error
    schema = contract.get("schema") if isinstance(contract, dict) else None
    if schema is None:
        raise RunnerError(f"{path} is not a contract: it has no schema. Export the run again.")
    if schema != SCHEMA:
        raise RunnerError(
            f"{path} has schema {shown(schema)}, but this runner reads schema {SCHEMA}. "
            "Use the runner of the prism version that wrote it, or export the run again."
        )
    check_contract(contract)
    return contract


def bind(
    contract: dict[str, Any],
    policy: bytes,
    model: bytes,
    backward: bytes | None = None,
    clips: bytes | None = None,
) -> dict[str, Any]:
    """Return a contract with its ``binding``.

    Args:
        contract: The contract; a ``binding`` that it has is replaced.
        policy: The bytes of ``policy.onnx``, which carries the contract without its binding.
        model: The bytes of ``robot.xml``.
        backward: For tracking, the bytes of ``backward.onnx``.
        clips: For tracking, the bytes of ``clips.npz``.
    """
    given = {"policy_sha256": policy, "model_sha256": model}
    if backward is not None and clips is not None:
        given |= {"backward_sha256": backward, "clips_sha256": clips}
    *others, last = given
    *files, final = (_BOUND_TRACKING[key] for key in given)
    binding = {
        "meaning": f"{', '.join(others)} and {last} are those of {', '.join(files)} and {final}; "
        "sha256 is that of this contract without it, as JSON with sorted keys and no spaces",
        **{key: hashlib.sha256(data).hexdigest() for key, data in given.items()},
    }
    bound = {**contract, "binding": binding}
    return {**contract, "binding": {**binding, "sha256": _hash_json(bound)}}


def _hash_json(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _check_binding(contract: dict[str, Any], session: Any) -> None:
    embedded = session.get_modelmeta().custom_metadata_map.get("contract")
    try:
        original = parse_json(embedded or "")
    except (ValueError, RecursionError) as error:
        raise RunnerError(f"{POLICY} carries no contract. Export the run again.") from error
    unbound = {key: value for key, value in contract.items() if key != "binding"}
    if field := _difference(original, unbound):
        raise RunnerError(
            f"{CONTRACT} was changed: {field} is not what {POLICY} was exported with. A contract "
            "cannot be edited; export the run again."
        )
    binding = {key: value for key, value in contract["binding"].items() if key != "sha256"}
    if _hash_json({**contract, "binding": binding}) != contract["binding"]["sha256"]:
        raise RunnerError(f"{CONTRACT}: binding.sha256 does not fit it. Export the run again.")


def _difference(one: Any, other: Any) -> str | None:
    """Return the path of the first difference between two pieces of JSON; ``None`` if equal."""
    before, after = dict(_leaves(one)), dict(_leaves(other))
    paths = (path for path in {**before, **after} if before.get(path) != after.get(path))
    found = next(paths, None)
    return None if found is None else "".join(shown(part) for part in found).lstrip(".")


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every value that has no parts, with its path; texts tell 1 from 1.0 and true."""
    parts: Any = ()
    if isinstance(value, dict):
        parts = ((f".{key}", part) for key, part in value.items())
    elif isinstance(value, list):
        parts = ((f"[{i}]", part) for i, part in enumerate(value))
    empty = True
    for name, part in parts:
        empty = False
        yield from _leaves(part, (*path, name))
    if empty:
        yield path, repr(value)


def _read_model(contract: dict[str, Any], path: Path) -> Any:
    mujoco = import_mujoco()
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise RunnerError(f"MuJoCo cannot read {path}: {error}") from error
    joints = contract["joints"]
    driven = [model.actuator(i).name for i in range(model.nu)]
    hinges = [model.joint(i).name for i in range(1, model.njnt)]
    wanted = [joint["name"] for joint in joints]
    if driven != wanted or hinges != wanted or model.nq != 7 + len(joints):
        raise RunnerError(f"{path} drives {driven}, but the contract says {wanted}.")
    limited = model.jnt_limited[1:].astype(bool)
    found = {
        "stiffness": model.actuator_gainprm[:, 0],
        "damping": -model.actuator_biasprm[:, 2],
        "torque_limit": model.actuator_forcerange[:, 1],
        "range": np.where(limited[:, None], model.jnt_range[1:], (-WIDEST, WIDEST)),
    }
    for key, values in found.items():
        promised = [(-WIDEST, WIDEST) if joint[key] is None else joint[key] for joint in joints]
        if not np.allclose(values, np.array(promised, float), rtol=1e-9):
            raise RunnerError(f"{path} differs from the contract in {key}.")
    sensors = [model.sensor(i).name for i in range(model.nsensor)]
    if "termination" in contract and contract["termination"]["base_force_sensor"] not in sensors:
        raise RunnerError(
            f"{path} has no sensor {contract['termination']['base_force_sensor']!a}, which the "
            f"contract names in termination.base_force_sensor; it has: {', '.join(sensors)}."
        )
    model.opt.timestep = contract["control"]["timestep"]
    return model


# From measurements to joint targets -------------------------------------------------------------
