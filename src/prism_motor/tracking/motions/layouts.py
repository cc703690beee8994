"""Layouts in which others publish motions of the G1, read into one.

| layout | what identifies it |
|---|---|
| Unitree, LAFAN1, G1 Moves | CSV without a header, 36 columns: x y z, qx qy qz qw, 29 joints; rate not in the file |
| UFO | the same with a leading column of times (37 columns), or with a header: ``root_pos_x`` ..., ``root_quat_x`` ..., ``dof_0`` ... or joint names, perhaps ``time`` |
| BONES-SEED | CSV with a header: ``Frame``, ``root_translateX`` ... in cm, ``root_rotateX`` ... (extrinsic XYZ) and ``JOINT_dof`` in degrees; 120 per second |
| UFO | NPZ: ``root_pos``, ``root_quat`` (xyzw), ``dof_pos``, ``fps`` |
| mjlab, BeyondMimic | NPZ: ``fps``, ``joint_pos``, ``body_pos_w``, ``body_quat_w`` (wxyz) and velocities, which are not used |
| prism | NPZ with a ``header``: a clip |
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prism_motor._checks import InputError, show
from prism_motor.sim.robots import make_robot
from prism_motor.tracking.bodies import ROBOT, kinematics
from prism_motor.tracking.motions.arrays import read_arrays
from prism_motor.tracking.motions.clip import JOINTS, clip_from_arrays

BONES_RATE = 120.0
"""Frames per second of BONES-SEED."""
_UNEVEN = 0.1
"""Allowed deviation of a time step from the mean one."""
_FITS = 0.02
"""Distance between a file's bodies and ours, m; revisions of the model differ by 1 cm."""

_ROOT = tuple(f"root_pos_{axis}" for axis in "xyz")
_TURN = tuple(f"root_quat_{axis}" for axis in "xyzw")
_BONES_ROOT = tuple(f"root_translate{axis}" for axis in "xyz")
_BONES_TURN = tuple(f"root_rotate{axis}" for axis in "xyz")
_TIMES, _COUNTERS = ("time", "t", "timestamp", "time_s"), ("frame", "frame_id", "index")


@dataclass(frozen=True)
class Raw:
    """What a file says, in our units and order, and not checked yet."""

    layout: str
    """Name of the layout."""
    position: np.ndarray
    """(T, 3), m."""
    quaternion: np.ndarray
    """(T, 4), wxyz."""
    joints: np.ndarray
    """(T, 29), rad."""
    fps: float | None
    """Frames per second, if the file says."""
    changes: tuple[str, ...] = ()
    """What reading changed."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Source, licence and attribution, if the file says."""


def read_motion(file: Path, quaternion: str | None = None) -> Raw:
    """Read a motion in any layout.

    Args:
        file: A .csv or .npz file.
        quaternion: Order of the root's quaternion, ``xyzw`` or ``wxyz``; that of the layout by
            default.
    """
    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return _read_csv(file, quaternion or "xyzw")
    if suffix == ".npz":
        return _read_npz(file, quaternion)
    pickled = ""
    if suffix in (".pkl", ".pickle", ".pt", ".pth", ".npy"):
        pickled = (
            " Pickles are never read, because reading one can run any code: write root position, "
            "quaternion and joint angles to a CSV file with the program that made it."
        )
    raise InputError(f"{file}: motions are read from .csv and .npz files.{pickled}")


# CSV ----------------------------------------------------------------------------------------------


def _read_csv(file: Path, order: str) -> Raw:
    header, table = _read_table(file)
    if header is None:
        return _plain(file, table, order)
    columns = dict(zip(header, table.T, strict=True))
    if len(columns) < len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise InputError(f"{file}: the header has {', '.join(twice)} more than once.")
    bones = _BONES_ROOT[0] in columns
    root, turn = (_BONES_ROOT, _BONES_TURN) if bones else (_ROOT, _TURN)
    position, rotation = (_take(file, columns, names) for names in (root, turn))
    times = next((columns.pop(name) for name in _TIMES if name in columns), None)
    for name in _COUNTERS:
        columns.pop(name, None)
    joints = _named_joints(file, columns)
    if not bones:
        fps = None if times is None else _rate(file, times)
        return Raw("UFO, with a header", position, _wxyz(rotation, order), joints, fps)
    from scipy.spatial.transform import Rotation

    turned = Rotation.from_euler("xyz", rotation, degrees=True).as_quat()
    return Raw(
        "BONES-SEED", position / 100, np.roll(turned, 1, axis=1), np.deg2rad(joints), BONES_RATE,
        changes=("centimetres and degrees became metres, a quaternion and radians",),
    )  # fmt: skip


