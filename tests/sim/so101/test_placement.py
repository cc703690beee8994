import numpy as np
import pytest
from numpy.testing import assert_allclose

from prism_motor._checks import InputError
from prism_motor.sim.so101.placement import (
    APART,
    EVALUATION_POSES,
    Placement,
    PlacementRange,
    evaluation_poses,
    random_pose,
)
from prism_motor.sim.so101.scenes import SCENES

MOUSE = SCENES["mouse-click-v0"]
FIRST = (0.211214955, 0.008001809, -0.158405548)
LAST = (0.207928031, 0.002448969, 0.104157087)


def test_fixed_poses_never_change():
    """Results of years ago are compared with these poses."""
    poses = evaluation_poses("mouse-click-v0", MOUSE.narrow)
    assert len(poses) == EVALUATION_POSES == 50
    assert_allclose(poses[0], FIRST, atol=1e-9)
    assert_allclose(poses[49], LAST, atol=1e-9)


@pytest.mark.parametrize("task", SCENES)
@pytest.mark.parametrize("where", ["narrow", "wide"])
def test_random_poses_are_in_range_and_not_near_fixed_ones(task, where):
    scene = SCENES[task]
    box = scene.placements(where)
    fixed = np.array(evaluation_poses(task, box))
    drawn = np.array([random_pose(task, box, seed) for seed in range(200)])
    for poses in (fixed, drawn):
        assert (poses >= box.low).all()
        assert (poses <= box.high).all()
        spread = (poses.max(0) - poses.min(0)) / (box.high - box.low)
        assert (spread > 0.85).all()
    apart = np.linalg.norm(fixed[:, None, :2] - drawn[None, :, :2], axis=-1)
    assert apart.min() > APART == 0.002
    assert (drawn[0] != drawn[1]).all()
    assert random_pose(task, box, 7) == random_pose(task, box, 7)


@pytest.mark.parametrize("task", SCENES)
def test_the_wide_range_holds_the_narrow_one(task):
    scene = SCENES[task]
    assert (scene.wide.low <= scene.narrow.low).all()
    assert (scene.wide.high >= scene.narrow.high).all()
    assert scene.wide.check(scene.narrow.middle) == scene.narrow.middle
    with pytest.raises(InputError, match="Unknown placement 'wider'"):
        scene.placements("wider")


def test_wrong_poses_are_refused():
    box = PlacementRange((0.1, 0.2), 0.05, 0.3)
    assert box.middle == pytest.approx((0.15, 0.0, 0.0))
    with pytest.raises(InputError, match=r"beyond what the arm was tried on: x 0\.1 to 0\.2"):
        box.check(Placement(0.3, 0, 0))
    for wrong in ((0.1, 0.2), (0.15, np.nan, 0.0), "here", None):
        with pytest.raises(InputError, match="A pose is x, y"):
            box.check(wrong)
