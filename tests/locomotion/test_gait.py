import itertools
import math

import mujoco
import numpy as np
import pytest
import torch

from prism_motor.locomotion.gait import Gait, GaitMeter
from prism_motor.locomotion.tasks import TASKS
from prism_motor.sim.robots import make_robot
from prism_motor.sim.scene import build_model

DEFAULT = torch.from_numpy(make_robot("g1").default_pose).float()


def gait(preset="g1"):
    return Gait(TASKS[preset].gait, DEFAULT, 0.01)


def test_stance_mask_over_one_cycle():
    stance = gait().at(torch.arange(64)).stance
    both = stance.all(-1)
    assert both.nonzero().squeeze(-1).tolist() == [0, 1, 31, 32, 33, 63]
    assert (stance[:, 0] & ~both).sum() == 29
    assert (stance[:, 1] & ~both).sum() == 29
    assert stance.any(-1).all()


def test_clock_is_sine_and_cosine_of_the_phase():
    steps = torch.tensor([0, 16, 32, 100])
    clock = gait().at(steps).clock
    for k, (s, c) in zip(steps.tolist(), clock.tolist(), strict=True):
        angle = 2 * math.pi * k * 0.01 / 0.64
        assert (s, c) == (
            pytest.approx(math.sin(angle), abs=1e-5),
            pytest.approx(math.cos(angle), abs=1e-5),
        )


def test_corrected_reference_lifts_the_swing_leg_from_the_default_pose():
    reference = gait().at(torch.tensor([0, 16, 48])).reference  # sin = 0, 1, -1
    torch.testing.assert_close(reference[0], DEFAULT)
    lift = 0.316 * torch.tensor([-1.0, 0, 0, 2, -1, 0])
    torch.testing.assert_close(reference[1] - DEFAULT, torch.cat([torch.zeros(6), lift]))
    torch.testing.assert_close(reference[2] - DEFAULT, torch.cat([lift, torch.zeros(6)]))


def test_literal_reference_keeps_humanoid_gyms_joints_and_signs():
    reference = gait("paper").at(torch.tensor([0, 16, 48])).reference
    torch.testing.assert_close(reference[0], torch.zeros(12))
    move = 0.17 * torch.tensor([0, 0, 1.0, 2, 1, 0])
    torch.testing.assert_close(reference[1], torch.cat([torch.zeros(6), move]))  # right: positive
    torch.testing.assert_close(reference[2], torch.cat([-move, torch.zeros(6)]))  # left: negative


def test_reference_rests_in_double_support():
    steps = torch.arange(64)
    g = gait()
    moving = (g.at(steps).reference - DEFAULT).abs().sum(-1) > 0
    assert torch.equal(moving, ~g.at(steps).stance.all(-1))


# Strides ----------------------------------------------------------------------------------------

STANCE = torch.arange(1, 12)  # of the left foot, at 50 Hz


def strider():
    return Gait(TASKS["laptop"].gait, DEFAULT, 0.02)


def feet_in(reference):
    """Return position and yaw of the left foot relative to the base, for joint angles (N, J)."""
    model = build_model(make_robot("g1"), timestep=0.005)
    data = mujoco.MjData(model)
    places = []
    for angles in reference.double().numpy():
        data.qpos[:] = [0, 0, 1, 1, 0, 0, 0, *angles]
        mujoco.mj_kinematics(model, data)
        foot = data.body(make_robot("g1").feet[0])
        turned = foot.xmat.reshape(3, 3)
        places.append([*foot.xpos[:2], math.atan2(turned[1, 0], turned[0, 0])])
    return np.array(places)


@pytest.mark.parametrize("command", [(0.5, 0.0, 0.0), (-0.3, 0.0, 0.0), (0.0, 0.3, 0.0)])
def test_a_stance_foot_of_the_reference_moves_as_the_ground_should(command):
    reference = strider().at(STANCE, torch.tensor([command]).expand(len(STANCE), 3)).reference
    moved = np.diff(feet_in(reference), axis=0)[:, :2] / 0.02
    np.testing.assert_allclose(moved, np.tile(-np.array(command[:2]), (10, 1)), atol=0.05)


def test_turning_turns_the_stance_foot_the_other_way():
    command = torch.tensor([[0.0, 0.0, 0.8]]).expand(len(STANCE), 3)
    turned = np.diff(feet_in(strider().at(STANCE, command).reference), axis=0)[:, 2] / 0.02
    np.testing.assert_allclose(turned, -0.8, atol=0.05)


def test_strides_begin_and_end_in_front_and_behind():
    gait = strider()
    cycle = round(TASKS["laptop"].gait.cycle / 0.02)
    forward = torch.tensor([[0.5, 0.0, 0.0]]).expand(cycle + 1, 3)
    steps = torch.arange(cycle + 1)
    stride = gait.at(steps, forward).reference - gait.at(steps).reference
    torch.testing.assert_close(stride[0], stride[-1], atol=1e-5, rtol=0)
    reach = 0.5 * TASKS["laptop"].gait.cycle / 4  # m
    assert stride[0, 0].item() == pytest.approx(-reach / 0.63, rel=0.01)  # left thigh forward
    torch.testing.assert_close(stride[0, 0], -stride[0, 6])  # right thigh backward
    torch.testing.assert_close(stride[:, 4], -stride[:, 0])  # soles stay level