def _plain(file: Path, table: np.ndarray, order: str) -> Raw:
    """Read a table without a header by the number of its columns."""
    width, fps, layout = table.shape[1], None, "Unitree"
    if width == 8 + JOINTS:
        fps, layout, table = _rate(file, table[:, 0]), "UFO, with times", table[:, 1:]
    elif width != 7 + JOINTS:
        robot = f" With {width - 7} joints it is a motion of another robot." if width > 7 else ""
        raise InputError(
            f"{file} has {width} columns; a motion of the 29-joint G1 has {7 + JOINTS} (x y z, "
            f"quaternion x y z w, {JOINTS} joints), or one more with a time first.{robot}"
        )
    return Raw(layout, table[:, :3], _wxyz(table[:, 3:7], order), table[:, 7:], fps)


def _read_table(file: Path) -> tuple[list[str] | None, np.ndarray]:
    """Return the header in lower case, if there is one, and the numbers."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not a text file: {error}.") from None
    rows = [(i, line.split(",")) for i, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise InputError(f"{file} is empty.")
    first = [cell.strip() for cell in rows[0][1]]
    header = None if all(map(_is_number, first)) else [cell.lower() for cell in first]
    if header is not None:
        del rows[0]
    numbers = []
    for line, cells in rows:
        if len(cells) != len(first):
            raise InputError(
                f"{file}, line {line}: {len(cells)} columns, but line 1 has {len(first)}."
            )
        try:
            numbers.append([float(cell) for cell in cells])
        except ValueError:
            wrong = next(cell for cell in cells if not _is_number(cell))
            raise InputError(f"{file}, line {line}: {show(wrong)} is not a number.") from None
    return header, np.array(numbers).reshape(len(numbers), len(first))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _take(file: Path, columns: dict[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray:
    missing = [name for name in names if name not in columns]
    if missing:
        raise InputError(f"{file}: the header lacks {', '.join(missing)}.")
    return np.stack([columns.pop(name) for name in names], axis=1)


def _named_joints(file: Path, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return the joints in our order, from columns with numbers or names of joints."""
    ours = make_robot(ROBOT).joint_names
    found = {name.removesuffix("_dof").removesuffix("_joint"): one for name, one in columns.items()}
    if all(name.startswith("dof_") for name in found):
        names = [f"dof_{i}" for i in range(JOINTS)]
    else:
        names = ours
    missing = [name for name in names if name not in found]
    foreign = [name for name in found if name not in names]
    if missing or foreign:
        said = [f"lacks {', '.join(missing)}"] if missing else []
        said += [f"has {', '.join(foreign)}"] if foreign else []
        raise InputError(
            f"{file}: this is not a motion of the 29-joint G1; the header {' and '.join(said)}."
        )
    return np.stack([found[name] for name in names], axis=1)


def _rate(file: Path, times: np.ndarray) -> float | None:
    """Return the frame rate of a column of times; none if it only counts frames."""
    steps = np.diff(times)
    if len(steps) == 0 or (steps == 1).all():
        return None
    mean = (times[-1] - times[0]) / len(steps)
    if not np.isfinite(times).all() or mean <= 0 or abs(steps - mean).max() > _UNEVEN * mean + 1e-3:
        raise InputError(
            f"{file}: the times in its time column must rise in even steps, in seconds; they "
            f"go from {times[0]:g} to {times[-1]:g} in steps from {steps.min():g} to "
            f"{steps.max():g}."
        )
    return round(1 / mean, 3)


def _wxyz(quaternion: np.ndarray, order: str) -> np.ndarray:
    return quaternion if order == "wxyz" else np.roll(quaternion, 1, axis=1)


# NPZ ----------------------------------------------------------------------------------------------


