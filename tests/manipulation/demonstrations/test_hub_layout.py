"""The public LIBERO demonstrations hold forty tasks in LeRobot's names; one task is read."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.manipulation.data import drawn_as
from prism_motor.manipulation.demonstrations.cache import DemonstrationsError, load_demonstrations
from prism_motor.manipulation.demonstrations.images import join_images
from prism_motor.manipulation.presets import make_config
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
        robot_type="panda",
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


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
    """Two episodes of two cameras of 48 x 32 pixels, as videos: a grey that grows."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    image = {"dtype": "video", "shape": (32, 48, 3), "names": ["height", "width", "channels"]}
    folder = tmp_path_factory.mktemp("filmed") / "libero"
    dataset = LeRobotDataset.create(
        repo_id="local/filmed",
        root=folder,
        robot_type="panda",
        fps=10,
        features={
            "observation.images.image": image,
            "observation.images.image2": image,
            "observation.state": {"dtype": "float32", "shape": (8,), "names": None},
            "action": {"dtype": "float32", "shape": (7,), "names": None},
        },
    )
    for episode in range(2):
        for step in range(40 + episode):
            picture = np.zeros((32, 48, 3), np.uint8)
            picture[:, 8:40] = 5 * step  # the square in the middle; its sides stay black
            dataset.add_frame(
                {
                    "observation.images.image": picture,
                    "observation.images.image2": 255 - picture,
                    "observation.state": np.zeros(8, np.float32),
                    "action": np.zeros(7, np.float32),
                    "task": STOVE,
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
        "control_seconds": 0.05,
        "smallest_range": 0.01,
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


def test_videos_are_cropped_and_each_file_is_decoded_by_itself(filmed, monkeypatch):
    from lerobot.datasets import video_utils

    asked, decode = [], video_utils.decode_video_frames

    def counting(file, times, *options, **more):
        asked.append((file, len(times)))
        return decode(file, times, *options, **more)

    monkeypatch.setattr(video_utils, "decode_video_frames", counting)
    read = load_demonstrations(filmed, scene(STOVE, image_size=16), images=True, objects=False)
    # Every image is decoded once, many at a time.
    assert sum(number for _, number in asked) == 2 * 81
    assert len(asked) == 2 * 2 * 2
    values = [5 * step for length in (40, 41) for step in range(length)]
    first = read.images["observation.images.image"].float()
    second = read.images["observation.images.image2"].float()
    assert first.shape == (81, 3, 16, 16)
    inside = first[..., 2:-2, 2:-2]
    assert (inside.mean((1, 2, 3)) - torch.tensor(values)).abs().max() < 6
    assert (second[..., 2:-2, 2:-2].mean((1, 2, 3)) - 255 + torch.tensor(values)).abs().max() < 6
    # Nothing of the black sides is left, as there would be in a squeezed image.
    assert (first[-1, :, 8, 1] - 200).abs().max() < 30
    monkeypatch.setattr("prism_motor.manipulation.demonstrations.cache.MOST_BYTES", 0)
    stored = load_demonstrations(
        filmed, scene(STOVE, image_size=16), images=True, objects=False
    )  # fmt: skip
    chosen = torch.tensor([0, 44, 80])
    for key, images in read.images.items():
        assert torch.equal(stored.images[key][chosen], images[chosen])


def test_images_of_the_hub_were_drawn_by_the_stock_renderer(hub):
    pytest.importorskip("libero", reason="LIBERO is not installed")

    def drawn(preset, **network):
        cameras = ("agentview", "robot0_eye_in_hand")
        config = make_config(preset, "prism", overrides={"task.suite": "libero_goal"})
        task = replace(config.task, name="turn_on_the_stove", cameras=cameras)
        chosen = replace(config.network, **network)
        return drawn_as(replace(config, task=task, demos=str(hub), network=chosen))

    assert drawn("paper") == 24  # as they are there, whatever size the policy sees
    assert drawn("paper", image_size=24) == 0
    assert drawn("state") == 0  # sees no images
    with pytest.raises(
        DemonstrationsError,
        match=r"drawn by libero_goal's own renderer \(stock\).*network.renderer fast. Add "
        r"--network.renderer stock",
    ):
        drawn("laptop")
    assert drawn("laptop", renderer="stock") == 24


def test_what_the_hub_does_not_have_is_said(hub):
    with pytest.raises(DemonstrationsError, match=r"'open the drawer'; it has: put the bowl.*"):
        load_demonstrations(hub, scene("open the drawer"), images=True, objects=False)
    with pytest.raises(DemonstrationsError, match="Only prism record records object poses"):
        load_demonstrations(hub, scene(STOVE), images=False, objects=True)
    wider = scene(STOVE, state_names=tuple("abcdefghi"))
    with pytest.raises(DemonstrationsError, match=r"observation\.state .* \[8\].* has 9 values"):
        load_demonstrations(hub, wider, images=True, objects=False)


def test_several_tasks_are_read_with_their_instructions(hub, monkeypatch):
    tasks = [scene(text).task for text in (BOWL, STOVE)]
    options = {"images": True, "objects": False, "tasks": tasks}
    read = load_demonstrations(hub, scene(BOWL), **options)
    assert read.ends.tolist() == [4, 9, 15]  # in the order of the dataset
    assert read.instructions == (STOVE, BOWL, STOVE)
    few = load_demonstrations(hub, scene(BOWL), **options, episodes=1)
    assert few.instructions == (STOVE, BOWL)
    with pytest.raises(DemonstrationsError, match="has 1 demonstration of put_the_bowl_on_the"):
        load_demonstrations(hub, scene(BOWL), **options, episodes=2)
    # Images that do not fit into memory are the same, decoded when they are asked for.
    monkeypatch.setattr("prism_motor.manipulation.demonstrations.cache.MOST_BYTES", 0)
    stored = load_demonstrations(hub, scene(BOWL), **options)
    chosen = torch.tensor([[0, 14], [5, 5]])
    for key, images in read.images.items():
        assert not isinstance(stored.images[key], torch.Tensor)
        assert torch.equal(stored.images[key][chosen], images[chosen])
        joined = join_images([stored.images[key], images])
        assert torch.equal(joined[chosen + 15], images[chosen])


def test_another_control_rate_is_refused(hub):
    with pytest.raises(DemonstrationsError, match=r"has 10 steps per second.*libero_goal has 80"):
        load_demonstrations(hub, scene(STOVE, control_seconds=0.0125), images=True, objects=False)
