"""Episodes recorded one by one: kept, taken back, appended, and what a kill leaves."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor._checks import InputError, PrismError
from prism_motor.manipulation.demonstrations import takes as module
from prism_motor.manipulation.demonstrations.recording import Demonstration
from prism_motor.manipulation.demonstrations.takes import Takes
from prism_motor.manipulation.tasks import find_task, make_environment
from prism_motor.runs.locks import LockedError


def environment_of(suite="so101", task="mouse-click-v0", size=16, cameras=None):
    return make_environment(find_task(suite, task), image_size=size, cameras=cameras)


def noise(seed, frames=4, size=16):
    """Return an episode in which every value is another."""
    random = np.random.default_rng(seed)
    return Demonstration(
        states=random.normal(size=(frames, 6)).astype(np.float32),
        objects=random.normal(size=(frames, 10)).astype(np.float32),
        actions=random.normal(size=(frames, 6)).astype(np.float32),
        images={
            camera: random.integers(0, 256, (frames, size, size, 3), dtype=np.uint8)
            for camera in ("agent", "wrist")
        },
    )


@pytest.fixture
def out(tmp_path):
    return tmp_path / "demos"


def read(out):
    """Return what LeRobot finds: lengths, actions and one image per frame."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("local/demos", root=out)
    items = [dataset[i] for i in range(len(dataset))]
    lengths = [int(episode["length"]) for episode in dataset.meta.episodes]
    actions = np.stack([item["action"].numpy() for item in items])
    pixels = np.stack([item["observation.images.wrist"].numpy() for item in items])
    numbers = [int(item["episode_index"]) for item in items]
    return lengths, actions, np.rint(255 * pixels).astype(int), numbers


def check_contents(out, *episodes):
    lengths, actions, pixels, numbers = read(out)
    assert lengths == [len(episode) for episode in episodes]
    assert np.array_equal(actions, np.concatenate([one.actions for one in episodes]))
    images = np.concatenate([one.images["wrist"] for one in episodes]).transpose(0, 3, 1, 2)
    assert np.array_equal(pixels, images)
    assert numbers == [i for i, one in enumerate(episodes) for _ in range(len(one))]


def test_takes_are_kept_taken_back_and_appended(out):
    a, b, c, d = (noise(seed, frames=3 + seed) for seed in range(4))
    first = Takes(out, environment_of())
    first.keep(a, seed=1, success=True)
    first.keep(b, seed=2, success=False)
    assert first.undo().seed == 2
    first.keep(c, seed=3, success=True)
    first.close()
    check_contents(out, a, c)
    assert not first.folder.exists()

    second = Takes(out, environment_of())
    assert [(take.seed, take.success) for take in second.kept] == [(1, True), (3, True)]
    second.keep(d, seed=4, success=True)
    second.close()
    check_contents(out, a, c, d)

    third = Takes(out, environment_of())
    third.undo()
    third.undo()
    third.close()
    check_contents(out, a)
    origin = json.loads((out / "meta" / "prism.json").read_text())
    assert origin["collection"]["episodes"] == 1
    assert [take["seed"] for take in origin["takes"]] == [1]

    fourth = Takes(out, environment_of())
    fourth.undo()
    fourth.close()
    assert not out.exists()
    with pytest.raises(InputError, match="no kept episode"):
        Takes(out, environment_of()).undo()


def test_the_dataset_follows_while_the_session_lasts(out):
    takes = Takes(out, environment_of())
    takes.keep(noise(1), seed=1, success=True)
    wait(lambda: not takes.writing)
    check_contents(out, noise(1))
    # It waits while an episode is recorded.
    takes.hold(True)
    takes.keep(noise(2), seed=2, success=True)
    time.sleep(0.5)
    assert takes.writing
    takes.hold(False)
    wait(lambda: not takes.writing)
    check_contents(out, noise(1), noise(2))
    takes.undo()
    wait(lambda: len(list(takes.folder.glob("*.npz"))) == 1)
    takes.close()


def wait(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def test_layout_is_that_of_recorded_demonstrations(out, tmp_path):
    from prism_motor.cli import main

    takes = Takes(out, environment_of())
    takes.keep(noise(1), seed=1, success=True)
    takes.close()
    scripted = tmp_path / "scripted"
    main(["record", "--suite", "so101", "--task", "mouse-click-v0", "--episodes", "1",
          "--image-size", "16", "--out", str(scripted)])  # fmt: skip
    listed = [
        sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())
        for root in (out, scripted)
    ]
    assert listed[0] == listed[1]
    infos = [json.loads((root / "meta" / "info.json").read_text()) for root in (out, scripted)]
    for key in ("features", "fps", "robot_type", "codebase_version"):
        assert infos[0][key] == infos[1][key]


