"""Run an exported policy in MuJoCo, using only its contract.

This file imports nothing from prism. Copied anywhere, it needs only an export, numpy, onnxruntime
and mujoco::

    python runner.py EXPORT --seconds 24 --command 0.5 0 0

It exits with 0 after an episode, 2 if the export or an argument is wrong (nothing has moved then),
3 if it stopped for safety.

:class:`Controller` is the part that would run on a robot; :func:`simulate` puts MuJoCo in the
robot's place and steps it as the contract says. The controller acts only on what is finite and
within the contract's limits; anything else makes it hold the joints where they are, for good.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import re
import reprlib
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SCHEMA = 2
"""Version of the contract; raised when its meaning changes."""

CONTRACT, POLICY, MODEL = "contract.json", "policy.onnx", "robot.xml"
"""Files of an export."""

STOPPED = 3
"""Exit code after a stop for safety; 2 is for an export or an argument that is wrong."""

HOLD_SECONDS = 1.0
"""How long a simulation goes on in the safe posture after a stop, s."""

_WIDEST, _FASTEST = 4 * math.pi, 100.0
"""Angle (rad) and velocity (rad/s) beyond which no joint is believed, whatever its limits."""


class RunnerError(ValueError):
    """An export or an argument cannot be used; nothing has moved."""


class SafetyStop(RunnerError):  # noqa: N818 - an event, which may be nobody's error
    """The controller refused to act and holds a safe posture.

    Attributes:
        targets: Joint targets of the posture: finite, within the joints' ranges.
    """

    def __init__(self, reason: str, targets: np.ndarray) -> None:
        super().__init__(reason)
        self.targets = targets


@dataclass(frozen=True)
class Export:
    """An export that was read and found to be consistent."""

    contract: dict[str, Any]
    """The contract."""
    session: Any
    """The policy in onnxruntime, on one thread."""
    model: Any
    """The ``mjModel``."""


@dataclass(frozen=True)
class Reading:
    """What the robot measures; joints in the contract's order."""

    q: np.ndarray
    """Joint angles, rad."""
    dq: np.ndarray
    """Joint velocities, rad/s."""
    angular_velocity: np.ndarray
    """Angular velocity of the base in its own axes, rad/s."""
    euler: np.ndarray
    """Roll, pitch and yaw of the base (ZYX), rad; yaw from -pi to pi."""


@dataclass(frozen=True)
class Episode:
    """What happened in a simulation; means are NaN if it stopped before the first step."""

    seconds: float
    """Time until the fall, the stop or the end."""
    fall: str | None
    """Why it counts as fallen; ``None`` if it did not fall."""
    stop: SafetyStop | None
    """Why the controller stopped; ``None`` if it did not."""
    linear_error: float
    """Mean distance of the planar velocity from its command, m/s."""
    yaw_error: float
    """Mean distance of the yaw rate from its command, rad/s."""
    speed: float
    """Mean planar speed, m/s."""
    commanded_speed: float
    """Mean commanded planar speed, m/s."""
    actions: np.ndarray
    """Applied action of every control step."""


# What a contract may say ------------------------------------------------------------------------


class Rule(NamedTuple):
    """What one value of a contract may be: for people, and as a test that never raises."""

    words: str
    allows: Callable[[Any], bool]


class Each(NamedTuple):
    """A list of one entry per joint, foot or block; all lists of one kind are equally long."""

    kind: str
    entry: Any


class Either(NamedTuple):
    """One of two groups of fields: the second if it has the field that only that one has."""

    field: str
    first: Any
    second: Any


