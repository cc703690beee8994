"""Every term against the formulas and numeric anchors of the specification."""

import math

import pytest
import torch

from prism_motor.locomotion.rewards import (
    NEEDS,
    TERMS,
    FeetAirTime,
    FeetClearance,
    Rewards,
    Step,
    term,
)
from prism_motor.locomotion.state import RobotState
from prism_motor.locomotion.task import RewardConfig
from prism_motor.locomotion.tasks import HUMANOID_GYM_WEIGHTS, TASKS
from prism_motor.sim.robots import make_robot

DT = 0.01
G1 = make_robot("g1")


def make_state(n=1, **changes):
    state = {
        "base_position": torch.tensor([[0.0, 0.0, 0.78]]).repeat(n, 1),
        "base_quaternion": torch.tensor([[1.0, 0, 0, 0]]).repeat(n, 1),
        "euler": torch.zeros(n, 3),
        "gravity": torch.tensor([[0.0, 0.0, -1.0]]).repeat(n, 1),
        "velocity": torch.zeros(n, 3),
        "angular_velocity": torch.zeros(n, 3),
        "world_velocity": torch.zeros(n, 6),
        "q": torch.zeros(n, 12),
        "dq": torch.zeros(n, 12),
        "torque": torch.zeros(n, 12),
        "foot_position": torch.tensor([[[0.0, 0.12, 0.035], [0.0, -0.12, 0.035]]]).repeat(n, 1, 1),
        "foot_velocity": torch.zeros(n, 2, 3),
        "foot_force": torch.zeros(n, 2, 3),
        "knee_position": torch.tensor([[[0.0, 0.11, 0.3], [0.0, -0.11, 0.3]]]).repeat(n, 1, 1),
        "base_force": torch.zeros(n, 3),
    }
    return RobotState(**(state | changes))


def make_step(n=1, config=None, **changes):
    state_fields = set(RobotState.__dataclass_fields__)
    state = make_state(n, **{k: v for k, v in changes.items() if k in state_fields})
    step = {
        "config": config or RewardConfig(),
        "state": state,
        "command": torch.zeros(n, 3),
        "stance": torch.ones(n, 2, dtype=torch.bool),
        "contact": torch.ones(n, 2, dtype=torch.bool),
        "reference": torch.zeros(n, 12),
        "default_pose": torch.zeros(12),
        "actions": (torch.zeros(n, 12),) * 3,
        "last_dq": torch.zeros(n, 12),
        "last_world_velocity": torch.zeros(n, 6),
        "control_dt": DT,
    }
    return Step(**(step | {k: v for k, v in changes.items() if k not in state_fields}))


def value(name, parameters=None, **changes):
    made = TERMS[name].make
    made = made(G1, 1) if isinstance(made, type) else made
    return made(make_step(**changes), **(parameters or {})).item()


def row(*values):
    return torch.tensor([values])


def joints(**values):
    q = torch.zeros(1, 12)
    for index, angle in values.items():
        q[0, int(index[1:])] = angle
    return q


def test_tracking():
    fast = {"command": row(0.5, 0.1, 0.3), "velocity": row(0.3, 0.0, 9.0)}
    assert value("tracking_lin_vel", **fast) == pytest.approx(math.exp(-5 * (0.04 + 0.01)))
    turn = {"command": row(0.0, 0.0, 0.3), "angular_velocity": row(9.0, 9.0, 0.1)}
    assert value("tracking_ang_vel", **turn) == pytest.approx(math.exp(-5 * 0.04))
    sharp = {"sharpness": 20.0}
    assert value("tracking_lin_vel", sharp, **fast) == pytest.approx(math.exp(-20 * 0.05))
    assert value("tracking_ang_vel", sharp, **turn) == pytest.approx(math.exp(-20 * 0.04))


def test_hard_tracking_anchor():
    step = {
        "command": row(0.1, 0.0, 0.1),
        "velocity": row(0.0, 0.0, 0.0),
        "angular_velocity": row(0, 0, 0.0),
    }
    assert value("track_vel_hard", **step) == pytest.approx(0.3279, abs=1e-4)


@pytest.mark.parametrize(
    ("speed", "expected"), [(0.4, 1.2), (0.1, -1.0), (0.6, 0.0), (-0.1, -2.0), (-0.6, -2.0)]
)
def test_low_speed_anchors(speed, expected):
    step = {"command": row(0.4, 0.0, 0.0), "velocity": row(speed, 0.0, 0.0)}
    assert value("low_speed", **step) == pytest.approx(expected)