def _read_npz(file: Path, order: str | None) -> Raw:
    arrays = read_arrays(file)
    if "header" in arrays:
        clip = clip_from_arrays(arrays, file)
        about = {key: getattr(clip, key) for key in ("source", "licence", "attribution")}
        return Raw("prism", clip.position, clip.quaternion, clip.joints, clip.fps, clip.changes,
                   about)  # fmt: skip
    if {"root_pos", "root_quat", "dof_pos"} <= arrays.keys():
        position, turn, joints = (
            _array(file, arrays, name, width)
            for name, width in (("root_pos", 3), ("root_quat", 4), ("dof_pos", JOINTS))
        )
        return Raw("UFO", position, _wxyz(turn, order or "xyzw"), joints, _fps(file, arrays))
    if {"joint_pos", "body_pos_w", "body_quat_w"} <= arrays.keys():
        return _mimic(file, arrays, order or "wxyz")
    raise InputError(
        f"{file} has the arrays {', '.join(sorted(arrays)) or 'none'}; needed are root_pos, "
        "root_quat and dof_pos (UFO), or joint_pos, body_pos_w and body_quat_w (mjlab)."
    )


def _mimic(file: Path, arrays: dict[str, np.ndarray], order: str) -> Raw:
    """Read joints and bodies; their order, which the file does not say, is found by comparison."""
    joints = _array(file, arrays, "joint_pos", JOINTS)
    places, turns = (arrays[name] for name in ("body_pos_w", "body_quat_w"))
    names = [name for name in kinematics().names if name != "head"]
    expected = (len(joints), len(names))
    if places.shape != (*expected, 3) or turns.shape != (*expected, 4):
        raise InputError(
            f"{file}: body_pos_w and body_quat_w have the shapes {places.shape} and {turns.shape}; "
            f"the 29-joint G1 has {len(names)} bodies, so {(*expected, 3)} and {(*expected, 4)} "
            "are needed. It may be a motion of another robot."
        )
    root = places[:, 0].astype(float), _wxyz(turns[:, 0].astype(float), order)
    best: tuple[float, str, np.ndarray] | None = None
    for label, (bodies, columns) in _orders().items():
        ordered = joints[:, columns]
        made, _ = kinematics().poses(np.concatenate([*root, ordered], axis=1))
        index = [kinematics().names.index(name) for name in bodies]
        error = float(np.median(np.linalg.norm(made[:, index].T - places, axis=-1)))
        if best is None or error < best[0]:
            best = (error, label, ordered)
    assert best is not None
    error, label, ordered = best
    if not error < _FITS:
        raise InputError(
            f"{file}: in no known order do its joints move the bodies to where it says they are; "
            f"the best one is {100 * error:.1f} cm off. It may be a motion of another robot."
        )
    change = (f"joints and bodies were in {label} order",) if label != "MuJoCo" else ()
    return Raw("mjlab", *root, ordered, _fps(file, arrays), change)


def _orders() -> dict[str, tuple[list[str], list[int]]]:
    """Return bodies and joint columns by order: depth first (MuJoCo) and breadth first (Isaac)."""
    robot = make_robot(ROBOT)
    names = [name for name in kinematics().names if name != "head"]
    level = kinematics().depth
    breadth = sorted(names, key=lambda name: (level[name], names.index(name)))
    # Every body but the base has one joint, in the same order.
    columns = [breadth.index(name) - 1 for name in names[1:]]
    return {"MuJoCo": (names, list(range(len(robot.joints)))), "Isaac": (breadth, columns)}


def _array(file: Path, arrays: dict[str, np.ndarray], name: str, width: int) -> np.ndarray:
    values = arrays[name]
    if values.ndim != 2 or values.shape[1] != width or values.dtype.kind not in "fiu":
        robot = " It may be a motion of another robot." if width == JOINTS else ""
        raise InputError(
            f"{file}: {name} must be numbers of shape (frames, {width}), got {values.dtype} of "
            f"shape {values.shape}.{robot}"
        )
    return values.astype(float)


def _fps(file: Path, arrays: dict[str, Any]) -> float | None:
    if "fps" not in arrays:
        return None
    values = arrays["fps"]
    if values.size != 1 or values.dtype.kind not in "fiu":
        raise InputError(f"{file}: fps must be one number, got {show(values)}.")
    return float(values.reshape(()))
