"""What a person records is a dataset like any other: appended to, read and trained on."""

import json

import numpy as np
import pytest

from prism_motor.cli import main
from prism_motor.manipulation.demonstrations.cache import load_demonstrations
from prism_motor.manipulation.tasks import find_task, make_environment
from prism_motor.sim.so101 import FEATURES
from tests.viewer.teleop.operator import record, record_briefly

TINY = ("--network.widths", 8, 16, "--batch", 4, "--log-every", 1, "--threads", 1)
TINY += ("--network.inference-steps", 2, "--conditioner.latent", 8, "--network.image-size", 16)


@pytest.mark.slow
def test_two_sessions_record_what_is_trained_on(teleoperate, tmp_path):
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    folder = tmp_path / "demos"
    # Kept, taken back, recorded again.
    first = teleoperate()
    assert record(first).success
    record_briefly(first)
    first.undo()
    record_briefly(first)
    first.record_again()
    for _ in range(7):
        first.step()
    first.keep()
    first.close()
    # Appended; an unfinished episode is lost.
    second = teleoperate()
    assert [take.frames for take in second.kept] == [first.kept[0].frames, 7]
    assert second.seed == first.seed
    assert record(second).success
    second.start()
    second.step()
    second.close()

    lengths = [take.frames for take in second.kept]
    dataset = LeRobotDataset("local/demos", root=folder)
    assert [int(episode["length"]) for episode in dataset.meta.episodes] == lengths
    assert (dataset.fps, dataset.meta.robot_type) == (30, "so101")
    for key in ("observation.state", "action"):
        assert tuple(dataset.features[key]["names"]) == FEATURES
    assert tuple(dataset[0]["observation.images.wrist"].shape) == (3, 24, 24)

    environment = make_environment(find_task("so101", "mouse-click-v0"), image_size=24)
    demonstrations = load_demonstrations(folder, environment, images=True, objects=True)
    assert demonstrations.ends.tolist() == np.cumsum(lengths).tolist()

    run = tmp_path / "run"
    words = ("train", "manipulation", "--preset", "pilot", "--arm", "prism", "--demos", folder,
             "--out", run, "--updates", 2, *TINY)  # fmt: skip
    main([str(word) for word in words])
    config = json.loads((run / "config.json").read_text())
    assert config["task"]["cameras"] == ["agent", "wrist"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 2
