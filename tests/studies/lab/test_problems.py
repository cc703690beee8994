"""The right answers of the problems, against computations that share nothing with them."""

import math

import numpy as np
import pytest

from prism_motor.sim import build_model, make_robot
from prism_motor.studies.fitting import Standardised
from prism_motor.studies.lab.problems import PROBLEMS, DataRequest, choose_problems
from prism_motor.studies.lab.structure import measure_structure
from prism_motor.studies.physics.robot import contact_force, load_arm

mujoco = pytest.importorskip("mujoco")

REQUEST = DataRequest(samples=60, held_out=2000, reach=1.5, seed=7)


def drawn(name, request=REQUEST):
    return PROBLEMS[name].make(request)


def full_dynamics(model, q, dq, ddq):
    """M(q) ddq + bias by the dense mass matrix."""
    data, mass = mujoco.MjData(model), np.empty((model.nv, model.nv))
    data.qpos[:], data.qvel[:] = q, dq
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, mass, data.qM)
    return mass @ ddq + data.qfrc_bias


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_has_the_shape_it_says_and_finite_varying_values(name):
    data = drawn(name)
    for part, rows in (("train", 60), ("validation", 2000), ("test", 2000)):
        split = getattr(data, part)
        assert (split.inputs.shape[1], split.targets.shape[1]) == PROBLEMS[name].shape
        assert len(split.inputs) == len(split.targets) == rows
    for split in (data.validation, data.test, data.extrapolation):
        assert np.isfinite(split.inputs).all()
        assert np.isfinite(split.targets).all()
        assert (split.inputs.std(0) > 0).all()
        assert (split.targets.std(0) > 0).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_data_come_from_the_seed_alone(name):
    first, again = (PROBLEMS[name].make(REQUEST) for _ in range(2))
    other = drawn(name, DataRequest(60, 2000, 1.5, 8))
    np.testing.assert_array_equal(first.test.targets, again.test.targets)
    assert not np.array_equal(first.test.targets, other.test.targets)
    assert not np.array_equal(first.test.inputs, first.validation.inputs)


@pytest.mark.parametrize("name", sorted(set(PROBLEMS) - {"gain-schedule"}))
def test_extrapolation_goes_beyond_the_range_of_training(name):
    data = drawn(name)
    wider = data.extrapolation.inputs.std(0) / data.test.inputs.std(0)
    assert wider.max() > 1.35


def test_inverse_dynamics_of_the_arm():
    data, model = drawn("arm-inverse"), load_arm()
    for row, torque in zip(data.test.inputs[:10], data.test.targets, strict=False):
        np.testing.assert_allclose(full_dynamics(model, *np.split(row, 3)), torque, atol=1e-8)


@pytest.mark.parametrize("name", ["quadruped", "g1"])
def test_inverse_dynamics_of_legged_robots_from_what_the_base_feels(name):
    """Rebuild a state from the inputs alone, turned by any yaw: torques must be the same."""
    data, model = drawn(f"{name}-inverse"), build_model(make_robot(name), timestep=0.002)
    for row, torque in zip(data.test.inputs[:5], data.test.targets, strict=False):
        joints, dq, ddq, (down, turn, push, spin) = (
            *np.split(row[:36], 3),
            np.split(row[36:], 4),
        )
        # The shortest rotation that takes "down" in the base to "down" in the world, then a yaw.
        axis = np.cross(down, [0, 0, -1.0])
        angle = math.atan2(np.linalg.norm(axis), -down[2])
        lean, yaw, quaternion = np.empty(4), np.empty(4), np.empty(4)
        mujoco.mju_axisAngle2Quat(lean, axis / np.linalg.norm(axis), angle)
        mujoco.mju_axisAngle2Quat(yaw, np.array([0, 0, 1.0]), 0.8)
        mujoco.mju_mulQuat(quaternion, yaw, lean)
        world = np.empty(3)
        mujoco.mju_rotVecQuat(world, push, quaternion)
        forces = full_dynamics(
            model,
            np.concatenate([[0, 0, 5.0], quaternion, joints]),
            np.concatenate([[0, 0, 0], turn, dq]),
            np.concatenate([world, spin, ddq]),
        )
        np.testing.assert_allclose(forces[6:], torque, rtol=1e-6, atol=1e-6)


def test_targets_of_the_arm_are_those_of_the_physics_study():
    power = drawn("arm-joint-power")
    _, dq, tau = np.split(power.test.inputs, 3, axis=1)
    np.testing.assert_allclose(power.test.targets[:, 0], (tau * dq).sum(1), rtol=1e-6, atol=1e-9)
    absolute = drawn("arm-absolute-power")
    np.testing.assert_allclose(absolute.test.targets[:, 0], np.abs(tau * dq).sum(1), rtol=1e-6)
    assert drawn("arm-coriolis").train.inputs.tobytes() == power.train.inputs.tobytes()


def test_slip_is_the_force_along_the_table_times_the_motion_of_the_touching_point():
    """The force from the study, the motion by differences of the point's place in the hand."""
    slip, model = drawn("arm-slip"), load_arm()
    data, found = mujoco.MjData(model), []
    for row, lost in zip(slip.test.inputs, slip.test.targets[:, 0], strict=True):
        q, dq, tau = np.split(row, 3)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, dq, tau
        data.qacc_warmstart[:] = 0
        mujoco.mj_forward(model, data)
        if data.ncon != 1:
            assert data.ncon or lost == 0
            continue
        before, ahead = data.contact[0].pos.copy(), mujoco.MjData(model)
        local = data.body("hand").xmat.reshape(3, 3).T @ (before - data.body("hand").xpos)
        ahead.qpos[:] = q + 1e-6 * dq
        mujoco.mj_kinematics(model, ahead)
        after = ahead.body("hand").xpos + ahead.body("hand").xmat.reshape(3, 3) @ local
        velocity = (after - before)[:2] / 1e-6
        assert lost == pytest.approx(-contact_force(model, data)[:2] @ velocity, rel=1e-3, abs=1e-3)
        found.append(lost)
    assert len(found) > 20
    assert np.mean(np.array(found) > 0) > 0.7  # friction takes energy, but for moments of sticking