KILLED = """
import os, signal, sys
from pathlib import Path
from prism_motor.manipulation.demonstrations.takes import Takes
from tests.manipulation.demonstrations.test_takes import environment_of, noise
takes = Takes(Path(sys.argv[1]), environment_of())
takes.keep(noise(1), seed=1, success=True)
while takes.writing: pass
takes.hold(True)
takes.keep(noise(2), seed=2, success=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_loses_nothing_that_was_kept(out):
    killed = subprocess.run([sys.executable, "-c", KILLED, out], check=False)
    assert killed.returncode == -signal.SIGKILL
    check_contents(out, noise(1))
    takes = Takes(out, environment_of())
    assert [take.seed for take in takes.kept] == [1, 2]
    takes.keep(noise(3), seed=3, success=True)
    takes.close()
    check_contents(out, noise(1), noise(2), noise(3))


def test_a_dataset_that_cannot_be_written_is_said_and_tried_again(out, monkeypatch):
    takes = Takes(out, environment_of())

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_dataset", full)
        takes.keep(noise(1), seed=1, success=True)
        wait(lambda: takes.failure)
        with pytest.raises(PrismError, match=r"No space left .* the same command continues"):
            takes.close()
    again = Takes(out, environment_of())
    again.close()
    check_contents(out, noise(1))


def test_a_take_that_cannot_be_saved_is_not_kept(out, monkeypatch):
    takes = Takes(out, environment_of())
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_json", lambda *_: os.stat("/nowhere/at/all"))
        with pytest.raises(OSError, match="nowhere"):
            takes.keep(noise(1), seed=1, success=True)
    assert takes.kept == []
    takes.keep(noise(2), seed=2, success=True)
    takes.close()
    check_contents(out, noise(2))


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"task": "press-key-v0"}, "with task mouse-click-v0, not press-key-v0"),
        ({"suite": "so101_stiff"}, "with suite so101, not so101_stiff"),
        ({"size": 32}, "with image size 16, not 32"),
        ({"cameras": ("agent",)}, "with cameras agent, wrist, not agent"),
    ],
)
def test_other_settings_are_refused(out, other, said, killed):
    takes = Takes(out, environment_of())
    takes.keep(noise(1), seed=1, success=True)
    if killed:
        wait(lambda: not takes.writing)
        takes._lock.release()
    else:
        takes.close()
    with pytest.raises(InputError, match=said):
        Takes(out, environment_of(**other))
    if killed:
        takes.close()
    check_contents(out, noise(1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda info: {**info, "fps": 15}, "with frames per second 15, not 30"),
        (lambda info: rename_joints(info), "with joints and units a, b"),
        (lambda info: {**info, "total_episodes": 2}, "has 2 episodes, but"),
    ],
)
def test_datasets_of_another_rate_or_unit_are_refused(out, change, said):
    takes = Takes(out, environment_of())
    takes.keep(noise(1), seed=1, success=True)
    takes.close()
    file = out / "meta" / "info.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(InputError, match=said):
        Takes(out, environment_of())
    assert not takes.folder.exists()


def rename_joints(info):
    info["features"]["action"]["names"] = ["a", "b", "c", "d", "e", "f"]
    return info


def test_other_folders_are_refused(out):
    out.mkdir()
    (out / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="was not recorded with prism teleop"):
        Takes(out, environment_of())
    assert (out / "thesis.tex").read_text() == "x"
    file = out.with_name("file")
    file.write_text("x")
    with pytest.raises(InputError, match="was not recorded with prism teleop"):
        Takes(file, environment_of())


def test_damaged_takes_are_refused(out):
    takes = Takes(out, environment_of())
    takes.keep(noise(1), seed=1, success=True)
    wait(lambda: not takes.writing)
    takes._lock.release()
    index = takes.folder / "takes.json"
    good = index.read_text()
    for text, said in (("{", "cannot be read"), ("[]", "cannot be read"), ("{}", "with suite")):
        index.write_text(text)
        with pytest.raises(InputError, match=said):
            Takes(out, environment_of())
    index.write_text(json.dumps({**json.loads(good), "takes": [{"number": 0}]}))
    with pytest.raises(InputError, match="lists no takes"):
        Takes(out, environment_of())
    index.write_text(good)
    file = takes.folder / "000000.npz"
    for spoil in (lambda: file.write_bytes(b"no archive"), file.unlink):
        spoil()
        with pytest.raises(InputError, match=r"000000\.npz is missing or damaged"):
            Takes(out, environment_of())
    # As the message says, the dataset is enough.
    takes.close()
    again = Takes(out, environment_of())
    assert [take.seed for take in again.kept] == [1]
    again.close()


def test_only_one_session_records_a_dataset(out):
    takes = Takes(out, environment_of())
    with pytest.raises(LockedError, match="is being recorded by process"):
        Takes(out, environment_of())
    takes.close()
    Takes(out, environment_of()).close()
