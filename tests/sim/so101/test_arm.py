"""The arm against numbers computed from its published description with MuJoCo."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

from prism_motor._checks import InputError
from prism_motor.sim.so101.arm import SERVOS, add_arm, find_servos
from prism_motor.sim.so101.units import HIGH, JOINTS, LOW

POSES = np.radians(
    [
        [0, 0, 0, 0, 0, 0],
        [0, -64, 27, 88, 0, -10],
        [30, 20, -40, 60, 45, 10],
        [-75, -50, 80, -30, -120, 60],
        [100, 60, -90, -80, 150, 95],
    ]
)
ANCHORS = [
    [[0.0388353, 0, 0.0624], [0.0692345, -0.0182778, 0.1166], [0.0972345, -0.0182778, 0.22917],
     [0.2321345, -0.0182778, 0.23437], [0.2932345, -0.0001778, 0.23437],
     [0.3166345, 0.017617, 0.2554609]],
    [[0.0388353, 0, 0.0624], [0.0692345, -0.0182778, 0.1166], [-0.0196684, -0.0182778, 0.1911137],
     [0.0849381, -0.0182778, 0.2764514], [0.1233896, -0.0001778, 0.2289678],
     [0.1545064, 0.017617, 0.2240555]],
    [[0.0388353, 0, 0.0624], [0.0560229, -0.0310286, 0.1166], [0.1121522, -0.0634349, 0.2128046],
     [0.2203933, -0.125928, 0.2638296], [0.2699779, -0.1336556, 0.2245552],
     [0.3005474, -0.1195548, 0.2112994]],
    [[0.0388353, 0, 0.0624], [0.0643582, 0.0246327, 0.1166], [0.0466975, -0.0412778, 0.2104078],
     [0.0776075, 0.0740797, 0.1474612], [0.075938, 0.1377824, 0.1474612],
     [0.1082315, 0.1533548, 0.1523265]],
    [[0.0388353, 0, 0.0624], [0.0155564, -0.0267635, 0.1166], [-0.0038034, -0.1365582, 0.1486363],
     [-0.0236386, -0.2490497, 0.2205896], [-0.0021848, -0.2316127, 0.2780048],
     [-0.0100187, -0.248023, 0.3092838]],
]  # fmt: skip
MASSES = [
    [15285.63, 90.49, 16309.83, 3.32, 10071.64, 8609.23, -0.7, 2969.95, 2607.64, 996.74, -68.07,
     0.84, 0.73, 0.21, 40.57, 5.63, -102.54, -94.59, -46.14, 0.06, 16.13],
    [2128.77, 98.24, 5970.75, 40.47, 3308.82, 5422.68, -25.77, -349.33, 1012.37, 992.75, -46.76,
     -0.18, 0.6, 0.61, 38.83, 2.03, 5.16, -33.02, -44.15, 0.06, 16.13],
    [17786.71, 119.69, 18062.48, 24.68, 10110.84, 6934.99, -25.62, 1647.04, 1766.68, 989.06, -91.09,
     31.47, 34.11, 20.49, 43.27, -77.37, -58.81, -56.97, -35.03, 0.06, 16.13],
    [4793.84, 28.22, 4171.98, 1.3, 3792.65, 8189.11, 19.38, 1545.5, 2375.13, 951.84, 51.49, -69.97,
     -102.88, -45.29, 64.42, 46.17, 17.19, 52.84, 21.08, 0.03, 16.13],
    [17031.67, 174.1, 18466.14, 138.91, 9906.81, 6123.27, 60.28, 1301.35, 1333.63, 934.69, 189.58,
     30.5, 33.09, 23.86, 71.45, 5.88, 107.85, 66.03, 18.76, 0.0, 16.13],
]  # fmt: skip
"""Lower triangles of the mass matrix without the rotors, 1e-6 kg m^2."""


def make_arm(servos=SERVOS["soft"]):
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    add_arm(spec, servos)
    model = spec.compile()
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("number", range(len(POSES)))
def test_joints_and_masses_are_those_of_the_published_arm(number):
    model, data = make_arm()
    data.qpos[:] = POSES[number]
    mujoco.mj_forward(model, data)
    assert_allclose(data.xanchor, ANCHORS[number], atol=2e-7)
    mass = np.zeros((6, 6))
    mujoco.mj_fullM(model, mass, data.qM)
    found = (mass - 0.028 * np.eye(6))[np.tril_indices(6)]
    assert_allclose(1e6 * found, MASSES[number], atol=0.5)


def test_the_arm_has_lerobots_joints_their_ranges_and_its_mass():
    model, _ = make_arm()
    assert [model.joint(number).name for number in range(6)] == list(JOINTS)
    assert [model.actuator(number).name for number in range(6)] == list(JOINTS)
    assert_allclose(model.jnt_range, np.stack([LOW, HIGH], axis=1))
    assert_allclose(model.actuator_ctrlrange, model.jnt_range)
    assert model.body_subtreemass[model.body("base").id] == pytest.approx(0.632, abs=1e-3)
    assert model.body_subtreemass[model.body("shoulder").id] == pytest.approx(0.485, abs=1e-3)


def test_signs_are_lerobots():
    """Positive: pan to the right, lift, elbow and wrist down, gripper open."""
    model, data = make_arm()

    def tip(joint, angle, site="tip"):
        data.qpos[:] = 0
        data.qpos[JOINTS.index(joint)] = angle
        mujoco.mj_kinematics(model, data)
        return data.site(site).xpos.copy() if site else data.geom_xpos[-1].copy()

    assert tip("shoulder_pan", 0.3)[1] < tip("shoulder_pan", 0)[1] - 0.05
    for joint in ("shoulder_lift", "elbow_flex", "wrist_flex"):
        assert tip(joint, 0.3)[2] < tip(joint, 0)[2] - 0.01
    opened, closed = (tip("gripper", angle, None) for angle in (HIGH[5], LOW[5]))
    fixed = tip("gripper", 0)
    assert np.linalg.norm(opened - fixed) > np.linalg.norm(closed - fixed) + 0.05


def test_without_load_a_servo_turns_as_fast_as_measured():
    model, data = make_arm()
    model.opt.gravity[:] = 0
    data.qpos[0], data.ctrl[0] = LOW[0], HIGH[0]
    speeds = []
    for _ in range(400):
        mujoco.mj_step(model, data)
        speeds.append(data.qvel[0])
    # 2.94 N m against 0.6 N m s/rad and 0.052 N m of friction
    assert max(speeds) == pytest.approx((2.94 - 0.052) / 0.60, rel=0.05)


@pytest.mark.parametrize(("name", "least", "most"), [("soft", 5, 10), ("stiff", 0.05, 0.25)])
def test_gravity_lowers_the_tip_as_far_as_the_stiffness_says(name, least, most):
    from prism_motor.sim.so101.kinematics import inverse

    servos = find_servos(name)
    model, data = make_arm(servos)
    model.dof_frictionloss[:] = 0
    data.qpos[:] = data.ctrl[:] = inverse([0.24, 0.0, 0.036], 1.1)
    mujoco.mj_forward(model, data)
    start, torques = data.site("tip").xpos.copy(), data.qfrc_bias.copy()
    jacobian = np.zeros((3, 6))
    mujoco.mj_jacSite(model, data, jacobian, None, model.site("tip").id)
    for _ in range(3000):
        mujoco.mj_step(model, data)
    fallen = start - data.site("tip").xpos
    assert_allclose(fallen, jacobian @ (torques / servos.kp), atol=0.0008)
    assert least < 1000 * fallen[2] < most


def test_servos_are_presets_with_another_stiffness_if_wanted():
    assert find_servos("soft") == SERVOS["soft"]
    changed = find_servos("stiff", kp=25.0)
    assert (changed.kp, changed.kv) == (25.0, SERVOS["stiff"].kv)
    with pytest.raises(InputError, match="Unknown servos 'hard'"):
        find_servos("hard")
    with pytest.raises(InputError, match=r"servos\.kp must be above 0"):
        find_servos("soft", kp=0.0)