def _number(low: float, high: float, *, above: bool = False, whole: bool = False) -> Rule:
    kinds = int if whole else (int, float)

    def allows(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return low < value <= high if above else low <= value <= high

    words = f"a {'whole ' * whole}number {'above' if above else 'from'} {low:g}"
    return Rule(f"{words} {'and up ' * above}to {high:g}", allows)


def _pair(low: float, high: float) -> Rule:
    end = _number(low, high)

    def allows(value: Any) -> bool:
        shaped = isinstance(value, list) and len(value) == 2 and all(map(end.allows, value))
        return shaped and value[0] <= value[1]

    return Rule(f"[lowest, highest] from {low:g} to {high:g}, in this order", allows)


def _text(words: str, pattern: str) -> Rule:
    found = re.compile(pattern, re.DOTALL)
    return Rule(words, lambda value: isinstance(value, str) and bool(found.fullmatch(value)))


def _or_null(rule: Rule) -> Rule:
    return Rule(f"{rule.words}, or null", lambda value: value is None or rule.allows(value))


def _positive(high: float) -> Rule:
    return _number(0, high, above=True)


def _count(high: float) -> Rule:
    return _number(1, high, whole=True)


_TEXT, _HASH = _text("a text", "[^\ud800-\udfff]+"), _text("64 hexadecimal digits", "[0-9a-f]{64}")
_ANGLE, _ANGLES = _number(-_WIDEST, _WIDEST), _pair(-_WIDEST, _WIDEST)

FIELDS = {
    "schema": _number(SCHEMA, SCHEMA, whole=True), "robot": _TEXT, "base": _TEXT,
    "joints": Each("joint", {
        "name": _TEXT, "default": _ANGLE, "range": _or_null(_ANGLES),
        "velocity_limit": _or_null(_positive(_FASTEST)), "torque_limit": _positive(1e4),
        "stiffness": _positive(1e5), "damping": _number(0, 1e4),
    }),
    "control": {
        "meaning": _TEXT, "rate": _number(1, 1e4), "dt": _number(1e-4, 1),
        "timestep": _number(1e-5, 0.1), "substeps": _count(1e4),
        "zero_warm_start": Rule("true or false", lambda value: isinstance(value, bool)),
    },
    "safety": {
        "meaning": _TEXT, "position_tolerance": _number(0, 1),
        "angular_velocity": _positive(_FASTEST), "deadline": _positive(1),
    },
    "action": {
        "meaning": _TEXT, "scale": _positive(10), "clip": _positive(1e3),
        "added_to": _text("reference or default_pose", "reference|default_pose"),
    },
    "observation": {
        "meaning": _TEXT, "frames": _count(1e3), "frame_size": _count(1e5), "size": _count(1e6),
        "clip": _positive(1e6),
        "blocks": Each("block", {
            "source": _TEXT, "size": _count(1e5), "scale": _positive(1e3), "meaning": _TEXT,
        }),
    },
    "gait": {
        "meaning": _TEXT, "cycle": _number(1e-2, 1e3), "double_support": _number(0, 10),
        "feet": Each("foot", _TEXT), "offsets": Each("foot", _number(-1, 1)),
        "start": Each("joint", _ANGLE), "gains": Each("foot", Each("joint", _ANGLE)),
    },
    "command": {
        "meaning": _TEXT,
        "ranges": Either(
            "yaw_rate",
            {"forward": _pair(-100, 100), "sideways": _pair(-100, 100), "heading": _ANGLES},
            {"forward": _pair(-100, 100), "sideways": _pair(-100, 100),
             "yaw_rate": _pair(-_FASTEST, _FASTEST)},
        ),
        "heading_gain": _number(0, 100), "yaw_limit": _number(0, 100),
        "deadband": _number(0, 100), "resample_after": _positive(1e6),
    },
    "start": {"meaning": _TEXT, "height": _positive(100), "joint_noise": _number(0, math.pi)},
    "termination": {
        "meaning": _TEXT, "duration": _positive(1e6), "base_force": _positive(1e6),
        "base_force_sensor": _TEXT, "roll": _or_null(_positive(10)),
        "pitch": _or_null(_positive(10)), "height": _or_null(_number(0, 100)),
    },
    "provenance": Rule(
        "an object with policy_sha256, 64 hexadecimal digits",
        lambda value: isinstance(value, dict) and _HASH.allows(value.get("policy_sha256")),
    ),
    "binding": {"meaning": _TEXT, "policy_sha256": _HASH, "model_sha256": _HASH, "sha256": _HASH},
}  # fmt: skip
"""Every field of a contract and what it may be; a contract has these fields and no others."""


def check_contract(contract: Any) -> None:
    """Raise unless every field is there, of its type and in its range, and all fit together."""
    _check_value(contract, FIELDS, "", {})
    for field, given, allowed, holds in _relations(contract):
        if not holds:
            raise RunnerError(_refusal(field, given, allowed))


def _check_value(value: Any, rule: Any, path: str, lengths: dict[str, int]) -> None:
    if isinstance(rule, Either):
        rule = rule.second if isinstance(value, dict) and rule.field in value else rule.first
    if isinstance(rule, Rule):
        if not rule.allows(value):
            raise RunnerError(_refusal(path, value, rule.words))
    elif isinstance(rule, Each):
        if not isinstance(value, list) or not value:
            raise RunnerError(_refusal(path, value, f"a list with one entry per {rule.kind}"))
        length = lengths.setdefault(rule.kind, len(value))  # the first such list decides
        if len(value) != length:
            words = f"{length} entries, one per {rule.kind}"
            raise RunnerError(_refusal(path, f"{len(value)} entries", words))
        for i, entry in enumerate(value):
            _check_value(entry, rule.entry, f"{path}[{i}]", lengths)
    else:
        if not isinstance(value, dict):
            raise RunnerError(_refusal(path, value, f"an object with {', '.join(rule)}"))
        for key in [*rule, *value]:
            if key not in value or key not in rule:
                problem = "lacks" if key in rule else "has an unknown field"
                where = f"{path}.{_shown(key)}".lstrip(".")
                raise RunnerError(f"{CONTRACT} {problem}: {where}. Export the run again.")
        for key, part in rule.items():
            _check_value(value[key], part, f"{path}.{key}".lstrip("."), lengths)


def _relations(contract: dict[str, Any]) -> Iterator[tuple[str, Any, str, bool]]:
    """Yield what fields demand of each other: field, its value, what is allowed, if it holds."""
    control, view, joints = (contract[key] for key in ("control", "observation", "joints"))
    for field, given, expected, why in (
        ("control.dt", control["dt"], control["timestep"] * control["substeps"],
         "timestep * substeps"),
        ("control.rate", control["rate"], 1 / control["dt"], "1 / dt"),
        ("observation.frame_size", view["frame_size"], sum(b["size"] for b in view["blocks"]),
         "the sum of the blocks' sizes"),
        ("observation.size", view["size"], view["frames"] * view["frame_size"],
         "frames * frame_size"),
    ):  # fmt: skip
        yield field, given, f"{why}, {expected}", math.isclose(given, expected, rel_tol=1e-9)
    for group, name in (("safety", "deadline"), ("command", "resample_after")):
        given, least = contract[group][name], control["dt"]
        words = f"at least control.dt, {least}"
        yield f"{group}.{name}", given, words, given >= least * (1 - 1e-9)
    names = [joint["name"] for joint in joints]
    for i, joint in enumerate(joints):
        low, high = joint["range"] or (-_WIDEST, _WIDEST)
        inside = low - 1e-6 <= joint["default"] <= high + 1e-6
        yield f"joints[{i}].default", joint["default"], f"in its range, {low} to {high}", inside
        unique = names.count(names[i]) == 1
        yield f"joints[{i}].name", names[i], "a name that no other joint has", unique


def _refusal(field: str, given: Any, allowed: str) -> str:
    return f"{CONTRACT}: {field or 'the contract'} must be {allowed}; it is {_shown(given)}."


def _shown(value: Any) -> str:
    """Return any value as a short text that every terminal can print."""
    try:
        text = value if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # whole numbers of thousands of digits
        text = f"a {type(value).__name__}"
    return ascii(text[:100])[1:-1]


# Reading an export ------------------------------------------------------------------------------


def load_export(path: str | Path) -> Export:
    """Read an export folder; raise unless contract, policy and model are those exported together.

    Nothing can be edited: every value of the contract and every byte of the other two files is
    bound by ``binding``, and the policy carries the contract as well.
    """
    folder = Path(path)
    for name in (CONTRACT, POLICY, MODEL):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} is not a complete export: it has no {name}. "
                "Write one with: prism export RUN"
            )
    contract = _read_contract(folder / CONTRACT)
    binding = contract["binding"]
    for name, key in ((POLICY, "policy_sha256"), (MODEL, "model_sha256")):
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
    return Export(contract, session, _read_model(contract, folder / MODEL))


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
            f"{path} has schema {_shown(schema)}, but this runner reads schema {SCHEMA}. "
            "Use the runner of the prism version that wrote it, or export the run again."
        )
    check_contract(contract)
    return contract