def test_mirrored_commands_have_mirrored_strides_half_a_cycle_later():
    gait, robot = strider(), make_robot("g1")
    later = TASKS["laptop"].gait.cycle / 2 / 0.02
    steps, command = torch.arange(30), torch.tensor([[0.4, 0.2, -0.5]]).expand(30, 3)
    here = gait.at(steps, command).reference
    there = gait.at(steps + later, command * torch.tensor([1.0, -1.0, -1.0])).reference
    mirrored = here[:, list(robot.mirror)] * torch.tensor(robot.mirror_sign)
    torch.testing.assert_close(there, mirrored, atol=1e-5, rtol=0)


@pytest.mark.parametrize("preset", ["paper", "g1"])
def test_without_strides_the_command_does_not_matter(preset):
    steps, command = torch.arange(64), torch.full((64, 3), 0.5)
    assert torch.equal(gait(preset).at(steps, command).reference, gait(preset).at(steps).reference)


# Measured ---------------------------------------------------------------------------------------


def measure(contacts, heights):
    """Feed one sequence per environment, (steps, N, F)."""
    contacts, heights = torch.as_tensor(contacts).bool(), torch.as_tensor(heights)
    meter = GaitMeter(*contacts.shape[1:])
    for contact, height in zip(contacts, heights, strict=True):
        meter.update(contact, height)
    return meter


def test_swings_of_hand_made_sequences():
    # One foot each: falls in, two swings; never lifts; lands, swings, cut off; always in the air.
    contact = torch.tensor(
        [
            [0, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 0, 0],
            [0, 1, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 0, 0],
            [1, 1, 0, 0],
        ]
    ).unsqueeze(-1)
    height = torch.tensor(
        [
            [0.50, 0.1, 0.9, 0.1],
            [0.10, 0.1, 0.1, 0.2],
            [0.16, 0.1, 0.2, 0.3],
            [0.13, 0.1, 0.3, 0.4],
            [0.12, 0.1, 0.4, 0.5],  # lands two centimetres higher: the next swing starts there
            [0.14, 0.1, 0.5, 0.6],
            [0.10, 0.1, 0.6, 0.7],
        ]
    ).unsqueeze(-1)
    meter = measure(contact, height)
    assert meter.swings.squeeze(-1).tolist() == [2, 0, 0, 0]
    apex = meter.swing_apex()
    assert apex[0].item() == pytest.approx((0.06 + 0.02) / 2, abs=1e-6)
    assert apex[1:].isnan().all()
    assert meter.double_support().tolist() == pytest.approx([3 / 7, 1, 1 / 7, 0])
    assert meter.touchdowns(0.02).tolist() == pytest.approx([2 / 0.14, 0, 0, 0])


def test_a_swing_that_only_sinks_has_height_zero():
    meter = measure([[[1]], [[0]], [[1]]], [[[0.5]], [[0.4]], [[0.3]]])
    assert meter.swing_apex().item() == 0.0


def test_gait_of_random_sequences_equals_a_plain_loop():
    generator = torch.Generator().manual_seed(0)
    contacts = torch.rand(60, 5, 2, generator=generator) < 0.6
    heights = torch.rand(60, 5, 2, generator=generator)
    meter = measure(contacts, heights)
    for env in range(5):
        apexes = []
        for foot in range(2):
            down = contacts[:, env, foot].nonzero().squeeze(-1).tolist()
            z = heights[:, env, foot]
            for start, end in itertools.pairwise(down):
                if end > start + 1:
                    apexes.append(max(0.0, (z[start + 1 : end].max() - z[start]).item()))
        assert meter.swings[env].sum() == len(apexes)
        assert meter.swing_apex()[env].item() == pytest.approx(np.mean(apexes), abs=1e-6)
        both = contacts[:, env].all(-1).double().mean().item()
        assert meter.double_support()[env].item() == pytest.approx(both)


def test_reset_forgets_only_the_given_environments():
    contacts = torch.tensor([[1], [0], [1]]).expand(3, 2).unsqueeze(-1)
    meter = measure(contacts, torch.zeros(3, 2, 1))
    meter.reset(torch.tensor([1]))
    assert meter.swings.squeeze(-1).tolist() == [1, 0]
    # In the air at the start of the new episode: what was before it must not make this a swing.
    meter.update(torch.zeros(2, 1, dtype=torch.bool), torch.ones(2, 1))
    meter.update(torch.ones(2, 1, dtype=torch.bool), torch.zeros(2, 1))
    assert meter.swings.squeeze(-1).tolist() == [2, 0]
    assert meter.steps.tolist() == [5, 2]