def test_low_speed_ignores_small_commands():
    assert value("low_speed", command=row(0.1, 0.3, 0.0), velocity=row(-1.0, 0.0, 0.0)) == 0


def test_orientation():
    euler, gravity = row(0.05, -0.1, 2.0), row(0.1, 0.05, -0.99)
    expected = (math.exp(-1.5) + math.exp(-20 * math.hypot(0.1, 0.05))) / 2
    assert value("orientation", euler=euler, gravity=gravity) == pytest.approx(expected)


@pytest.mark.parametrize(("error", "expected"), [(0.0, 1.0), (0.01, 0.3679), (0.02, 0.1353)])
def test_base_height_anchors(error, expected):
    position = row(0.0, 0.0, 0.78 + error)
    assert value("base_height", base_position=position) == pytest.approx(expected, abs=2e-4)


def test_base_height_measures_from_the_stance_feet():
    feet = torch.tensor([[[0.0, 0.12, 0.035], [0.0, -0.12, 0.135]]])
    stance = torch.tensor([[True, False]])
    assert value("base_height", foot_position=feet, stance=stance) == pytest.approx(1.0, abs=1e-4)


def test_vel_mismatch():
    step = {"velocity": row(9.0, 9.0, 0.2), "angular_velocity": row(0.3, 0.4, 9.0)}
    expected = (math.exp(-10 * 0.04) + math.exp(-5 * 0.5)) / 2
    assert value("vel_mismatch_exp", **step) == pytest.approx(expected)


def test_base_acc_is_a_difference_not_a_rate():
    step = {
        "world_velocity": row(0.1, 0, 0, 0, 0, 0),
        "last_world_velocity": row(0, 0.2, 0, 0, 0, 0.2),
    }
    assert value("base_acc", **step) == pytest.approx(math.exp(-3 * 0.3))


@pytest.mark.parametrize(
    ("error", "expected"), [(0, 1.0), (0.1, 0.7987), (0.3, 0.4888), (0.5, 0.2679), (1.0, 0.0353)]
)
def test_joint_pos_anchors(error, expected):
    assert value("joint_pos", q=joints(_7=error)) == pytest.approx(expected, abs=1e-4)


def test_default_joint_pos_uses_hip_roll_and_yaw():
    q = joints(_1=0.06, _2=0.08, _7=0.05)
    size = math.sqrt(0.06**2 + 0.08**2 + 0.05**2)
    expected = math.exp(-100 * 0.05) - 0.01 * size
    assert value("default_joint_pos", q=q) == pytest.approx(expected, abs=1e-6)
    loose = value("default_joint_pos", {"slack": 0.2}, q=q)
    assert loose == pytest.approx(1 - 0.01 * size, abs=1e-6)
    pitch_only = joints(_0=0.5)
    assert value("default_joint_pos", q=pitch_only) == pytest.approx(1 - 0.01 * 0.5)
    literal = TASKS["paper"].rewards
    assert value("default_joint_pos", q=pitch_only, config=literal) < 1e-6


@pytest.mark.parametrize(("contact", "expected"), [((1, 0), 1.0), ((1, 1), 0.35), ((0, 1), -0.3)])
def test_feet_contact_number_anchors(contact, expected):
    step = {"contact": torch.tensor([contact]).bool(), "stance": torch.tensor([[True, False]])}
    assert value("feet_contact_number", **step) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("feet_distance", 0.3, 1.0),
        ("feet_distance", 0.19, (math.exp(-1) + 1) / 2),
        ("feet_distance", 0.52, (1 + math.exp(-2)) / 2),
        ("knee_distance", 0.237, 1.0),
        ("knee_distance", 0.27, (1 + math.exp(-2)) / 2),
    ],
)
def test_distances(name, width, expected):
    places = torch.tensor([[[0.0, width / 2, 0.5], [0.0, -width / 2, 0.1]]])
    key = "foot_position" if name == "feet_distance" else "knee_position"
    assert value(name, **{key: places}) == pytest.approx(expected, abs=1e-4)


