"""Clips as states of the simulation, and how far actions reach."""

import numpy as np
import pytest
import torch

from prism_motor._checks import InputError
from prism_motor.tracking.motions.sampling import make_motion
from prism_motor.tracking.presets import PRESETS
from prism_motor.tracking.references import References, action_units, load_references
from prism_motor.tracking.task import TrackingActionConfig
from tests.tracking.robots import cut, replace, short_references

PER_UNIT = {
    "hip_pitch": 1.7533, "hip_roll": 1.7533, "hip_yaw": 2.7377, "knee": 1.7533,
    "ankle_pitch": 2.1929, "ankle_roll": 2.1929, "waist_yaw": 0.3667, "waist_roll": 0.2083,
    "waist_pitch": 0.2083, "shoulder_pitch": 2.1929, "shoulder_roll": 2.1929,
    "shoulder_yaw": 2.1929, "elbow": 2.1929, "wrist_roll": 2.1929, "wrist_pitch": 0.3725,
    "wrist_yaw": 0.3725,
}  # fmt: skip
"""Rad per unit of action, as published."""


def test_units_by_effort_are_the_published_ones():
    from prism_motor.sim.robots import make_robot

    names = make_robot("g1-29").joint_names
    units = action_units(TrackingActionConfig(unit="effort"), "g1-29", short_references())
    for name, unit in zip(names, units, strict=True):
        assert unit == pytest.approx(
            PER_UNIT[name.removeprefix("left_").removeprefix("right_")], abs=6e-5
        ), name
    soft = action_units(TrackingActionConfig(unit="effort"), "g1-29-soft-waist", short_references())
    assert soft[names.index("waist_yaw")] == pytest.approx(1.25 * 88 / 40.17924, rel=1e-5)


def test_units_by_clips_reach_every_frame_and_a_margin():
    references = short_references()
    units = action_units(TrackingActionConfig(unit="clips", margin=0.2), "g1-29", references)
    furthest = [0.0] * 29
    for row in references.qpos:
        for joint in range(29):
            off = abs(row[7 + joint] - references.default_pose[joint])
            furthest[joint] = max(furthest[joint], off)
    np.testing.assert_allclose(units, np.array(furthest) + 0.2, atol=1e-6)


def test_all_frames_are_end_to_end():
    motions = [make_motion(cut("squat", 30), 50.0), make_motion(cut("wave", 20), 50.0)]
    references = References(motions)
    assert references.names == ("squat", "wave")
    assert references.starts.tolist() == [0, 30, 50]
    assert references.lengths.tolist() == [30, 20]
    np.testing.assert_array_equal(references.qpos[30:], motions[1].qpos)
    np.testing.assert_array_equal(references.qvel[:30], motions[0].qvel)


def test_actions_aim_at_each_next_frame_and_stay_within_one():
    references = short_references()
    units = torch.full((29,), 0.5)
    found = references.actions(0, units)
    joints = references.motions[0].qpos[:, 7:]
    for frame in (0, 7, 39):
        aimed = (joints[min(frame + 1, 39)] - references.default_pose) / 0.5
        np.testing.assert_allclose(found[frame], np.clip(aimed, -1, 1), atol=1e-6)
    assert references.actions(0, torch.full((29,), 1e-3)).abs().max() == 1
    hold = references.hold(1, units)
    mean = references.motions[1].qpos[:, 7:].mean(axis=0)
    np.testing.assert_allclose(
        hold, np.clip((mean - references.default_pose) / 0.5, -1, 1), atol=1e-6
    )


def test_experts_have_the_actions_in_their_histories():
    references = short_references()
    layout, units = PRESETS["tiny"].task.layout, torch.full((29,), 0.5)
    experts = references.experts(layout, units, 8)
    actions = references.actions(0, units)
    last = experts.observations[:40, layout.columns["last_action"]]
    assert torch.equal(last[1:], actions[:-1])
    assert last[0].count_nonzero() == 0
    plain = references.observations(layout, 0)
    state, privileged = layout.columns["state"], layout.columns["privileged"]
    assert torch.equal(experts.observations[:40, state], plain[:, state])
    assert torch.equal(experts.observations[:40, privileged], plain[:, privileged])
    assert plain[:, layout.columns["history"]].count_nonzero() == 0


def test_clips_that_are_too_short_for_a_window_are_named():
    motions = [make_motion(cut("squat", 30), 50.0), make_motion(cut("wave", 8), 50.0)]
    References(motions).check_windows(7)
    with pytest.raises(InputError, match=r"at least 9 frames.*too short: wave \(8\)\. Leave"):
        References(motions).check_windows(8)
    with pytest.raises(InputError, match="at least one"):
        References([])


def test_the_digest_sees_names_lengths_and_values():
    motions = list(short_references().motions)
    digest = References(motions).digest()
    assert digest == References(motions).digest()
    renamed = replace(motions[0], name="other")
    moved = replace(motions[0], qpos=motions[0].qpos + 1e-4)
    for other in ([motions[1], motions[0]], [renamed, motions[1]], [moved, motions[1]]):
        assert References(other).digest() != digest


def test_a_task_names_its_clips():
    task = replace(PRESETS["tiny"].task, clips=("stand", "wave"))
    references = load_references(task)
    assert references.names == ("stand", "wave")
    slower = load_references(replace(task, substeps=8))
    assert abs(2 * len(slower.qpos) - len(references.qpos)) <= 2
