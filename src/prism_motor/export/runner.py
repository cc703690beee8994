"""Run an exported policy in MuJoCo, using only its contract.

This file imports nothing from prism. Copied anywhere, it needs only an export, numpy, onnxruntime
and mujoco::

    python runner.py EXPORT --seconds 24 --command 0.5 0 0

:class:`Controller` is the part that would run on a robot; :func:`simulate` puts MuJoCo in the
robot's place and steps it as the contract says.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = 1
"""Version of the contract; raised when its meaning changes."""

CONTRACT, POLICY, MODEL = "contract.json", "policy.onnx", "robot.xml"
"""Files of an export."""

_FIELDS = (
    "robot", "joints", "control.dt", "control.timestep", "control.substeps",
    "control.zero_warm_start", "action.scale", "action.clip", "action.added_to",
    "observation.frames", "observation.clip", "observation.blocks", "gait.cycle", "gait.offsets",
    "gait.double_support", "gait.start", "gait.gains", "command.ranges", "command.heading_gain",
    "command.yaw_limit", "command.deadband", "command.resample_after", "start.height",
    "start.joint_noise", "termination.base_force", "termination.base_force_sensor",
    "termination.roll", "termination.pitch", "termination.height", "provenance.policy_sha256",
)  # fmt: skip
"""What this runner reads."""


class RunnerError(ValueError):
    """An export cannot be run, or its policy went wrong."""


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
    """Roll, pitch and yaw of the base (ZYX), rad."""


@dataclass(frozen=True)
class Episode:
    """What happened in a simulation."""

    seconds: float
    """Time until the fall or the end."""
    fall: str | None
    """Why it counts as fallen; ``None`` if it did not fall."""
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


# Reading an export ------------------------------------------------------------------------------


def load_export(path: str | Path) -> Export:
    """Read an export folder and check that contract, policy and model fit together."""
    folder = Path(path)
    for name in (CONTRACT, POLICY, MODEL):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} is not a complete export: it has no {name}. "
                "Write one with: prism export RUN"
            )
    contract = _read_contract(folder / CONTRACT)
    session = open_policy(folder / POLICY)
    _check_policy(contract, session)
    return Export(contract, session, _read_model(contract, folder / MODEL))


def _read_contract(path: Path) -> dict[str, Any]:
    try:
        contract = json.loads(path.read_text(encoding="utf-8"))
        schema = contract["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise RunnerError(f"{path} is not a contract: {error!r}. Export the run again.") from error
    if schema != SCHEMA:
        raise RunnerError(
            f"{path} has schema {schema}, but this runner reads schema {SCHEMA}. Use the runner of "
            "the prism version that wrote it, or export the run again."
        )
    for field in _FIELDS:
        part: Any = contract
        for key in field.split("."):
            if not isinstance(part, dict) or key not in part:
                raise RunnerError(f"{path} lacks {field}. Export the run again.")
            part = part[key]
    for field, entries, keys in (
        ("joints", contract["joints"], ("name", "default", "stiffness", "damping", "torque_limit")),
        ("observation.blocks", contract["observation"]["blocks"], ("source", "size", "scale")),
    ):
        for entry in entries:
            if missing := set(keys) - set(entry):
                raise RunnerError(f"{path}: {field} lacks {', '.join(sorted(missing))}.")
    return contract


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


def _check_policy(contract: dict[str, Any], session: Any) -> None:
    view, joints = contract["observation"], len(contract["joints"])
    inputs = view["frames"] * sum(block["size"] for block in view["blocks"])
    for what, found, expected in (
        ("takes", session.get_inputs(), inputs), ("returns", session.get_outputs(), joints),
    ):  # fmt: skip
        shapes = [entry.shape for entry in found]
        if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][1] != expected:
            raise RunnerError(
                f"{POLICY} does not fit {CONTRACT}: it {what} {shapes}, but the contract says one "
                f"tensor of [batch, {expected}]. Export the run again."
            )
    embedded = session.get_modelmeta().custom_metadata_map.get("contract")
    expected = contract["provenance"]["policy_sha256"]
    if embedded and json.loads(embedded)["provenance"]["policy_sha256"] != expected:
        raise RunnerError(
            f"{POLICY} and {CONTRACT} come from different exports: their policy_sha256 differ. "
            "Export the run again."
        )


def _import_mujoco() -> Any:
    """Import MuJoCo, which has no type information."""
    import mujoco

    return mujoco


def _read_model(contract: dict[str, Any], path: Path) -> Any:
    mujoco = _import_mujoco()
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise RunnerError(f"MuJoCo cannot read {path}: {error}") from error
    joints = contract["joints"]
    names = [model.actuator(i).name for i in range(model.nu)]
    wanted = [joint["name"] for joint in joints]
    if names != wanted or model.nq != 7 + len(joints):
        raise RunnerError(f"{path} drives {names}, but the contract says {wanted}.")
    gains, limits = model.actuator_gainprm[:, 0], model.actuator_forcerange[:, 1]
    drives = np.stack([gains, -model.actuator_biasprm[:, 2], limits])
    keys = ("stiffness", "damping", "torque_limit")
    promised = np.array([[joint[key] for joint in joints] for key in keys])
    if not np.allclose(drives, promised, rtol=1e-9):
        raise RunnerError(f"{path} differs from the contract in {', '.join(keys)}.")
    model.opt.timestep = contract["control"]["timestep"]
    return model


# From measurements to joint targets -------------------------------------------------------------


class Controller:
    """The policy and everything around it: clock, observation history, actions to joint targets.

    Attributes:
        steps: Control steps since the start; drives the gait clock.
        action: The action applied last.
    """

    def __init__(self, contract: dict[str, Any], session: Any) -> None:
        for block in contract["observation"]["blocks"]:
            if block["source"] not in SOURCES:
                raise RunnerError(
                    f"Unknown observation source {block['source']!r}; this runner knows: "
                    f"{', '.join(sorted(SOURCES))}. For your own task, add your own source: "
                    f"SOURCES[{block['source']!r}] = lambda controller, reading: ..., which "
                    f"gives {block['size']} values ({block.get('meaning', '')})."
                )
        self.contract = contract
        self.session = session
        self._input = session.get_inputs()[0].name
        self.default_pose = np.array([joint["default"] for joint in contract["joints"]])
        self._gains = np.array(contract["gait"]["gains"])
        self._offsets = np.array(contract["gait"]["offsets"])
        self.reset()

    def reset(self) -> None:
        """Restart: clock at zero, empty history."""
        view = self.contract["observation"]
        size = sum(block["size"] for block in view["blocks"])
        self.steps = 0
        self.action = np.zeros(len(self.default_pose))
        self.command = np.zeros(3)
        self._history = np.zeros((view["frames"], size))

    def step(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        """Return the joint targets for the next control step.

        Args:
            reading: What the robot measures now.
            command: Forward and sideways velocity, m/s, and heading, rad.
        """
        self.command = self.velocity_command(command, reading.euler[2])
        frame = [
            block["scale"] * np.asarray(SOURCES[block["source"]](self, reading))
            for block in self.contract["observation"]["blocks"]
        ]
        self._history = np.vstack([self._history[1:], np.concatenate(frame)])
        limit = self.contract["observation"]["clip"]
        seen = np.clip(self._history.reshape(1, -1), -limit, limit).astype(np.float32)
        rule = self.contract["action"]
        raw = self.session.run(None, {self._input: seen})[0][0].astype(float)
        if not np.isfinite(raw).all():
            joint = self.contract["joints"][int(np.flatnonzero(~np.isfinite(raw))[0])]["name"]
            raise RunnerError(
                f"The policy returned {raw[~np.isfinite(raw)][0]} for {joint} at control step "
                f"{self.steps} ({self.steps * self.contract['control']['dt']:.2f} s). "
                "Stop the robot; the weights or the measurements are broken."
            )
        self.action = np.clip(raw, -rule["clip"], rule["clip"])
        start = self.reference() if rule["added_to"] == "reference" else self.default_pose
        self.steps += 1
        return start + rule["scale"] * self.action

    def velocity_command(self, command: np.ndarray, yaw: float) -> np.ndarray:
        """Turn a heading into a yaw rate: (forward, sideways, yaw rate)."""
        rule = self.contract["command"]
        error = math.pi - (math.pi - (command[2] - yaw)) % (2 * math.pi)
        limit = rule["yaw_limit"]
        rate = min(max(rule["heading_gain"] * error, -limit), limit)
        return np.array([command[0], command[1], rate])

    def phase(self) -> float:
        """Return the elapsed fraction of the current gait cycle."""
        return self.steps * (self.contract["control"]["dt"] / self.contract["gait"]["cycle"]) % 1.0

    def clock(self) -> np.ndarray:
        """Return (sin, cos) of the phase."""
        angle = 2 * math.pi * self.phase()
        return np.array([math.sin(angle), math.cos(angle)])

    def reference(self) -> np.ndarray:
        """Return the joint angles of the reference motion at the current phase."""
        gait = self.contract["gait"]
        wave = np.sin(2 * math.pi * (self.phase() + self._offsets))
        swing = np.where(np.abs(wave) < gait["double_support"], 0.0, np.maximum(-wave, 0.0))
        return np.array(gait["start"]) + swing @ self._gains


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


def draw_commands(contract: dict[str, Any], seconds: float, seed: int) -> np.ndarray:
    """Draw commands (count, 3) as in training; each holds for ``resample_after`` seconds."""
    rule, random = contract["command"], np.random.default_rng(seed)
    count = math.ceil(seconds / rule["resample_after"]) + 1
    low, high = np.array([rule["ranges"][key] for key in ("forward", "sideways", "heading")]).T
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
    """Run one episode until its end or a fall.

    Args:
        export: What to run.
        seconds: How long.
        commands: (count, 3): forward, sideways, heading; one row per ``resample_after`` seconds,
            the last one holds.
        qpos: Positions to start from: base position, quaternion wxyz, joints.
        qvel: Velocities: base linear (world), base angular (body), joints.
    """
    mujoco = _import_mujoco()
    contract, model = export.contract, export.model
    control = contract["control"]
    controller, data = Controller(contract, export.session), mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    hold = round(contract["command"]["resample_after"] / control["dt"])
    actions, errors = [], []
    fall = None
    for step in range(1, max(1, round(seconds / control["dt"])) + 1):
        # The policy acts on the measured state, and its targets hold for one control step.
        wanted = commands[min((step - 1) // hold, len(commands) - 1)]
        data.ctrl[:] = controller.step(read(data.qpos, data.qvel), wanted)
        actions.append(controller.action)
        if control["zero_warm_start"]:
            data.qacc_warmstart[:] = 0.0
        for _ in range(control["substeps"]):
            mujoco.mj_step(model, data)
        if not np.isfinite(data.qpos).all():
            raise RunnerError(f"The simulation diverged at {step * control['dt']:.2f} s.")
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
    means = (float(mean) for mean in np.mean(errors, axis=0))
    return Episode(len(actions) * control["dt"], fall, *means, actions=np.array(actions))


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
    """Run one episode of an export and print what happened."""
    if not seconds > 0:
        raise RunnerError(f"--seconds must be positive, got {seconds}.")
    export = load_export(path)
    contract = export.contract
    if command is None:
        commands = draw_commands(contract, seconds, seed)
    else:
        commands = np.array([command])
        for value, (name, (low, high)) in zip(
            command, contract["command"]["ranges"].items(), strict=True
        ):
            if not low <= value <= high:
                print(f"note: {name} {value} is outside the trained range {low} to {high}")
    episode = simulate(export, seconds, commands, *draw_start(contract, seed))
    made = contract["provenance"]
    print(f"robot         {contract['robot']}, policy {made['policy_sha256'][:12]}")
    print(f"survived      {episode.seconds:.2f} s of {seconds:.2f} s", end="")
    print(f": {episode.fall}" if episode.fall else "")
    print(f"linear error  {episode.linear_error:.3f} m/s")
    print(f"yaw error     {episode.yaw_error:.3f} rad/s")
    print(f"mean speed    {episode.speed:.3f} m/s (commanded {episode.commanded_speed:.3f})")
    return episode


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="Run an exported policy in MuJoCo.")
    parser.add_argument("export", help="folder with contract.json, policy.onnx and robot.xml")
    parser.add_argument("--seconds", type=float, default=24.0, help="length of the episode")
    parser.add_argument("--seed", type=int, default=0, help="of start pose and commands")
    parser.add_argument(
        "--command", type=float, nargs=3, metavar=("VX", "VY", "HEADING"),
        help="one fixed command (m/s, m/s, rad) instead of drawn ones",
    )  # fmt: skip
    words = parser.parse_args()
    try:
        run(words.export, words.seconds, words.seed, words.command)
    except (ValueError, OSError) as error:
        sys.exit(f"runner: error: {error}")


if __name__ == "__main__":
    main()
