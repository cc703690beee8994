"""Walking: from measurements and commands to joint targets, in a simulation or on a robot."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contracts import is_tracking
from .control import LARGEST, Reading, SafeController, vector
from .files import Export
from .rules import RunnerError, SafetyStop
from .simulation import HOLD_SECONDS, advance, diverged, import_mujoco, read, rotation


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


class Controller(SafeController):
    """The policy and everything around it: clock, observation history, actions to joint targets.

    A command is the forward and sideways velocity, m/s, and what the policy was trained with: a
    heading, rad, or a yaw rate, rad/s. What is outside the trained ranges is clamped to them, with
    one note; a planar zero always holds.

    Attributes:
        by_rate: Whether the third number is a yaw rate also where the policy followed headings.
        command: The velocities that the policy was told last.
    """

    by_rate = False

    def _prepare(self) -> None:
        contract = self.contract
        if is_tracking(contract):
            raise RunnerError("This is a contract for tracking: use Tracker, not Controller.")
        for block in contract["observation"]["blocks"]:
            if block["source"] not in SOURCES:
                raise RunnerError(
                    f"Unknown observation source {block['source']!a}; this runner knows: "
                    f"{', '.join(sorted(SOURCES))}. For your own task, add your own source: "
                    f"SOURCES[{block['source']!a}] = lambda controller, reading: ..., which "
                    f"gives {block['size']} values ({block['meaning']!a})."
                )
        self._input = self.session.get_inputs()[0].name
        self._gains = np.array(contract["gait"]["gains"], float)
        self._offsets = np.array(contract["gait"]["offsets"], float)
        self._gait_start = np.array(contract["gait"]["start"], float)
        still = np.zeros((len(self._offsets), 3, len(self._gait_start)))
        self._strides = np.array(contract["gait"].get("strides", still), float)

    def _try(self, reading: Reading) -> None:
        self._frame(reading)

    def reset(self) -> None:
        """Restart: clock at zero, empty history, no stop."""
        super().reset()
        view = self.contract["observation"]
        self.command = np.zeros(3)
        self._noted: set[str] = set()
        self._history = np.zeros((view["frames"], view["frame_size"]))

    def _decide(self, reading: Reading, command: np.ndarray) -> np.ndarray:
        self.command = self.velocity_command(command, reading.euler[2])
        self._history = np.vstack([self._history[1:], self._frame(reading)])
        limit = self.contract["observation"]["clip"]
        seen = np.clip(self._history.reshape(1, -1), -limit, limit).astype(np.float32)
        raw = self._infer({self._input: seen})
        rule = self.contract["action"]
        self.action = np.clip(raw, -rule["clip"], rule["clip"])
        start = self.reference() if rule["added_to"] == "reference" else self.default_pose
        return start + rule["scale"] * self.action

    def _frame(self, reading: Reading) -> np.ndarray:
        frame = []
        for block in self.contract["observation"]["blocks"]:
            values = SOURCES[block["source"]](self, reading)
            what, entries = f"the observation source {block['source']!a}", range(block["size"])
            checked = vector(what, "entry", values, entries, -LARGEST, LARGEST)
            frame.append(block["scale"] * checked)
        return np.concatenate(frame)

    def velocity_command(self, command: np.ndarray, yaw: float) -> np.ndarray:
        """Turn a command into velocities within the trained ranges: forward, sideways, yaw rate."""
        rule = self.contract["command"]
        names = _command_parts(rule, self.by_rate)
        limit = rule["yaw_limit"]
        ranges = {"yaw_rate": (-limit, limit), **rule["ranges"]}
        wanted = vector("the command", "part", command, names, -LARGEST, LARGEST)
        stands = not wanted[:2].any()
        for i, (name, given) in enumerate(zip(names, wanted, strict=True)):
            low, high = ranges[name]
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
        return np.array([*wanted[:2], min(max(rate, -limit), limit)])

    def phase(self) -> float:
        """Return the elapsed fraction of the current gait cycle."""
        return self.steps * (self.contract["control"]["dt"] / self.contract["gait"]["cycle"]) % 1.0

    def clock(self) -> np.ndarray:
        """Return (sin, cos) of the phase."""
        angle = 2 * math.pi * self.phase()
        return np.array([math.sin(angle), math.cos(angle)])

    def reference(self) -> np.ndarray:
        """Return the joint angles of the reference motion at the current phase and command."""
        phases = self.phase() + self._offsets
        wave = np.sin(2 * math.pi * phases)
        still = np.abs(wave) < self.contract["gait"]["double_support"]
        swing = np.where(still, 0.0, np.maximum(-wave, 0.0))
        reach = self.contract["gait"]["cycle"] / 4 * (4 * np.abs(phases % 1.0 - 0.5) - 1)
        stride = np.einsum("f,p,fpj->j", reach, self.command, self._strides)
        return self._gait_start + swing @ self._gains + stride


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


def _command_parts(rule: dict[str, Any], by_rate: bool = False) -> tuple[str, str, str]:
    """Return what the three numbers of a command are, by their names in ``command.ranges``."""
    by_rate = by_rate or "yaw_rate" in rule["ranges"]
    return "forward", "sideways", "yaw_rate" if by_rate else "heading"


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
    by_rate: bool = False,
) -> Episode:
    """Run one episode until its end, a fall or a stop, after which the robot holds for a while.

    Args:
        export: What to run.
        seconds: How long.
        commands: (count, 3): forward, sideways, heading or yaw rate; one row per
            ``resample_after`` seconds, the last one holds.
        qpos: Positions to start from: base position, quaternion wxyz, joints.
        qvel: Velocities: base linear (world), base angular (body), joints.
        by_rate: Whether the third number of commands is a yaw rate whatever the policy followed.
    """
    mujoco = import_mujoco()
    contract, model = export.contract, export.model
    commands = np.asarray(commands)
    rows = commands.ndim == 2 and len(commands) > 0 and commands.shape[1] == 3
    if not rows or not np.isfinite(commands).all():
        raise RunnerError(f"commands must be rows of three finite numbers, got {commands}.")
    control, data = contract["control"], mujoco.MjData(model)
    controller = Controller(contract, export.session, clock=lambda: data.time)
    controller.by_rate = by_rate
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
        advance(control, model, data, targets)
        if diverged(data):
            targets = controller.hold("the simulation diverged")
            stop = SafetyStop(str(controller.stopped), targets)
            break
        # Errors are measured after the step, against the command that then holds.
        reading = read(data.qpos, data.qvel)
        wanted = commands[min(step // hold, len(commands) - 1)]
        command = controller.velocity_command(wanted, reading.euler[2])
        velocity = rotation(data.qpos[3:7]).T @ data.qvel[:3]
        errors.append(
            (np.linalg.norm(command[:2] - velocity[:2]), abs(command[2] - data.qvel[5]),
             np.linalg.norm(velocity[:2]), np.linalg.norm(command[:2]))
        )  # fmt: skip
        fall = _fall(contract["termination"], data, reading)
        if fall:
            break
    if stop:
        for _ in range(round(HOLD_SECONDS / control["dt"])):
            advance(control, model, data, stop.targets)
    means = np.mean(errors, axis=0) if errors else np.full(4, math.nan)
    seconds = len(actions) * control["dt"]
    errors = (float(mean) for mean in means)
    return Episode(seconds, fall, stop, *errors, actions=np.array(actions))


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


def run_walking(
    export: Export, seconds: float, seed: int, command: tuple[float, float, float] | None
) -> Episode:
    """Run one episode and print what happened."""
    if command is not None and not np.isfinite(command).all():
        raise RunnerError(f"--command must be three finite numbers, got {command}.")
    contract = export.contract
    if command is None:
        commands = draw_commands(contract, seconds, seed)
    else:
        commands = np.array([command], float)
    start = draw_start(contract, seed)
    episode = simulate(export, seconds, commands, *start, by_rate=command is not None)
    made = contract["provenance"]
    print(f"robot         {contract['robot']}, policy {made['policy_sha256'][:12]}")
    print(f"{'stopped after' if episode.stop else 'survived     '} {episode.seconds:.2f} s", end="")
    print(f" of {seconds:.2f} s{': ' if episode.fall else ''}{episode.fall or ''}")
    if len(episode.actions):
        print(f"linear error  {episode.linear_error:.3f} m/s")
        print(f"yaw error     {episode.yaw_error:.3f} rad/s")
        print(f"mean speed    {episode.speed:.3f} m/s (commanded {episode.commanded_speed:.3f})")
    return episode