def parse_json(text: str) -> Any:
    """Parse JSON that repeats no key and has only finite numbers."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key is given twice")
        return found

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(f"{digits} is not a finite number")
        return number

    return json.loads(text, object_pairs_hook=unique, parse_float=finite, parse_constant=finite)


def bind(contract: dict[str, Any], policy: bytes, model: bytes) -> dict[str, Any]:
    """Return a contract with its ``binding``.

    Args:
        contract: The contract; a ``binding`` that it has is replaced.
        policy: The bytes of ``policy.onnx``, which carries the contract without its binding.
        model: The bytes of ``robot.xml``.
    """
    binding = {
        "meaning": "policy_sha256 and model_sha256 are those of policy.onnx and robot.xml; sha256 "
        "is that of this contract without it, as JSON with sorted keys and no spaces",
        "policy_sha256": hashlib.sha256(policy).hexdigest(),
        "model_sha256": hashlib.sha256(model).hexdigest(),
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
    return None if found is None else "".join(_shown(part) for part in found).lstrip(".")


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


def open_policy(path: Path) -> Any:
    """Open an ONNX file in onnxruntime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises its own classes for unreadable files
        reason = str(error).splitlines()[0]
        raise RunnerError(f"onnxruntime cannot read {path}: {reason}.") from error