def test_contact_forces_start_at_the_threshold_and_saturate():
    def force(n):
        return torch.tensor([[[0.0, 0.0, n], [0.0, 0.0, 0.0]]])

    assert value("feet_contact_forces", foot_force=force(425.0)) == 0
    assert value("feet_contact_forces", foot_force=force(525.0)) == pytest.approx(100)
    assert value("feet_contact_forces", foot_force=force(5000.0)) == pytest.approx(400)
    literal = TASKS["paper"].rewards
    assert value("feet_contact_forces", foot_force=force(525.0), config=literal) == 0


def test_slip_counts_touching_feet_only():
    velocity = torch.tensor([[[0.03, 0.04, 9.0], [0.3, 0.4, 0.0]]])
    contact = torch.tensor([[True, False]])
    result = value("foot_slip", foot_velocity=velocity, contact=contact)
    assert result == pytest.approx(math.sqrt(0.05))


def test_effort_terms():
    assert value("collision", base_force=row(0.0, 0.0, 0.2)) == 1
    assert value("collision", base_force=row(0.0, 0.0, 0.05)) == 0
    assert value("torques", torque=joints(_0=3.0, _5=4.0)) == pytest.approx(25)
    assert value("dof_vel", dq=joints(_0=3.0, _5=4.0)) == pytest.approx(25)
    step = {"dq": joints(_0=0.3), "last_dq": joints(_0=0.1)}
    assert value("dof_acc", **step) == pytest.approx(400, rel=1e-4)
    now, last, before = joints(_0=1.0), joints(_0=0.5), joints(_0=0.2)
    expected = 0.5**2 + (1.0 + 0.2 - 1.0) ** 2 + 0.05
    assert value("action_smoothness", actions=(now, last, before)) == pytest.approx(expected)


def run_term(made, schedule):
    """Feed (contact, stance, height) of the left foot; the right foot stands."""
    rewards = []
    for contact, stance, height in schedule:
        feet = torch.tensor([[[0.0, 0.12, 0.035 + height], [0.0, -0.12, 0.035]]])
        step = make_step(
            contact=torch.tensor([[contact, True]]),
            stance=torch.tensor([[stance, True]]),
            foot_position=feet,
        )
        rewards.append(made(step).item())
    return rewards


def test_air_time_is_paid_once_when_the_swing_ends():
    swing = [(True, True, 0.0), (True, False, 0.0)] + [(False, False, 0.05)] * 20
    rewards = run_term(FeetAirTime(G1, 1), [*swing, (True, True, 0.0), (True, True, 0.0)])
    assert rewards[:-2] == [0.0] * (len(rewards) - 2)
    # The first step in the air still counts as contact (c_prev); 19 steps accrue, plus the landing.
    assert rewards[-2] == pytest.approx(20 * DT, abs=1e-6)
    assert rewards[-1] == 0


def test_air_time_is_capped_and_cleared_by_reset():
    made = FeetAirTime(G1, 1)
    run_term(made, [(False, False, 0.05)] * 80)
    made.reset(torch.tensor([0]), torch.zeros(1, 2))
    assert run_term(made, [(True, True, 0.0)]) == [0.0]
    run_term(made, [(False, False, 0.05)] * 80)
    assert run_term(made, [(True, True, 0.0)]) == [pytest.approx(0.5)]


def test_clearance_pays_each_step_near_six_centimetres_above_the_last_contact():
    made = FeetClearance(G1, 1)
    made.reset(torch.tensor([0]), torch.zeros(1, 2))
    heights = [0.0, 0.03, 0.055, 0.06, 0.069, 0.075]
    rewards = run_term(made, [(False, False, h) for h in heights])
    assert rewards == [0, 0, 1, 1, 1, 0]
    assert run_term(made, [(False, True, 0.06)]) == [0]  # not in stance


def test_clearance_starts_from_the_feet_at_reset():
    # The defect of the original: the jump to the reset pose counts as foot motion.
    made = FeetClearance(G1, 1)
    made.reset(torch.tensor([0]), torch.zeros(1, 2))
    run_term(made, [(False, False, 0.5)])
    made.reset(torch.tensor([0]), torch.tensor([[0.02, 0.02]]))
    rewards = run_term(made, [(False, False, 0.02), (False, False, 0.08)])
    assert rewards == [0, 1]


def test_all_22_terms_with_the_papers_weights():
    assert len(HUMANOID_GYM_WEIGHTS) == 22
    assert set(HUMANOID_GYM_WEIGHTS) == TERMS.own
    positive = sum(weight for weight in HUMANOID_GYM_WEIGHTS.values() if weight > 0)
    # Air time pays at most 0.3 s per swing: about 0.009/s; low_speed pays 1.2 at best.
    best = positive - 1.0 + 0.009 - 0.2 + 0.2 * 1.2
    assert best == pytest.approx(9.65, abs=0.005)


