"""Our own motions: quasi-static ones, with feet on the ground and the centre of mass above them.

A plan says what pelvis, feet, arms and waist do. The legs follow by inverse kinematics, and the
pelvis moves sideways and back and forth until the centre of mass is where the plan wants it, so
that a robot could hold every frame. All frames are solved at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from prism_motor._checks import check_choice
from prism_motor.sim.kinematics import cross
from prism_motor.sim.robots import make_robot
from prism_motor.sim.robots.g1_parts import FEET, FOOT_OFFSET
from prism_motor.tracking.bodies import ROBOT, kinematics
from prism_motor.tracking.motions.clip import Clip

FPS = 50.0
RELAXED = {"shoulder_pitch": 0.2, "shoulder_roll": 0.16, "elbow": 0.95}
"""Hanging arms, rad; the right one is the mirror image."""

_STANCE, _MIDDLE = 0.1185, 0.03
"""Feet from the middle line, and the middle of a sole in front of the ankle, m."""
_HEIGHT = 0.765
"""Pelvis of a standing robot, m."""
_LOWER = 0.03
"""How much lower it is on one leg, so that the other one still reaches the ground, m."""
_ROUNDS = 30
_PRECISE = 1e-4
"""Error of feet (m, rad) and centre of mass (m) at which a pose counts as solved."""


@dataclass
class MotionPlan:
    """What a robot does over T frames; a single number holds for all of them."""

    height: np.ndarray | float = _HEIGHT
    """Height of the pelvis, m."""
    lean: np.ndarray | float = 0.0
    """Pitch of the pelvis, forward, rad."""
    balance: np.ndarray | float = 0.0
    """Where the centre of mass is: over the right (-1) or the left (1) foot, or between them."""
    feet: dict[str, np.ndarray] = field(default_factory=dict)
    """Ways of the ``left`` and the ``right`` foot from their places, (3, T), m."""
    toes: dict[str, np.ndarray] = field(default_factory=dict)
    """Pitch of the ``left`` and the ``right`` foot, toes down, rad."""
    joints: dict[str, np.ndarray] = field(default_factory=dict)
    """Angles of waist and arms, rad; other arm joints hang relaxed."""


def ease(time: np.ndarray, start: float, end: float) -> np.ndarray:
    """Go from 0 to 1 between two times, starting and ending at rest, with the least jerk."""
    x = np.clip((time - start) / (end - start), 0, 1)
    return x**3 * (10 - 15 * x + 6 * x**2)


def visit(time: np.ndarray, start: float, there: float, leave: float, end: float) -> np.ndarray:
    """Go from 0 to 1 and back."""
    return ease(time, start, there) - ease(time, leave, end)


def swing(time: np.ndarray, start: float, end: float, period: float) -> np.ndarray:
    """Swing between -1 and 1, beginning and ending gently at 0."""
    envelope = visit(time, start, start + period / 2, end - period / 2, end)
    return envelope * np.sin(2 * np.pi * (time - start) / period)


# The motions: time (T,) to a plan. Left and right in names are the robot's. -----------------------


def _stand(t: np.ndarray) -> MotionPlan:
    breath = swing(t, 0, t[-1], 4.0)
    return MotionPlan(
        height=_HEIGHT + 0.004 * breath,
        joints={
            "left_shoulder_roll": RELAXED["shoulder_roll"] + 0.02 * breath,
            "right_shoulder_roll": -RELAXED["shoulder_roll"] - 0.02 * breath,
        },
    )


def _squat(t: np.ndarray) -> MotionPlan:
    down = visit(t, 0.5, 2.2, 2.7, 4.4) + visit(t, 5.0, 6.7, 7.2, 8.9)
    arm = RELAXED["shoulder_pitch"] - 1.4 * down
    return MotionPlan(
        height=_HEIGHT - 0.22 * down,
        lean=0.45 * down,
        joints={
            "left_shoulder_pitch": arm,
            "right_shoulder_pitch": arm,
            "left_elbow": RELAXED["elbow"] + 0.3 * down,
            "right_elbow": RELAXED["elbow"] + 0.3 * down,
        },
    )


def _wave(t: np.ndarray) -> MotionPlan:
    up = visit(t, 0.5, 1.8, 5.5, 6.8)
    return MotionPlan(
        joints={
            "right_shoulder_pitch": RELAXED["shoulder_pitch"] * (1 - up),
            "right_shoulder_roll": -RELAXED["shoulder_roll"] - 1.45 * up,
            "right_shoulder_yaw": -1.1 * up,
            "right_elbow": RELAXED["elbow"] - 1.15 * up + 0.45 * swing(t, 1.8, 5.5, 0.925),
        }
    )


def _twist(t: np.ndarray) -> MotionPlan:
    turn = swing(t, 0.5, 8.5, 4.0)
    out = 0.35 * visit(t, 0.5, 1.5, 7.5, 8.5)
    return MotionPlan(
        joints={
            "waist_yaw": 0.7 * turn,
            "left_shoulder_roll": RELAXED["shoulder_roll"] + out,
            "right_shoulder_roll": -RELAXED["shoulder_roll"] - out,
        }
    )


def _bow(t: np.ndarray) -> MotionPlan:
    down = visit(t, 0.5, 2.3, 3.2, 5.0)
    return MotionPlan(
        height=_HEIGHT - 0.03 * down,
        lean=0.45 * down,
        joints={
            "waist_pitch": 0.4 * down,
            "left_elbow": RELAXED["elbow"] + 0.5 * down,
            "right_elbow": RELAXED["elbow"] + 0.5 * down,
            "left_shoulder_pitch": RELAXED["shoulder_pitch"] - 0.5 * down,
            "right_shoulder_pitch": RELAXED["shoulder_pitch"] - 0.5 * down,
        },
    )


def _sway(t: np.ndarray) -> MotionPlan:
    side = swing(t, 0.5, 8.5, 4.0)
    return MotionPlan(balance=0.7 * side, joints={"waist_roll": 0.12 * side})


def _reach(t: np.ndarray) -> MotionPlan:
    left, right = visit(t, 0.5, 2.0, 2.6, 4.1), visit(t, 4.5, 6.0, 6.6, 8.1)
    joints = {"waist_yaw": 0.3 * (right - left), "waist_pitch": 0.15 * (left + right)}
    for side, out in (("left", left), ("right", right)):
        joints[f"{side}_shoulder_pitch"] = RELAXED["shoulder_pitch"] - 1.9 * out
        joints[f"{side}_elbow"] = RELAXED["elbow"] + 0.5 * out
    return MotionPlan(joints=joints)


def _step(t: np.ndarray) -> MotionPlan:
    first, second = visit(t, 1.6, 2.4, 2.6, 3.4), visit(t, 5.6, 6.4, 6.6, 7.4)
    over = visit(t, 0.3, 1.5, 3.5, 4.7) - visit(t, 4.3, 5.5, 7.5, 8.7)
    return MotionPlan(
        height=_HEIGHT - _LOWER * abs(over),
        balance=over,
        feet={
            "right": np.outer([0.06, 0.05, 0.12], first),
            "left": np.outer([0.06, -0.05, 0.12], second),
        },
        toes={"right": 0.4 * first, "left": 0.4 * second},
    )


def _kick(t: np.ndarray) -> MotionPlan:
    raised, out = visit(t, 1.6, 2.6, 4.2, 5.2), visit(t, 2.6, 3.2, 3.4, 4.2)
    way = np.outer([0.10, 0.07, 0.20], raised) + np.outer([0.24, 0, 0.10], out)
    over = visit(t, 0.3, 1.5, 5.3, 6.5)
    return MotionPlan(
        height=_HEIGHT - _LOWER * over,
        balance=over,
        feet={"right": way},
        toes={"right": 0.6 * raised - 0.9 * out},
        joints={
            "left_shoulder_pitch": RELAXED["shoulder_pitch"] - 0.5 * raised,
            "left_shoulder_roll": RELAXED["shoulder_roll"] + 0.4 * raised,
            "right_shoulder_roll": -RELAXED["shoulder_roll"] - 0.4 * raised,
        },
    )


MOTIONS: dict[str, tuple[float, str, Callable[[np.ndarray], MotionPlan]]] = {
    "stand": (8.0, "stands and breathes", _stand),
    "squat": (9.4, "squats twice, arms forward", _squat),
    "wave": (7.3, "waves with the right hand", _wave),
    "twist": (9.0, "turns its waist left and right", _twist),
    "bow": (5.5, "bows", _bow),
    "sway": (9.0, "shifts its weight from foot to foot", _sway),
    "reach": (8.6, "reaches forward with one hand, then with the other", _reach),
    "step": (9.0, "lifts one foot, then the other", _step),
    "kick": (6.8, "kicks forward slowly with the right foot", _kick),
}
"""Kinematic motions by name: seconds, what the robot does, and its plan by time."""


def make_kinematic(name: str) -> Clip:
    """Make one of our own quasi-static motions."""
    seconds, what, plan = MOTIONS[check_choice("motion", name, MOTIONS)]
    time = np.arange(round(seconds * FPS) + 1) / FPS
    qpos = solve(plan(time), len(time))
    return Clip(
        name, FPS, qpos[:, :3], qpos[:, 3:7], qpos[:, 7:],
        source=f"made by prism: {what}", licence="Apache-2.0", attribution="The PRISM maintainers",
    )  # fmt: skip


def relaxed_arms(joints: np.ndarray) -> None:
    """Let the arms of joint angles (T, 29) hang."""
    names = make_robot(ROBOT).joint_names
    for part, angle in RELAXED.items():
        joints[:, names.index(f"left_{part}")] = angle
        joints[:, names.index(f"right_{part}")] = -angle if "roll" in part else angle


def solve(plan: MotionPlan, frames: int) -> np.ndarray:
    """Return the states (T, 36) of a plan.

    Raises:
        ValueError: The plan is out of reach.
    """
    robot = make_robot(ROBOT)
    names = robot.joint_names
    qpos = np.zeros((frames, 7 + len(names)))
    qpos[:, 2] = plan.height
    qpos[:, 3], qpos[:, 5] = np.cos(0.5 * plan.lean), np.sin(0.5 * plan.lean)
    qpos[:, 7:] = robot.default_pose
    relaxed_arms(qpos[:, 7:])
    for joint, angle in plan.joints.items():
        qpos[:, 7 + names.index(joint)] = angle
    # Where feet and centre of mass should be; the latter stays within its support.
    targets = {}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        place = np.array([[-_MIDDLE], [sign * _STANCE], [FOOT_OFFSET]])
        targets[side] = place + plan.feet.get(side, np.zeros((3, frames)))
    middle = np.stack([np.zeros(frames), _STANCE * np.broadcast_to(plan.balance, frames)])
    error = np.inf
    for _ in range(_ROUNDS):
        error = max(_step_legs(qpos, targets, plan.toes, names), _step_pelvis(qpos, middle))
        if error < _PRECISE:
            return qpos
    raise ValueError(f"The plan is out of reach: {error:.4f} m or rad are left.")


def _step_pelvis(qpos: np.ndarray, middle: np.ndarray) -> float:
    """Move the pelvis so that the centre of mass comes over a point; return the error before."""
    off = middle - kinematics().center_of_mass(qpos)[:2]
    qpos[:, :2] += off.T
    return float(abs(off).max())


def _step_legs(
    qpos: np.ndarray, targets: dict[str, np.ndarray], toes: dict[str, np.ndarray], names: list[str]
) -> float:
    """Do one Newton step of both legs towards their feet's targets; return the error before."""
    worst = 0.0
    position, rotation = kinematics().poses(qpos)
    low, high = kinematics().limits.T
    for side, foot in zip(("left", "right"), FEET, strict=True):
        index = kinematics().names.index(foot)
        leg = [i for i, name in enumerate(names[:12]) if name.startswith(side)]
        pitch = toes.get(side, np.zeros(len(qpos)))
        nought, one = np.zeros_like(pitch), np.ones_like(pitch)
        wanted = np.stack([np.stack([np.cos(pitch), nought, -np.sin(pitch)]),
                           np.stack([nought, one, nought]),
                           np.stack([np.sin(pitch), nought, np.cos(pitch)])])  # fmt: skip
        # The columns of the wanted orientation, above; how far those of the foot are from them.
        turn = 0.5 * sum(cross(rotation[:, i, index], wanted[i]) for i in range(3))
        error = np.concatenate([targets[side] - position[:, index], turn])
        jacobian = kinematics().jacobian(qpos, foot)[:, leg]
        # A little damping keeps steps small where the leg is almost straight.
        square = np.einsum("ijn,ikn->njk", jacobian, jacobian) + 1e-6 * np.eye(6)
        change = np.linalg.solve(square, np.einsum("ijn,in->nj", jacobian, error)[..., None])
        angles = qpos[:, [7 + i for i in leg]] + np.clip(change[..., 0], -0.3, 0.3)
        qpos[:, [7 + i for i in leg]] = np.clip(angles, low[leg], high[leg])
        worst = max(worst, float(abs(error).max()))
    return worst
