"""Small motions to test with, and files of them in every layout."""

import numpy as np

from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import kinematics
from prism_motor.tracking.motions.clip import Clip

ROBOT = make_robot("g1-29")
FRAMES = 20


def make_clip(frames=FRAMES, fps=50.0, seed=0, **about):
    """Return a smooth motion within all limits, near the ground and slowly turning."""
    rng = np.random.default_rng(seed)
    time = np.arange(frames)[:, None] / fps
    joints = ROBOT.default_pose + 0.05 * np.sin(
        time * rng.uniform(1, 3, 29) + rng.uniform(0, 6, 29)
    )
    low, high = kinematics().limits.T
    joints = np.clip(joints, low, high)
    position = np.concatenate([0.3 * time, 0.1 * time, 0.8 + 0.01 * np.sin(3 * time)], axis=1)
    yaw = 0.5 + 0.8 * time[:, 0]
    turn = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=1)
    return Clip("some", fps, position, turn, joints, **about)


def unitree(clip):
    """Return the rows of Unitree's CSV layout."""
    return np.concatenate(
        [clip.position, np.roll(clip.quaternion, -1, axis=1), clip.joints], axis=1
    )


def write_rows(file, rows, header=None):
    lines = [",".join(header)] if header else []
    file.write_text("\n".join(lines + [",".join(f"{v:.9g}" for v in row) for row in rows]) + "\n")
    return file


def write_mimic(file, clip, order="mujoco", **extra):
    """Write the layout of mjlab (depth first) or of Isaac (breadth first)."""
    position, rotation = kinematics().poses(clip.qpos)
    from scipy.spatial.transform import Rotation

    names = list(kinematics().names)[:-1]
    joints = dict(zip(names[1:], clip.joints.T, strict=True))
    if order == "isaac":
        level = {"pelvis": 0}
        for name in names[1:]:
            level[name] = kinematics().depth[name]
        names = [n for depth in range(12) for n in names if level[n] == depth]
    index = [kinematics().names.index(name) for name in names]
    matrices = np.moveaxis(rotation[:, :, index], (0, 1), (-2, -1)).swapaxes(0, 1)
    turns = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat().reshape(len(clip), -1, 4)
    arrays = {
        "fps": np.array([clip.fps]),
        "joint_pos": np.stack([joints[name] for name in names[1:]], axis=1),
        "body_pos_w": position[:, index].T,
        "body_quat_w": np.roll(turns, 1, axis=-1),
    }
    np.savez(file, **(arrays | extra))
    return file
