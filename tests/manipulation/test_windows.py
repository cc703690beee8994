import pytest
import torch

from prism_motor.manipulation.config import NetworkConfig
from prism_motor.manipulation.demonstrations.cache import Demonstrations
from prism_motor.manipulation.diffusion.network import measure_statistics
from prism_motor.manipulation.environment import SMALLEST_RANGE
from prism_motor.manipulation.windows import TrainingWindows, draw_samples


def numbered(lengths):
    """Every value is the number of its step."""
    steps = torch.arange(sum(lengths), dtype=torch.float32)[:, None]
    vectors = {"observation.state": steps, "action": steps.clone()}
    images = steps[:, :, None, None].expand(-1, 3, 2, 2).to(torch.uint8)
    return Demonstrations(
        vectors, {"observation.images.a": images}, torch.tensor(lengths).cumsum(0)
    )


def test_a_sample_is_two_observations_and_sixteen_actions_around_its_step():
    windows = TrainingWindows(numbered([40, 30]), NetworkConfig())
    batch = windows.batch(torch.tensor([10]))
    assert batch["observation.state"][0, :, 0].tolist() == [9, 10]
    assert batch["action"][0, :, 0].tolist() == list(range(9, 25))
    assert not batch["action_is_pad"].any()
    assert batch["observation.images.a"].shape == (1, 2, 3, 2, 2)
    torch.testing.assert_close(batch["observation.images.a"][0, 1, 0, 0, 0], torch.tensor(10 / 255))


def test_samples_stay_within_their_episode():
    windows = TrainingWindows(numbered([40, 30]), NetworkConfig())
    # The last seven steps of an episode begin no sample.
    assert len(windows) == 33 + 23
    first = windows.batch(torch.tensor([33]))  # the beginning of the second episode
    assert first["observation.state"][0, :, 0].tolist() == [40, 40]
    assert first["action"][0, :3, 0].tolist() == [40, 40, 41]
    assert first["action_is_pad"][0, :3].tolist() == [True, False, False]
    last = windows.batch(torch.tensor([32]))
    assert last["observation.state"][0, :, 0].tolist() == [31, 32]
    assert last["action"][0, -8:, 0].tolist() == [39] * 8
    assert last["action_is_pad"][0].tolist() == [False] * 9 + [True] * 7


def test_samples_equal_those_of_lerobot(tmp_path):
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    import numpy as np
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    from prism_motor.manipulation.demonstrations.dataset import write_dataset
    from prism_motor.manipulation.demonstrations.recording import Demonstration

    keys = ("observation.state", "observation.environment_state", "action")
    lengths, values = [20, 17], np.arange(37, dtype=np.float32)[:, None]
    parts = [values[:20], values[20:]]
    write_dataset(
        tmp_path / "data",
        [Demonstration(part, part, part) for part in parts],
        features={key: {"dtype": "float32", "shape": (1,), "names": None} for key in keys},
        frames_per_second=10,
        suite="made up",
        instruction="count",
        origin={},
    )
    past = {"observation.state": [-0.1, 0.0], "action": [(n - 1) / 10 for n in range(16)]}
    theirs = LeRobotDataset("local/data", root=tmp_path / "data", delta_timestamps=past)
    ours = TrainingWindows(numbered(lengths), NetworkConfig())
    for sample, step in ((0, 0), (12, 12), (13, 20), (22, 29)):
        item, batch = theirs[step], ours.batch(torch.tensor([sample]))
        for key in ("observation.state", "action"):
            torch.testing.assert_close(batch[key][0], item[key].reshape(-1, 1))
        assert batch["action_is_pad"][0].tolist() == item["action_is_pad"].tolist()


def test_every_sample_comes_once_before_any_comes_again():
    drawn = torch.cat([draw_samples(10, 4, seed=1, update=update) for update in range(5)])
    assert sorted(drawn[:10].tolist()) == sorted(drawn[10:].tolist()) == list(range(10))
    assert drawn[:10].tolist() != drawn[10:].tolist()
    assert draw_samples(10, 4, 1, 3).tolist() == draw_samples(10, 4, 1, 3).tolist()
    assert draw_samples(1000, 20, 1, 0).tolist() != draw_samples(1000, 20, 2, 0).tolist()
    assert len(draw_samples(3, 8, seed=1, update=0)) == 8


def test_statistics_are_ranges_and_narrow_ones_are_widened():
    values = torch.tensor([[0.0, 5.0, 1.0], [2.0, 5.0, 1.001]])
    found = measure_statistics(Demonstrations({"action": values}, {}, torch.tensor([2])))["action"]
    torch.testing.assert_close(found["min"][0], torch.tensor(0.0))
    torch.testing.assert_close(found["max"][0], torch.tensor(2.0))
    width = found["max"] - found["min"]
    torch.testing.assert_close(width[1:], torch.full((2,), SMALLEST_RANGE))
    torch.testing.assert_close((found["max"] + found["min"])[2] / 2, torch.tensor(1.0005))


def test_the_smallest_range_is_the_environments_but_objects_are_in_metres():
    values = torch.tensor([[0.0], [0.5]])
    keys = ("action", "observation.state", "observation.environment_state")
    vectors = {key: 0 * values if "environment" in key else values for key in keys}
    found = measure_statistics(
        Demonstrations(vectors, {}, torch.tensor([2]), smallest_range=2.0)
    )  # fmt: skip
    widths = [float(found[key]["max"] - found[key]["min"]) for key in keys]
    assert widths == pytest.approx([2.0, 2.0, SMALLEST_RANGE])