def test_total_is_weighted_by_dt_and_never_negative():
    config = RewardConfig(weights={"torques": -1e-5, "tracking_ang_vel": 1.1})
    rewards = Rewards(config, G1, 1, NEEDS)
    total = rewards(make_step(config=config, torque=joints(_0=100.0)))
    assert total.item() == pytest.approx(DT * (1.1 - 0.1))
    assert rewards(make_step(config=config, torque=joints(_0=1000.0))).item() == 0
    finished = rewards.reset(torch.tensor([0]), torch.zeros(1, 2))
    assert finished["tracking_ang_vel"] == pytest.approx(2 * DT * 1.1)
    assert rewards.sums.abs().sum() == 0


def test_unknown_terms_are_refused_and_new_ones_can_be_added():
    with pytest.raises(ValueError, match=r"reward term 'torque'.*'torques'"):
        Rewards(RewardConfig(weights={"torque": 1.0}), G1, 1, NEEDS)

    @term
    def always_one(step):
        return torch.ones(len(step.command))

    try:
        rewards = Rewards(RewardConfig(weights={"always_one": 2.0}), G1, 1, NEEDS)
        assert rewards(make_step()).item() == pytest.approx(2 * DT)
    finally:
        TERMS.remove("always_one")


def test_parameters_come_from_the_config():
    @term
    def scaled(step, *, factor=2.0):
        return factor * torch.ones(len(step.command))

    try:
        for given, expected in (({}, 2.0), ({"scaled": {"factor": 5.0}}, 5.0)):
            config = RewardConfig(weights={"scaled": 1.0}, parameters=given)
            assert Rewards(config, G1, 1, NEEDS)(make_step()).item() == pytest.approx(DT * expected)
        misspelt = RewardConfig(weights={"scaled": 1.0}, parameters={"scaled": {"facto": 1.0}})
        with pytest.raises(ValueError, match=r"parameter of the reward term 'scaled' 'facto'"):
            Rewards(misspelt, G1, 1, NEEDS)
        idle = RewardConfig(weights={"torques": 1.0}, parameters={"scaled": {"factor": 1.0}})
        with pytest.raises(ValueError, match=r"parameters has 'scaled', a term without a weight"):
            Rewards(idle, G1, 1, NEEDS)
    finally:
        TERMS.remove("scaled")


def test_a_term_with_memory_is_reset_saved_and_restored(plugin):
    plugin("my_reward")
    config = RewardConfig(weights={"new_height": 1.0}, parameters={"new_height": {"limit": 0.02}})
    rewards, other = (Rewards(config, G1, 2, NEEDS) for _ in range(2))
    high = torch.tensor([[0.0, 0.0, 0.79], [0.0, 0.0, 0.88]])
    first = rewards(make_step(2, base_position=high))
    assert first.tolist() == pytest.approx([0.01, 0.02], rel=1e-4)  # at most the limit
    assert rewards(make_step(2, base_position=high)).tolist() == [0, 0]
    other.load_state_dict({name: value.clone() for name, value in rewards.state_dict().items()})
    assert other.terms["new_height"].highest.tolist() == pytest.approx([0.01, 0.10], rel=1e-4)
    rewards.reset(torch.tensor([1]), torch.zeros(1, 2))
    assert rewards.terms["new_height"].highest.tolist() == pytest.approx([0.01, 0.0], rel=1e-4)


def test_without_terms_there_is_no_reward():
    rewards = Rewards(RewardConfig(), G1, 3, NEEDS)
    assert rewards(make_step(3)).tolist() == [0, 0, 0]
    assert rewards.reset(torch.tensor([0]), torch.zeros(1, 2)) == {}


def test_built_in_terms_cannot_be_replaced_and_needs_are_known():
    def torques(step):
        return step.state.torque.sum(-1)

    with pytest.raises(ValueError, match=r"built-in reward term called 'torques'"):
        term(torques)
    with pytest.raises(ValueError, match=r"need of a reward term 'wings'"):
        term(needs=("wings",))(torques)
    with pytest.raises(ValueError, match=r"Loose must extend RewardTerm"):
        term(type("Loose", (), {}))