def simulate(row, command, plant, steps):
    """Roll the rail forward in plain Python; returns what the motor does when the command acts."""
    mass, strength, friction, delay = plant
    error, v_ref, a_ref, velocities, past = row[0], row[1], row[2], row[3:12], list(row[12:])
    v, queue = velocities[-1], [*past, command]
    for _ in range(steps):
        acting = queue[len(queue) - 1 - delay]
        error, v = error + 0.1 * (v_ref - v), v + 0.1 * (strength * acting - friction * v) / mass
        v_ref += 0.1 * a_ref
        queue.append(0.0)
    return error, v, v_ref, a_ref


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("payload", [(m, 1, 0.5, 0) for m in np.linspace(0.5, 2, 3001)]),
        ("strength", [(1, s, 0.5, 0) for s in np.linspace(0.5, 1.5, 2001)]),
        ("friction", [(1, 1, c, 0) for c in np.linspace(0.1, 2, 3801)]),
        ("delay", [(1, 1, 0.5, d) for d in range(5)]),
    ],
)
def test_the_history_tells_the_plant_and_the_plant_the_command(name, candidates):
    """Find the plant by search over the history; its command makes the error dynamics exact."""
    data = drawn(f"adaptive-{name}")
    checked = 0
    for row, target in zip(data.test.inputs[:6], data.test.targets[:, 0], strict=False):
        velocities, commands = row[3:12], row[12:]

        def misfit(plant, velocities=velocities, commands=commands):
            mass, strength, friction, delay = plant
            total = 0.0
            for k in range(delay, 8):
                force = strength * commands[k - delay] - friction * velocities[k]
                total += (velocities[k + 1] - velocities[k] - 0.1 * force / mass) ** 2
            return total / (8 - delay)

        plant = min(candidates, key=misfit)
        mass, strength, friction, delay = plant
        error, v, v_ref, a_ref = simulate(row, target, plant, delay)
        # When the command acts, the net force gives the wanted acceleration at the wanted speed.
        wanted = a_ref + 3.0 * (v_ref - v) + 4.0 * error
        assert strength * target - friction * v_ref == pytest.approx(mass * wanted, abs=0.02)
        checked += 1
    assert checked == 6


def test_a_long_history_is_the_same_plant_measured_with_noise():
    """Least squares over the noisy history tells the plant, and the plant the command."""
    data = drawn("adaptive-noisy")
    errors = []
    for row, target in zip(data.test.inputs[:200], data.test.targets[:, 0], strict=False):
        error, v_ref, a_ref, velocities, commands = *row[:3], row[3:36], row[36:]
        gains = np.linalg.lstsq(
            np.stack([commands, -velocities[:-1]], 1), np.diff(velocities) / 0.1, rcond=None
        )[0]
        wanted = a_ref + 3.0 * (v_ref - velocities[-1]) + 4.0 * error
        estimate = (wanted + gains[1] * v_ref) / gains[0]
        errors.append((estimate - target, target))
    misses, targets = np.array(errors).T
    assert np.median(np.abs(misses)) < 0.1 * targets.std()


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].history])
def test_frames_are_velocities_with_the_command_that_led_to_them(name):
    problem = PROBLEMS[name]
    count = len(problem.history)
    assert problem.shape[0] == 2 * count + 4
    assert problem.history[0] == (4, 4 + count)
    assert problem.history[-1] == (3 + count, problem.shape[0] - 1)


def test_gain_schedule_by_hand():
    from prism_motor.studies.lab.problems.plain import tracking_law

    state = np.array([[2.0, 0.5, 0.1, -0.2, math.pi / 6]])
    v = 2 * math.cos(math.pi / 6) + 0.1
    omega = 0.5 + 2 * (4 * -0.2 + 3 * 0.5)
    np.testing.assert_allclose(tracking_law(state), [[v, omega, v * omega]])


def test_the_linear_problem_is_linear_and_the_relay_switches():
    linear = drawn("linear")
    gains, *_ = np.linalg.lstsq(linear.test.inputs, linear.test.targets, rcond=None)
    assert np.abs(linear.test.inputs @ gains - linear.test.targets).max() < 1e-9
    relay = drawn("bang-bang").test.targets
    assert set(np.unique(relay)) == {-1.0, 1.0}


def test_structure_orders_what_is_known():
    found = {}
    for name in ("arm-joint-power", "gain-schedule", "bang-bang", "linear"):
        data = Standardised(drawn(name, DataRequest(3000, 2000, 1.0, 901)))
        found[name] = measure_structure(data)
    assert found["arm-joint-power"].multiplicativity > 0.999
    assert found["gain-schedule"].multiplicativity > 0.9
    assert found["bang-bang"].multiplicativity < 0.4
    assert found["linear"].multiplicativity == 0.0
    assert found["linear"].degree == 2  # 24 inputs have too many products of three


def test_choosing_problems_keeps_the_order_and_names_the_nearest():
    names = [p.name for p in choose_problems(("linear", "arm-slip"))]
    assert names == ["arm-slip", "linear"]
    assert len(choose_problems(())) == len(PROBLEMS)
    with pytest.raises(ValueError, match=r"Unknown problem 'arm-slipp'.*Did you mean 'arm-slip'"):
        choose_problems(("arm-slipp",))