def check_policy(contract: dict[str, Any], session: Any) -> None:
    """Raise unless a policy takes and returns what the contract says."""
    for what, found, expected in (
        ("takes", session.get_inputs(), contract["observation"]["size"]),
        ("returns", session.get_outputs(), len(contract["joints"])),
    ):
        shapes = [list(entry.shape) for entry in found]
        if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][1] != expected:
            raise RunnerError(
                f"{POLICY} does not fit {CONTRACT}: it {what} {shapes}, but the contract says one "
                f"tensor of [batch, {expected}]. Export the run again."
            )


def _import_mujoco() -> Any:
    """Import MuJoCo, which has no type information and writes warnings to a file by default."""
    import mujoco

    module: Any = mujoco
    if module.get_mju_user_warning() is None:
        module.set_mju_user_warning(logging.getLogger("runner").warning)
    return module


def _read_model(contract: dict[str, Any], path: Path) -> Any:
    mujoco = _import_mujoco()
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
        "range": np.where(limited[:, None], model.jnt_range[1:], (-_WIDEST, _WIDEST)),
    }
    for key, values in found.items():
        promised = [(-_WIDEST, _WIDEST) if joint[key] is None else joint[key] for joint in joints]
        if not np.allclose(values, np.array(promised, float), rtol=1e-9):
            raise RunnerError(f"{path} differs from the contract in {key}.")
    sensors = [model.sensor(i).name for i in range(model.nsensor)]
    if contract["termination"]["base_force_sensor"] not in sensors:
        raise RunnerError(
            f"{path} has no sensor {contract['termination']['base_force_sensor']!a}, which the "
            f"contract names in termination.base_force_sensor; it has: {', '.join(sensors)}."
        )
    model.opt.timestep = contract["control"]["timestep"]
    return model


# From measurements to joint targets -------------------------------------------------------------


class Watchdog:
    """Says when the last control step was too long ago.

    Args:
        deadline: Longest time between control steps, s.
        clock: Returns the time in seconds; it never goes back.
    """

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self.deadline, self.clock = deadline, clock
        self.fed: float | None = None

    def feed(self) -> None:
        """Note that a control step begins now."""
        self.fed = self.clock()

    def check(self) -> None:
        """Raise if the last control step is overdue; before the first one, nothing is."""
        if self.fed is None:
            return
        age = self.clock() - self.fed
        if not 0 <= age <= self.deadline:
            raise RunnerError(
                f"the last control step was {age:.4g} s ago; safety.deadline allows "
                f"{self.deadline:.4g} s"
            )


