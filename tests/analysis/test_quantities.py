"""Every quantity against MuJoCo's own functions on a single simulation stepped by hand."""

import mujoco
import numpy as np
import pytest
import torch

from prism_motor.analysis.quantities import QuantityMeter, orientation_error
from prism_motor.locomotion.conditions import find_condition
from prism_motor.locomotion.env import VelocityEnv
from prism_motor.locomotion.tasks import TASKS

STEPS = 25


class ByHand:
    """One robot, stepped with mj_step; foot quantities from contacts and objects."""

    def __init__(self, env):
        self.env, self.model = env, env.engine._models[0]
        self.data = mujoco.MjData(self.model)
        self.impulse = np.zeros(len(env.robot.feet))

    def step(self, targets, qpos, qvel):
        """Repeat a control step from the state before it."""
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, targets
        data.qacc_warmstart[:] = 0
        for _ in range(self.env.engine.substeps):
            mujoco.mj_step(model, data)
        feet = [self._foot(name) for name in self.env.robot.feet]
        # What the sensors read is of the last forward pass; torque and angles are of the new state.
        present = mujoco.MjData(model)
        present.qpos[:], present.qvel[:], present.ctrl[:] = data.qpos, data.qvel, targets
        mujoco.mj_forward(model, present)
        power = present.actuator_force * present.qvel[6:]
        return feet, power, present

    def _foot(self, name):
        """Return (contact force, frame velocity), both in world axes."""
        model, data = self.model, self.data
        body = model.body(name).id
        force = np.zeros(3)
        for i in range(data.ncon):
            contact, wrench = data.contact[i], np.zeros(6)
            bodies = [int(model.geom_bodyid[g]) for g in (contact.geom1, contact.geom2)]
            if body not in bodies:
                continue
            mujoco.mj_contactForce(model, data, i, wrench)
            sign = 1 if bodies[1] == body else -1  # the force acts on the second geom
            force += sign * contact.frame.reshape(3, 3).T @ wrench[:3]
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
        return force, velocity[3:]


@pytest.mark.parametrize("preset", ["laptop", "quadruped"])
def test_against_a_simulation_stepped_by_hand(preset):
    env = VelocityEnv(find_condition("nominal").apply(TASKS[preset]), 1, seed=2)
    meter, hand = QuantityMeter(env.robot, 1, env.control_dt), ByHand(env)
    generator = torch.Generator().manual_seed(0)
    touched = 0
    for _ in range(STEPS):
        qpos, qvel = env.engine.qpos[0].copy(), env.engine.qvel[0].copy()
        env.step(0.3 * torch.randn(1, env.num_actions, generator=generator))
        assert not env.terminated[0]
        read = dict(zip(meter.names, meter.read(env.last_step)[0].tolist(), strict=True))
        feet, power, present = hand.step(env.engine._targets[0], qpos, qvel)

        near = {"rel": 2e-3, "abs": 2e-3}
        assert read["joint_power"] == pytest.approx(np.abs(power).sum(), **near)
        assert read["joint_power_signed"] == pytest.approx(power.sum(), **near)
        assert read["joint_power_net"] == pytest.approx(abs(power.sum()), **near)
        slips, speeds = [], []
        for i, (name, (force, velocity)) in enumerate(zip(env.robot.feet, feet, strict=True)):
            contact = force[2] > 5.0
            touched += contact
            hand.impulse[i] = (hand.impulse[i] + force[2] * env.control_dt) if contact else 0.0
            speeds.append(np.hypot(velocity[0], velocity[1]))
            slips.append(speeds[-1] * contact)
            assert read[f"contact_{name}"] == contact
            assert read[f"slip_velocity_{name}"] == pytest.approx(slips[-1], **near)
            assert read[f"normal_force_{name}"] == pytest.approx(force[2], rel=2e-3, abs=0.05)
            assert read[f"foot_impulse_{name}"] == pytest.approx(
                hand.impulse[i], rel=2e-3, abs=0.01
            )
            assert read[f"contact_power_{name}"] == pytest.approx(
                force @ velocity, rel=5e-3, abs=0.02
            )
        assert read["slip_velocity"] == pytest.approx(sum(slips), **near)
        assert read["foot_speed"] == pytest.approx(sum(speeds), **near)
        assert read["foot_impulse"] == pytest.approx(hand.impulse.sum(), rel=2e-3, abs=0.01)

        base = np.zeros(6)
        body = hand.model.body(env.robot.base).id
        mujoco.mj_objectVelocity(hand.model, present, mujoco.mjtObj.mjOBJ_XBODY, body, base, 1)
        command = env.last_step.command[0].numpy()
        error = np.hypot(*(command[:2] - base[3:5]))
        assert read["tracking_error"] == pytest.approx(error, **near)
        assert read["yaw_error"] == pytest.approx(abs(command[2] - base[2]), **near)
        upright = present.xmat[body].reshape(3, 3)[2, 2]
        assert read["orientation_error"] == pytest.approx(np.arccos(upright), rel=1e-2, abs=1e-3)
    assert touched > STEPS / 2


def test_the_ground_carries_the_weight():
    # Momentum: over a long stand the mean normal force is the weight, at any sampling rate.
    env = VelocityEnv(find_condition("nominal").apply(TASKS["quadruped"]), 1, seed=0)
    meter = QuantityMeter(env.robot, 1, env.control_dt)
    column = meter.names.index("normal_force")
    loads = []
    for _ in range(100):
        env.step(torch.zeros(1, 12))
        loads.append(float(meter.read(env.last_step)[0, column]))
    weight = 9.81 * float(env.engine.model.body_mass.sum())
    assert np.mean(loads[40:]) == pytest.approx(weight, rel=0.03)


def test_impulse_begins_again_with_every_contact_and_episode():
    env = VelocityEnv(find_condition("nominal").apply(TASKS["quadruped"]), 1, seed=0)
    meter = QuantityMeter(env.robot, 1, env.control_dt)
    for _ in range(30):
        env.step(torch.zeros(1, 12))
        read = dict(zip(meter.names, meter.read(env.last_step)[0].tolist(), strict=True))
        for foot in env.robot.feet:
            assert (read[f"foot_impulse_{foot}"] > 0) == bool(read[f"contact_{foot}"])
    meter.reset(torch.tensor([0]))
    assert meter.impulse.abs().sum() == 0


def test_orientation_error_is_the_tilt_angle():
    angle = 0.02
    gravity = torch.tensor([[np.sin(angle), 0.0, -np.cos(angle)], [0.0, 0.0, -1.0]])
    np.testing.assert_allclose(orientation_error(gravity.float()), [angle, 0.0], atol=1e-7)
