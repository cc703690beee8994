"""The robot, and the targets against independent computations."""

import mujoco
import numpy as np
import pytest

from prism_motor.studies.physics.dataset import simulate_episode
from prism_motor.studies.physics.robot import (
    ARM_XML,
    TARGETS,
    contact_force,
    measure,
    target_columns,
    trace_landmarks,
)

COLUMNS = target_columns()


def column(rows, name):
    return rows[:, COLUMNS[name]].squeeze(-1)


def placed(model, q, dq, tau):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, dq, tau
    mujoco.mj_forward(model, data)
    return data


def test_columns_are_contiguous_and_complete(model, states):
    rows = measure(model, *states)
    assert rows.shape == (20, sum(target.size for target in TARGETS))
    covered = np.concatenate([np.arange(rows.shape[1])[part] for part in COLUMNS.values()])
    assert covered.tolist() == list(range(rows.shape[1]))


def test_joint_powers_are_sums_of_products(model, states):
    _, dq, tau = states
    rows = measure(model, *states)
    assert column(rows, "joint_power") == pytest.approx((tau * dq).sum(1))
    assert column(rows, "absolute_power") == pytest.approx(np.abs(tau * dq).sum(1))


def test_kinetic_energy_is_the_sum_over_bodies(model, states):
    """Each body's 1/2 m v^2 + 1/2 w I w, plus the rotors."""
    rows = measure(model, *states)
    for state, expected in zip(
        zip(*states, strict=True), column(rows, "kinetic_energy"), strict=True
    ):
        data = placed(model, *state)
        total = 0.5 * (model.dof_armature * data.qvel**2).sum()
        for body in range(1, model.nbody):
            velocity = np.empty(
                6
            )  # rotation, translation of the centre of mass, in the inertia frame
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 1)
            total += 0.5 * model.body_mass[body] * velocity[3:] @ velocity[3:]
            total += 0.5 * model.body_inertia[body] @ velocity[:3] ** 2
        assert total == pytest.approx(expected, rel=1e-9)


def test_coriolis_torque_is_quadratic_in_the_velocity_and_free_of_torque(model, states):
    q, dq, tau = states
    base = measure(model, q, dq, tau)[:, COLUMNS["coriolis"]]
    scaled = measure(model, q, 1.7 * dq, 0 * tau)[:, COLUMNS["coriolis"]]
    assert np.abs(base).max() > 1.0
    np.testing.assert_allclose(scaled, 1.7**2 * base, rtol=1e-9, atol=1e-10)


def test_coriolis_torque_matches_derivatives_of_the_mass_matrix(model, states):
    """c = dM/dt dq - 1/2 d(dq^T M dq)/dq by central differences."""
    step = 1e-6

    def mass(q):
        data = placed(model, q, np.zeros(4), np.zeros(4))
        product, columns = np.empty(4), []
        for unit in np.eye(4):
            mujoco.mj_mulM(model, data, product, unit)
            columns.append(product.copy())
        return np.stack(columns, axis=1)

    q, dq, tau = (part[:5] for part in states)
    expected = measure(model, q, dq, tau)[:, COLUMNS["coriolis"]]
    for i in range(5):
        slopes = [
            (mass(q[i] + step * e) - mass(q[i] - step * e)) / (2 * step) for e in np.eye(4)
        ]  # slopes[k] = dM/dq_k
        change = sum(slope * rate for slope, rate in zip(slopes, dq[i], strict=True)) @ dq[i]
        gradient = np.array([dq[i] @ slope @ dq[i] for slope in slopes])
        np.testing.assert_allclose(change - gradient / 2, expected[i], rtol=1e-5, atol=1e-6)


def test_work_and_energy_balance(model):
    """Without losses and contact, motor work is the change of kinetic plus potential energy."""
    free = mujoco.MjModel.from_xml_string(_xml_without_losses())
    data = mujoco.MjData(free)
    data.qpos[:] = [0.2, -0.5, 0.9, 0.1]
    work, energies = 0.0, []
    for step in range(400):
        data.ctrl[:] = 3 * np.sin(0.004 * step + np.arange(4))
        mujoco.mj_forward(free, data)
        rows = measure(free, *(part[None] for part in (data.qpos, data.qvel, data.ctrl)))
        power, kinetic = rows[0, 0], column(rows, "kinetic_energy")[0]
        mujoco.mj_energyPos(free, data)
        energies.append(kinetic + data.energy[0])
        work += (1.0 if step else 0.5) * power * free.opt.timestep
        mujoco.mj_step(free, data)
    work -= 0.5 * power * free.opt.timestep  # trapezoids
    assert abs(work) > 0.5
    assert energies[-1] - energies[0] == pytest.approx(work, rel=1e-3)


def _xml_without_losses():
    return (
        ARM_XML.replace('damping="0.2"', 'damping="0"')
        .replace('timestep="0.004" integrator="implicitfast"', 'timestep="0.0005" integrator="RK4"')
        .replace(
            "<default>", '<option><flag contact="disable" limit="disable"/></option><default>', 1
        )
    )


def test_contact_power_is_force_times_tip_speed(model):
    """Zero for a still arm pressed into the table, else force times finite-difference speed."""
    q = np.array([[0.0, 0.75, 0.75, 0.0]])
    depth = trace_landmarks(model, q)[0, -1, 2]
    assert -0.2 < depth < 0.02
    dq = np.array([[0.5, 0.3, -0.2, 0.4]])
    still = measure(model, q, 0 * dq, 0 * dq)
    assert column(still, "contact_power")[0] == 0.0
    data = placed(model, q[0], dq[0], np.zeros(4))
    assert data.ncon > 0
    # Newton's second law isolates the contact's torque; the Jacobian turns the force into it.
    smooth = data.qfrc_smooth
    inertial = np.empty(4)
    mujoco.mj_mulM(model, data, inertial, data.qacc)
    step = 1e-6
    ends = trace_landmarks(model, np.concatenate([q - step * dq, q + step * dq]))[:, -1]
    speed = np.linalg.norm(ends[1] - ends[0]) / (2 * step)
    force = contact_force(model, data)
    assert force[2] > 0  # the table pushes upwards
    torque = np.zeros(4)
    wrench = np.empty(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, wrench)
        jacobian = np.empty((3, 4))
        hand = model.body("hand").id
        mujoco.mj_jac(model, data, jacobian, None, data.contact[i].pos, hand)
        torque += jacobian.T @ (data.contact[i].frame.reshape(3, 3).T @ wrench[:3])
    np.testing.assert_allclose(torque, inertial - smooth, rtol=1e-5, atol=1e-6)
    power = column(measure(model, q, dq, 0 * dq), "contact_power")[0]
    assert power == pytest.approx(np.linalg.norm(force) * speed, rel=1e-5)


def test_a_state_alone_decides_its_targets(model):
    """Measured alone, in a batch or in reverse, a state has the same targets."""
    states = simulate_episode(model, np.random.default_rng(0), 2.0, 0.02)
    q, dq, tau = np.split(states, 3, axis=1)
    rows = measure(model, q, dq, tau)
    assert (column(rows, "contact_power") > 0).any()
    np.testing.assert_array_equal(measure(model, q[::-1], dq[::-1], tau[::-1])[::-1], rows)
