"""The public LIBERO demonstrations hold forty tasks in LeRobot's names; one task is read."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.manipulation.demonstrations.cache import DemonstrationsError, load_demonstrations
from prism_motor.manipulation.tasks import Task

STOVE, BOWL = "turn on the stove", "put the bowl on the plate"


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """Three episodes of two tasks, with the columns that ``HuggingFaceVLA/libero`` has."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    image = {"dtype": "image", "shape": (24, 24, 3), "names": ["height", "width", "channel"]}
    folder = tmp_path_factory.mktemp("hub") / "libero"
    dataset = LeRobotDataset.create(
        repo_id="local/libero",
        root=folder,
        fps=10,
        features={
            "observation.images.image": image,
            "observation.images.image2": image,
            "observation.state": {"dtype": "float32", "shape": (8,), "names": None},
            "action": {"dtype": "float32", "shape": (7,), "names": None},
        },
        use_videos=False,
    )
    for episode, task in enumerate((STOVE, BOWL, STOVE)):
        for step in range(4 + episode):
            value = 10 * episode + step
            dataset.add_frame(
                {
                    "observation.images.image": np.full((24, 24, 3), value, np.uint8),
                    "observation.images.image2": np.full((24, 24, 3), 100 + value, np.uint8),
                    "observation.state": np.full(8, value, np.float32),
                    "action": np.full(7, -value, np.float32),
                    "task": task,
                }
            )
        dataset.save_episode()
    dataset.finalize()
    return folder


def scene(instruction, **changes):
    """What the reading needs to know of an environment."""
    known = {
        "task": Task("libero_goal", 7, instruction.replace(" ", "_"), instruction, 300),
        "state_names": tuple("abcdefgh"),
        "action_names": tuple("abcdefg"),
        "object_names": ("x",),
        "cameras": ("agentview", "robot0_eye_in_hand"),
        "image_size": 12,
    }
    return SimpleNamespace(**{**known, **changes})


def test_only_episodes_with_the_instruction_are_read(hub):
    read = load_demonstrations(hub, scene("Turn on the stove"), images=True, objects=False)
    values = [0, 1, 2, 3, 20, 21, 22, 23, 24, 25]
    assert read.ends.tolist() == [4, 10]
    assert read.vectors["observation.state"][:, 0].tolist() == values
    assert read.vectors["action"][:, 6].tolist() == [-value for value in values]
    first, second = (
        read.images["observation.images.image"],
        read.images["observation.images.image2"],
    )
    assert first.shape == (10, 3, 12, 12)
    assert first[:, 0, 5, 5].tolist() == values
    assert second[:, 2, 0, 0].tolist() == [100 + value for value in values]


def test_what_the_hub_does_not_have_is_said(hub):
    with pytest.raises(DemonstrationsError, match=r"'open the drawer'; it has: put the bowl.*"):
        load_demonstrations(hub, scene("open the drawer"), images=True, objects=False)
    with pytest.raises(DemonstrationsError, match="Only prism record records object poses"):
        load_demonstrations(hub, scene(STOVE), images=False, objects=True)
    wider = scene(STOVE, state_names=tuple("abcdefghi"))
    with pytest.raises(DemonstrationsError, match=r"observation\.state .* \[8\].* has 9 values"):
        load_demonstrations(hub, wider, images=True, objects=False)
