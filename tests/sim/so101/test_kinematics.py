import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prism_motor.sim.so101.kinematics import UnreachableError, forward, gravity_torques, inverse
from prism_motor.sim.so101.units import HIGH, LOW, to_radians


def test_inverse_and_forward_agree_within_a_tenth_of_a_millimetre():
    random, tried = np.random.default_rng(1), 0
    for _ in range(300):
        place = random.uniform([0.15, -0.12, 0.0], [0.29, 0.12, 0.1])
        pitch, roll = random.uniform(1.0, 1.5), random.uniform(-1, 1)
        try:
            angles = inverse(place, pitch, roll=roll)
        except UnreachableError:
            continue
        tried += 1
        assert ((angles >= LOW - 1e-9) & (angles <= HIGH + 1e-9)).all()
        assert np.linalg.norm(forward(angles).position - place) < 1e-4
    assert tried > 200


def test_the_gripper_points_down_by_the_pitch():
    for pitch in (1.0, 1.3, math.pi / 2):
        turn = forward(inverse([0.22, 0.05, 0.04], pitch)).quaternion
        w, x, y, z = turn
        ahead = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
        assert math.asin(-ahead[2]) == pytest.approx(pitch, abs=1e-6)


def test_the_formula_without_twist_agrees_within_a_millimetre():
    """The closed form of two links in a plane, without the arm's small offsets."""
    x, y, z, p = 0.21, 0.04, 0.05, 1.1
    one, two = math.hypot(0.028, 0.11257), math.hypot(0.1349, 0.0052)
    r = math.hypot(x - 0.0388353, y)
    wr = r - (math.cos(p) * 0.1651 - math.sin(p) * 0.010) - 0.0303992
    wz = z - (-math.sin(p) * 0.1651 - math.cos(p) * 0.010) - 0.1166
    d = math.hypot(wr, wz)
    t1 = math.atan2(wz, wr) + math.acos((one**2 + d**2 - two**2) / (2 * one * d))
    lift = math.pi / 2 - math.atan2(0.028, 0.11257) - t1
    found = inverse([x, y, z], p)
    assert found[1] == pytest.approx(lift, abs=2e-3)
    assert found[0] == pytest.approx(-math.atan2(y, x - 0.0388353), abs=5e-3)


def test_home_is_above_the_table():
    tip = forward(to_radians([0, -64, 27, 88, 0, 0])).position
    assert_allclose(tip, [0.181, 0.0, 0.142], atol=1e-3)


@pytest.mark.parametrize(
    ("place", "pitch", "why"),
    [
        ((0.6, 0, 0.1), 1.1, "too far away or too near"),
        ((0.12, 0, 0.12), math.pi / 2, "wrist_flex would be at"),
        ((0.0388353, 0, 0.1), 1.1, "on the axis of the shoulder"),
    ],
)
def test_what_cannot_be_reached_is_said(place, pitch, why):
    with pytest.raises(UnreachableError, match=rf"cannot reach \({place[0]:.3f}.*{why}"):
        inverse(place, pitch)


def test_gravity_torques_are_the_slope_of_the_potential_energy():
    import mujoco

    from prism_motor.sim.so101.kinematics import _bare_arm

    model, data = _bare_arm()

    def energy(angles):
        data.qpos[:] = angles
        mujoco.mj_kinematics(model, data)
        return 9.81 * float(model.body_mass @ data.xipos[:, 2])

    angles = to_radians([20, -30, 50, 40, 30, 40])
    slopes = [(energy(angles + step) - energy(angles - step)) / 2e-5 for step in 1e-5 * np.eye(6)]
    assert_allclose(gravity_torques(angles), slopes, atol=1e-6)