class Controller:
    """The policy and everything around it: clock, observation history, actions to joint targets.

    On a robot, call :meth:`step` every ``control.dt`` seconds, and in the faster loop of the motors
    :meth:`follow` (drives that take angles) or :meth:`torques` (drives that take torques).

    Attributes:
        steps: Control steps since the start; drives the gait clock.
        action: The action applied last.
        targets: The joint targets given last.
        stopped: Why it holds; ``None`` while it acts.

    Args:
        contract: The contract; checked again.
        session: The policy in onnxruntime.
        clock: Time in seconds for the watchdog; a simulation gives its own.
    """

    def __init__(
        self, contract: dict[str, Any], session: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        check_contract(contract)
        check_policy(contract, session)
        for block in contract["observation"]["blocks"]:
            if block["source"] not in SOURCES:
                raise RunnerError(
                    f"Unknown observation source {block['source']!a}; this runner knows: "
                    f"{', '.join(sorted(SOURCES))}. For your own task, add your own source: "
                    f"SOURCES[{block['source']!a}] = lambda controller, reading: ..., which "
                    f"gives {block['size']} values ({block['meaning']!a})."
                )
        self.contract = contract
        self.session = session
        self._input = session.get_inputs()[0].name
        self._gains = np.array(contract["gait"]["gains"], float)
        self._offsets = np.array(contract["gait"]["offsets"], float)
        self._gait_start = np.array(contract["gait"]["start"], float)
        self._set_limits()
        self.watchdog = Watchdog(contract["safety"]["deadline"], clock)
        self.reset()
        rest = Reading(self.default_pose, 0 * self.default_pose, np.zeros(3), np.zeros(3))
        self._frame(rest)  # sizes are found wrong before anything moves

    def _set_limits(self) -> None:
        joints, safety = self.contract["joints"], self.contract["safety"]
        self._names = names = [joint["name"] for joint in joints]
        self.default_pose, self._stiffness, self._damping, self._torque_limit = (
            np.array([joint[key] for joint in joints], float)
            for key in ("default", "stiffness", "damping", "torque_limit")
        )
        ranges = [joint["range"] or (-_WIDEST, _WIDEST) for joint in joints]
        self._low, self._high = np.array(ranges, float).T
        speed = np.array([joint["velocity_limit"] or _FASTEST for joint in joints], float)
        slack, turn = safety["position_tolerance"], safety["angular_velocity"]
        euler = np.array([math.pi, math.pi / 2, math.pi]) + 1e-3  # rounding of single precision
        self._readable: dict[str, tuple[Sequence[str], Any, Any]] = {
            "q": (names, self._low - slack, self._high + slack),
            "dq": (names, -speed, speed),
            "angular_velocity": ("xyz", -turn, turn),
            "euler": (("roll", "pitch", "yaw"), -euler, euler),
        }
        # From anywhere in the range, a target this far beyond it asks for the full torque.
        reach = self._torque_limit / self._stiffness
        self._target_low, self._target_high = self._low - reach, self._high + reach

    def reset(self) -> None:
        """Restart: clock at zero, empty history, no stop."""
        view = self.contract["observation"]
        self.steps = 0
        self.action = np.zeros(len(self.default_pose))
        self.command = np.zeros(3)
        self.stopped: str | None = None
        self.targets = self.default_pose.copy()
        self.watchdog.fed = None
        self._posture = np.clip(self.default_pose, self._low, self._high)
        self._noted: set[str] = set()
        self._history = np.zeros((view["frames"], view["frame_size"]))

    def step(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        """Return the joint targets for the next control step.

        Args:
            reading: What the robot measures now.
            command: Forward and sideways velocity, m/s, and what the policy was trained with:
                a heading, rad, or a yaw rate, rad/s. What is outside the trained ranges is clamped
                to them, with one note; a planar zero always holds.

        Raises:
            SafetyStop: Something is not finite, out of range or late, now or since the last reset.
        """
        if self.stopped is not None:
            raise SafetyStop(self.stopped, self.targets.copy())
        try:
            self.watchdog.check()
            self.watchdog.feed()
            targets = self._act(reading, command)
            self.watchdog.check()  # a policy that takes too long is late as well
        except Exception as error:  # whatever it is, the robot gets targets that it can hold
            targets = self.hold(error)
            raise SafetyStop(str(self.stopped), targets) from error
        if self.stopped is None:  # the loop of the motors may have lost patience
            self.targets = targets
            self.steps += 1
        return self.targets.copy()

    def hold(self, reason: str | Exception) -> np.ndarray:
        """Stop acting until :meth:`reset` and return the targets of the safe posture.

        That is where the joints were at the last believable reading, within their ranges; the
        default pose if there was none. The drives' stiffness and damping keep it.
        """
        if self.stopped is None:
            if isinstance(reason, Exception) and not isinstance(reason, RunnerError):
                reason = f"{type(reason).__name__}: {str(reason)[:500]}"
            when = self.steps * self.contract["control"]["dt"]
            self.stopped = f"at control step {self.steps} ({when:.2f} s): {reason}"
            self.targets = self._posture.copy()
        return self.targets.copy()

    def follow(self) -> np.ndarray:
        """Return the targets that the drives must follow now; if a step is overdue, it holds."""
        try:
            self.watchdog.check()
        except RunnerError as error:
            self.hold(error)
        return self.targets.copy()

    def torques(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Return the torques for the targets, within the limits, as drives that take angles do.

        Args:
            q: Joint angles now, rad.
            dq: Joint velocities now, rad/s.
        """
        targets = self.follow()
        try:
            q, dq = (_vector("the drives'", name, values, self._names, -1e6, 1e6)
                     for name, values in (("q", q), ("dq", dq)))  # fmt: skip
        except Exception as error:
            self.hold(error)
            return np.zeros(len(targets))  # who does not know where a joint is must not push it
        demanded = self._stiffness * (targets - q) - self._damping * dq
        return np.clip(demanded, -self._torque_limit, self._torque_limit)

    def _act(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        measured = {}
        for name, (entries, low, high) in self._readable.items():
            values = getattr(reading, name, None)
            measured[name] = _vector("measured", name, values, entries, low, high)
            if name == "q":
                self._posture = np.clip(measured["q"], self._low, self._high)
        reading = Reading(**measured)
        self.command = self.velocity_command(command, reading.euler[2])
        self._history = np.vstack([self._history[1:], self._frame(reading)])
        limit = self.contract["observation"]["clip"]
        seen = np.clip(self._history.reshape(1, -1), -limit, limit).astype(np.float32)
        answer = self.session.run(None, {self._input: seen})
        try:
            ((row,),) = answer  # one output for a batch of one
        except (TypeError, ValueError) as error:
            raise RunnerError(f"the policy's output is {_shown(answer)}") from error
        raw = _vector("the policy's", "output", row, self._names, -_LARGEST, _LARGEST)
        rule = self.contract["action"]
        self.action = np.clip(raw, -rule["clip"], rule["clip"])
        start = self.reference() if rule["added_to"] == "reference" else self.default_pose
        low, high = self._target_low, self._target_high
        targets = np.clip(start + rule["scale"] * self.action, low, high)
        return _vector("the joint", "target", targets, self._names, low, high)

    def _frame(self, reading: Reading) -> np.ndarray:
        frame = []
        for block in self.contract["observation"]["blocks"]:
            values = SOURCES[block["source"]](self, reading)
            what, entries = f"the observation source {block['source']!a}", range(block["size"])
            checked = _vector(what, "entry", values, entries, -_LARGEST, _LARGEST)
            frame.append(block["scale"] * checked)
        return np.concatenate(frame)

    def velocity_command(self, command: np.ndarray, yaw: float) -> np.ndarray:
        """Turn a command into velocities within the trained ranges: forward, sideways, yaw rate."""
        rule = self.contract["command"]
        names = _command_parts(rule)
        wanted = _vector("the command", "part", command, names, -_LARGEST, _LARGEST)
        stands = not wanted[:2].any()
        for i, (name, given) in enumerate(zip(names, wanted, strict=True)):
            low, high = rule["ranges"][name]
            if low <= given <= high or (stands and i < 2):
                continue
            near = _wrap(given) if name == "heading" else given
            wanted[i] = min(max(near, low), high)
            if wanted[i] != near and name not in self._noted:
                self._noted.add(name)
                print(f"note: {name} {given} is outside the trained range {low} to {high}; it is "
                      f"clamped to {wanted[i]}", file=sys.stderr)  # fmt: skip
        if names[2] == "yaw_rate":
            return wanted
        rate = rule["heading_gain"] * _wrap(wanted[2] - yaw)
        return np.array([*wanted[:2], min(max(rate, -rule["yaw_limit"]), rule["yaw_limit"])])

    def phase(self) -> float:
        """Return the elapsed fraction of the current gait cycle."""
        return self.steps * (self.contract["control"]["dt"] / self.contract["gait"]["cycle"]) % 1.0

    def clock(self) -> np.ndarray:
        """Return (sin, cos) of the phase."""
        angle = 2 * math.pi * self.phase()
        return np.array([math.sin(angle), math.cos(angle)])

    def reference(self) -> np.ndarray:
        """Return the joint angles of the reference motion at the current phase."""
        wave = np.sin(2 * math.pi * (self.phase() + self._offsets))
        still = np.abs(wave) < self.contract["gait"]["double_support"]
        swing = np.where(still, 0.0, np.maximum(-wave, 0.0))
        return self._gait_start + swing @ self._gains


_LARGEST = 1e30
"""Largest number of a policy, a command or an observation source; finite in single precision."""


def _vector(
    whose: str, what: str, values: Any, entries: Sequence[Any], low: Any, high: Any
) -> np.ndarray:
    """Return values as an array of finite numbers within limits, or raise and name the first."""
    try:
        array = np.array(values)
    except (TypeError, ValueError) as error:  # e.g. lists of unequal lengths
        raise RunnerError(f"{whose} {what} is {_shown(values)}") from error
    if array.dtype.kind not in "fiu" or array.shape != (len(entries),):
        raise RunnerError(
            f"{whose} {what} must be {len(entries)} numbers, but it is an array of shape "
            f"{array.shape} and type {array.dtype}"
        )
    if array.dtype != float:
        with np.errstate(all="ignore"):
            array = array.astype(float)
    allowed = (low <= array) & (array <= high)
    if not allowed.all():
        i = int(np.argmin(allowed))
        least, most = (np.broadcast_to(end, array.shape)[i] for end in (low, high))
        raise RunnerError(
            f"{whose} {what} of {entries[i]} is {array[i]:.6g}; it must be a number from "
            f"{least:.6g} to {most:.6g}"
        )
    return array


def _wrap(angle: float) -> float:
    return math.pi - (math.pi - angle) % (2 * math.pi)


SOURCES = {
    "clock": lambda controller, reading: controller.clock(),
    "planar_command": lambda controller, reading: controller.command[:2],
    "yaw_rate_command": lambda controller, reading: controller.command[2:],
    "joint_position_from_default": lambda controller, reading: reading.q - controller.default_pose,
    "joint_velocity": lambda controller, reading: reading.dq,
    "last_action": lambda controller, reading: controller.action,
    "base_angular_velocity": lambda controller, reading: reading.angular_velocity,
    "base_euler": lambda controller, reading: reading.euler,
}
"""Sources of the blocks of an observation frame, by the contract's name; add your own."""


# MuJoCo in the robot's place --------------------------------------------------------------------


def _command_parts(rule: dict[str, Any]) -> tuple[str, str, str]:
    """Return what the three numbers of a command are, by their names in ``command.ranges``."""
    return "forward", "sideways", "yaw_rate" if "yaw_rate" in rule["ranges"] else "heading"


def draw_commands(contract: dict[str, Any], seconds: float, seed: int) -> np.ndarray:
    """Draw commands (count, 3) as in training; each holds for ``resample_after`` seconds."""
    rule, random = contract["command"], np.random.default_rng(seed)
    count = math.ceil(seconds / rule["resample_after"]) + 1
    low, high = np.array([rule["ranges"][key] for key in _command_parts(rule)]).T
    commands = random.uniform(low, high, (count, 3))
    commands[np.linalg.norm(commands[:, :2], axis=1) <= rule["deadband"], :2] = 0.0
    return commands


def draw_start(contract: dict[str, Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw positions and velocities to start from, as in training."""
    start = contract["start"]
    pose = np.array([joint["default"] for joint in contract["joints"]])
    noise = start["joint_noise"] * np.random.default_rng((seed, 1)).uniform(-1, 1, len(pose))
    qpos = np.concatenate([[0, 0, start["height"], 1, 0, 0, 0], pose + noise])
    return qpos, np.zeros(6 + len(pose))


def simulate(
    export: Export,
    seconds: float,
    commands: np.ndarray,
    qpos: np.ndarray,
    qvel: np.ndarray,
) -> Episode:
    """Run one episode until its end, a fall or a stop, after which the robot holds for a while.

    Args:
        export: What to run.
        seconds: How long.
        commands: (count, 3): forward, sideways, heading or yaw rate; one row per
            ``resample_after`` seconds, the last one holds.
        qpos: Positions to start from: base position, quaternion wxyz, joints.
        qvel: Velocities: base linear (world), base angular (body), joints.
    """
    mujoco = _import_mujoco()
    contract, model = export.contract, export.model
    commands = np.asarray(commands)
    rows = commands.ndim == 2 and len(commands) > 0 and commands.shape[1] == 3
    if not rows or not np.isfinite(commands).all():
        raise RunnerError(f"commands must be rows of three finite numbers, got {commands}.")
    control, data = contract["control"], mujoco.MjData(model)
    controller = Controller(contract, export.session, clock=lambda: data.time)
    data.qpos[:], data.qvel[:] = qpos, qvel
    hold = round(contract["command"]["resample_after"] / control["dt"])
    actions, errors = [], []
    fall = stop = None
    for step in range(1, max(1, round(seconds / control["dt"])) + 1):
        # The policy acts on the measured state, and its targets hold for one control step.
        wanted = commands[min((step - 1) // hold, len(commands) - 1)]
        try:
            targets = controller.step(read(data.qpos, data.qvel), wanted)
        except SafetyStop as caught:
            stop = caught
            break
        actions.append(controller.action)
        _advance(control, model, data, targets)
        if _diverged(data):
            targets = controller.hold("the simulation diverged")
            stop = SafetyStop(str(controller.stopped), targets)
            break
        # Errors are measured after the step, against the command that then holds.
        reading = read(data.qpos, data.qvel)
        wanted = commands[min(step // hold, len(commands) - 1)]
        command = controller.velocity_command(wanted, reading.euler[2])
        velocity = _rotation(data.qpos[3:7]).T @ data.qvel[:3]
        errors.append(
            (np.linalg.norm(command[:2] - velocity[:2]), abs(command[2] - data.qvel[5]),
             np.linalg.norm(velocity[:2]), np.linalg.norm(command[:2]))
        )  # fmt: skip
        fall = _fall(contract["termination"], data, reading)
        if fall:
            break
    if stop:
        for _ in range(round(HOLD_SECONDS / control["dt"])):
            _advance(control, model, data, stop.targets)
    means = np.mean(errors, axis=0) if errors else np.full(4, math.nan)
    seconds = len(actions) * control["dt"]
    errors = (float(mean) for mean in means)
    return Episode(seconds, fall, stop, *errors, actions=np.array(actions))


def _advance(control: dict[str, Any], model: Any, data: Any, targets: np.ndarray) -> None:
    """Step the physics of one control step."""
    mujoco = _import_mujoco()
    data.ctrl[:] = targets
    if control["zero_warm_start"]:
        data.qacc_warmstart[:] = 0.0
    for _ in range(control["substeps"]):
        mujoco.mj_step(model, data)


def _diverged(data: Any) -> bool:
    """Return whether MuJoCo met a state that is not finite; it then starts over by itself."""
    kinds = _import_mujoco().mjtWarning
    bad = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
    return any(data.warning[kind].number for kind in bad)


def read(qpos: np.ndarray, qvel: np.ndarray) -> Reading:
    """Return what a robot in this state would measure."""
    rotation = _rotation(qpos[3:7])
    euler = np.array(
        [
            math.atan2(rotation[2, 1], rotation[2, 2]),
            math.asin(min(max(-rotation[2, 0], -1.0), 1.0)),
            math.atan2(rotation[1, 0], rotation[0, 0]),
        ]
    )
    return Reading(qpos[7:].copy(), qvel[6:].copy(), qvel[3:6].copy(), euler)


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _fall(limits: dict[str, Any], data: Any, reading: Reading) -> str | None:
    force = np.linalg.norm(data.sensor(limits["base_force_sensor"]).data)
    if force > limits["base_force"]:
        return f"the base touched the ground ({force:.0f} N)"
    for name, value in (("roll", reading.euler[0]), ("pitch", reading.euler[1])):
        if limits[name] is not None and abs(value) > limits[name]:
            return f"{name} {value:.2f} rad"
    if limits["height"] is not None and data.qpos[2] < limits["height"]:
        return f"height {data.qpos[2]:.2f} m"
    return None


# Command line -----------------------------------------------------------------------------------


def run(
    path: str | Path,
    seconds: float = 24.0,
    seed: int = 0,
    command: tuple[float, float, float] | None = None,
) -> Episode:
    """Run one episode of an export and print what happened; a stop is raised after that."""
    if not 0 < seconds <= 86400:
        raise RunnerError(f"--seconds must be positive, up to a day (86400), got {seconds}.")
    if seed < 0:
        raise RunnerError(f"--seed must be 0 or more, got {seed}.")
    if command is not None and not np.isfinite(command).all():
        raise RunnerError(f"--command must be three finite numbers, got {command}.")
    export = load_export(path)
    contract = export.contract
    if command is None:
        commands = draw_commands(contract, seconds, seed)
    else:
        commands = np.array([command], float)
    episode = simulate(export, seconds, commands, *draw_start(contract, seed))
    made = contract["provenance"]
    print(f"robot         {contract['robot']}, policy {made['policy_sha256'][:12]}")
    print(f"{'stopped after' if episode.stop else 'survived     '} {episode.seconds:.2f} s", end="")
    print(f" of {seconds:.2f} s{': ' if episode.fall else ''}{episode.fall or ''}")
    if len(episode.actions):
        print(f"linear error  {episode.linear_error:.3f} m/s")
        print(f"yaw error     {episode.yaw_error:.3f} rad/s")
        print(f"mean speed    {episode.speed:.3f} m/s (commanded {episode.commanded_speed:.3f})")
    if episode.stop:
        bug = episode.stop.__cause__
        if bug is not None and not isinstance(bug, RunnerError):
            traceback.print_exception(bug)
        raise episode.stop
    return episode


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="Run an exported policy in MuJoCo.")
    parser.add_argument("export", help="folder with contract.json, policy.onnx and robot.xml")
    parser.add_argument("--seconds", type=float, default=24.0, help="length of the episode")
    parser.add_argument("--seed", type=int, default=0, help="of start pose and commands")
    parser.add_argument(
        "--command", type=float, nargs=3, metavar=("VX", "VY", "TURN"),
        help="one fixed command instead of drawn ones: m/s, m/s, and a heading (rad) or, if the "
        "policy was trained with it, a yaw rate (rad/s)",
    )  # fmt: skip
    words = parser.parse_args()
    try:
        run(words.export, words.seconds, words.seed, words.command)
    except SafetyStop as stop:
        print(f"runner: stopped {stop}", file=sys.stderr)
        sys.exit(STOPPED)
    except (ValueError, OSError) as error:
        print(f"runner: error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
