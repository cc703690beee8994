import numpy as np
import pytest

from prism_motor.manipulation.contact import (
    ContactTrace,
    TraceRecorder,
    align,
    contact_power,
    contact_work,
    diagnose,
    first_contact,
    impulse,
)
from prism_motor.manipulation.environment import Physics

DT = 0.05


def make_trace(force, velocity):
    """Return the trace of a point that moves with a velocity from the origin."""
    velocity = np.asarray(velocity, float)
    return ContactTrace(
        control_seconds=DT,
        actions=np.zeros((len(velocity), 7)),
        position=(velocity * DT).cumsum(0),
        displacement=velocity * DT,
        velocity=velocity,
        force=np.asarray(force, float)[:, None] * [0, 0, 1.0],
        largest_force=np.asarray(force, float),
    )


def spring(steps=200, stiffness=500.0, mass=1.0, speed=0.4, free=40, dt=0.001):
    """Return force and velocity of a mass that flies and then presses a spring, analytically."""
    omega = np.sqrt(stiffness / mass)
    after = np.maximum(np.arange(1, steps + 1) - free, 0) * dt
    depth = speed / omega * np.sin(omega * after)
    velocity = speed * np.cos(omega * after)
    return stiffness * depth, velocity, dt


def test_first_contact_is_where_the_force_reaches_the_threshold():
    assert first_contact(np.array([0.0, 4.99, 5.0, 80.0])) == 2
    assert first_contact(np.array([0.0, 6.0]), threshold=7.0) is None
    assert first_contact(np.array([9.0])) == 0


def test_alignment_puts_the_contact_in_the_middle():
    values = np.arange(30.0)
    np.testing.assert_array_equal(align(values, 12), np.arange(4.0, 21.0))
    early = align(values, 2, before=4, after=3)
    np.testing.assert_array_equal(early, [np.nan, np.nan, 0, 1, 2, 3, 4, 5])
    late = align(np.stack([values, -values], 1), 29, before=1, after=2)
    np.testing.assert_array_equal(late[:2], [[28, -28], [29, -29]])
    assert np.isnan(late[2:]).all()


def test_impulse_of_a_half_sine_is_two_over_pi():
    # A bump of height F over a time T has the impulse 2 F T / pi.
    dt = 0.001
    time = np.arange(0, 0.4, dt)
    assert impulse(30 * np.sin(np.pi * time / 0.4), dt) == pytest.approx(
        2 * 30 * 0.4 / np.pi, rel=1e-4
    )


def test_impulse_stops_a_mass_and_work_takes_its_energy():
    # Pressing a spring until it stands still: impulse m v, work m v^2 / 2.
    force, velocity, dt = spring(steps=40 + 70)
    quarter = int(np.argmin(np.abs(velocity)))
    force, velocity = force[: quarter + 1], velocity[: quarter + 1]
    along = velocity[:, None] * [1.0, 0, 0]
    assert impulse(force, dt) == pytest.approx(1.0 * 0.4, rel=0.03)
    energy = 0.5 * 1.0 * 0.4**2
    assert contact_work(force, along * dt).sum() == pytest.approx(energy, rel=0.03)
    assert contact_power(force, along).sum() * dt == pytest.approx(energy, rel=0.03)


def test_power_is_force_times_speed():
    found = contact_power(np.array([2.0, 3.0]), np.array([[3.0, 4.0, 0], [0, 0, -1.0]]))
    np.testing.assert_allclose(found, [10.0, 3.0])


def test_diagnosis_of_a_constant_push():
    # 20 free steps at 0.3 m/s, then 30 steps with 10 N at 0.1 m/s.
    force = np.r_[np.zeros(20), np.full(30, 10.0)]
    velocity = np.r_[np.full(20, 0.3), np.full(30, 0.1)][:, None] * [0, 1.0, 0]
    found = diagnose(make_trace(force, velocity))
    assert found is not None
    assert found.step == 20
    assert found.time == pytest.approx(21 * DT)
    assert found.peak_force == 10.0
    assert found.impulse == pytest.approx(10 * 30 * DT)
    assert found.work == pytest.approx(10 * 0.1 * 30 * DT)
    assert found.mean_power == found.peak_power == pytest.approx(1.0)
    assert found.window_impulse == pytest.approx(10 * 9 * DT)
    assert found.approach_speed == pytest.approx(0.3)
    assert found.yielding_speed == pytest.approx(0.1)


def test_windows_know_nothing_of_what_comes_later():
    force = np.r_[0, 8, np.full(8, 6.0), 300.0]
    found = diagnose(make_trace(force, np.ones((11, 3))))
    assert found is not None
    assert (found.window_peak_force, found.peak_force) == (8.0, 300.0)


def test_contacts_at_the_ends_of_an_episode():
    at_once = diagnose(make_trace([9.0, 0.0], np.ones((2, 3))))
    at_last = diagnose(make_trace([0.0, 9.0], np.ones((2, 3))))
    assert at_once is not None
    assert at_last is not None
    assert at_once.approach_speed is None
    assert at_last.yielding_speed is None
    assert diagnose(make_trace([0.0, 4.0], np.ones((2, 3)))) is None


def physics_at(x, force):
    return Physics(
        position=np.array([x, 0.0, 0.0]),
        quaternion=np.array([1.0, 0, 0, 0]),
        velocity=np.array([1.0, 2.0, 2.0, 9.0, 9.0, 9.0]),
        jacobian=np.zeros((6, 0)),
        joint_positions=np.zeros(0),
        joint_velocities=np.zeros(0),
        joint_torques=np.zeros(0),
        bias_torques=np.zeros(0),
        contact_force=np.array([0.0, 0.0, force]),
        largest_force=force,
    )


def test_a_recorder_makes_the_trace():
    recorder = TraceRecorder(DT, physics_at(0.5, 0.0))
    for x, force in ((0.6, 1.0), (0.8, 7.0)):
        recorder.add(np.full(7, x, np.float32), physics_at(x, force))
    trace = recorder.finish()
    assert len(trace) == 2
    np.testing.assert_allclose(trace.displacement[:, 0], [0.1, 0.2])
    np.testing.assert_allclose(trace.speed, [3.0, 3.0])
    np.testing.assert_allclose(trace.time, [DT, 2 * DT])
    np.testing.assert_allclose(trace.actions[1], 0.8, atol=1e-6)
    np.testing.assert_array_equal(trace.force[:, 2], [1.0, 7.0])


def test_an_episode_without_steps_is_refused():
    with pytest.raises(ValueError, match="at least one step"):
        TraceRecorder(DT, physics_at(0, 0)).finish()
