import json
import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("metaworld", reason="Meta-World is not installed")
pytest.importorskip("lerobot", reason="LeRobot is not installed")

from prism_motor.manipulation.demonstrations.cache import DemonstrationsError, load_demonstrations
from prism_motor.manipulation.demonstrations.collection import (
    CollectionConfig,
    DemonstrationCollection,
)
from prism_motor.manipulation.demonstrations.dataset import (
    ACTION,
    OBJECTS,
    STATE,
    image_key,
    write_dataset,
)
from prism_motor.manipulation.demonstrations.recording import (
    load_demonstration,
    record_demonstration,
)
from prism_motor.manipulation.tasks import find_task, make_environment, make_expert

CONFIG = CollectionConfig("metaworld", "reach-v3", episodes=2, image_size=32, seed=3)


@pytest.fixture(scope="module")
def environment():
    made = make_environment(find_task("metaworld", "reach-v3"), image_size=32)
    yield made
    made.close()


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    """Two demonstrations that were recorded and not written yet, and the folder for them."""
    collection = DemonstrationCollection(CONFIG, tmp_path_factory.mktemp("demos") / "reach")
    collection.collect()
    return collection


@pytest.fixture(scope="module")
def dataset(attempts, tmp_path_factory):
    """A finished dataset."""
    folder = tmp_path_factory.mktemp("written") / "reach"
    shutil.copytree(attempts.folder, folder.with_name("reach.partial"))
    DemonstrationCollection(CONFIG, folder).finish()
    return folder


def test_what_is_read_is_what_was_recorded(attempts, dataset, environment):
    read = load_demonstrations(dataset, environment, images=True, objects=True)
    recorded = [load_demonstration(file) for file in attempts.done]
    assert read.ends.tolist() == np.cumsum([len(episode) for episode in recorded]).tolist()
    assert read.starts.tolist() == [0, len(recorded[0])]
    for key, field in ((STATE, "states"), (OBJECTS, "objects"), (ACTION, "actions")):
        expected = np.concatenate([getattr(episode, field) for episode in recorded])
        np.testing.assert_array_equal(read.vectors[key].numpy(), expected)
    for camera in environment.cameras:
        expected = np.concatenate([episode.images[camera] for episode in recorded])
        found = read.images[image_key(camera)].permute(0, 2, 3, 1).numpy()
        np.testing.assert_array_equal(found, expected)


def test_lerobot_reads_the_dataset(dataset):
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    opened = LeRobotDataset("local/reach", root=dataset)
    assert opened.num_episodes == 2
    assert opened.fps == 80
    item = opened[5]
    assert item["task"] == "Reach a goal position"
    assert item[image_key("corner2")].shape == (3, 32, 32)
    assert opened.meta.features[STATE]["names"][3] == "gripper_opening"


def test_the_dataset_says_where_it_comes_from(dataset):
    origin = json.loads((dataset / "meta" / "prism.json").read_text())
    assert origin["collection"]["task"] == "reach-v3"
    assert origin["attempts"] == 2 + len(origin["failed_attempts"])
    assert "commit" in origin["provenance"]
    assert not dataset.with_name("reach.partial").exists()


def test_demonstrations_go_on_after_success(attempts, environment):
    episode = load_demonstration(attempts.done[0])
    environment.reset(seed=3_000_000, images=False)
    successes = [environment.step(action, images=False).success for action in episode.actions]
    assert successes.index(True) == len(episode) - CONFIG.hold - 1


def test_an_interrupted_collection_ends_like_any_other(attempts, tmp_path):
    collection = DemonstrationCollection(CONFIG, tmp_path / "reach")

    def interrupt(success):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collection.collect(interrupt)
    assert len(collection.done) == 1
    again = DemonstrationCollection(CONFIG, tmp_path / "reach")
    again.collect()
    for mine, other in zip(again.done, attempts.done, strict=True):
        assert mine.name == other.name
        np.testing.assert_array_equal(
            load_demonstration(mine).actions, load_demonstration(other).actions
        )


def test_noise_is_executed_but_not_recorded(environment):
    executed = []

    class Watched:
        """The environment, with its actions noted."""

        def __getattr__(self, name):
            return getattr(environment, name)

        def step(self, action, images):
            executed.append(np.array(action))
            return environment.step(action, images=images)

    expert = make_expert(environment)
    options = {"seed": 5, "hold": 2, "images": False}
    clean = record_demonstration(environment, expert, **options)
    noisy = record_demonstration(Watched(), expert, **options, noise=0.3)
    gaps = np.stack(executed) - noisy.actions
    inside = np.abs(np.stack(executed)) < 1
    assert np.all(gaps[:, -1] == 0)  # the fingers are left alone
    assert 0.1 < np.abs(gaps[:, :-1][inside[:, :-1]]).mean() < 0.5
    assert np.abs(noisy.states[5] - clean.states[5]).max() > 1e-4
    environment.reset(seed=5, images=False)
    first = expert.act()
    np.testing.assert_array_equal(noisy.actions[0], first)
    again = record_demonstration(environment, expert, **options, noise=0.3)
    np.testing.assert_array_equal(noisy.states, again.states)
    for wrong in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="noise must be"):
            CollectionConfig("metaworld", "reach-v3", noise=wrong)


def test_a_collection_is_not_mixed_with_another(attempts, dataset):
    other = CollectionConfig("metaworld", "reach-v3", episodes=5, image_size=32, seed=3)
    with pytest.raises(ValueError, match="unfinished collection with other settings"):
        DemonstrationCollection(other, attempts.out)
    with pytest.raises(ValueError, match="already exists with 2 demonstrations"):
        DemonstrationCollection(CONFIG, dataset)


def test_an_expert_that_fails_too_often_is_given_up_on(tmp_path, monkeypatch):
    monkeypatch.setattr(CollectionConfig, "most_attempts", 2)  # not thirteen
    monkeypatch.setattr(
        "prism_motor.manipulation.demonstrations.collection.record_demonstration",
        lambda *_, **__: None,
    )
    collection = DemonstrationCollection(
        CollectionConfig("metaworld", "reach-v3", 1, 0), tmp_path / "reach"
    )
    with pytest.raises(ValueError, match=r"in only 0 of 2 attempts, too few for 1 demonstration\."):
        collection.collect()
    assert collection.failures == [0, 1]


def test_images_are_scaled_to_the_asked_size(dataset):
    environment = make_environment(
        find_task("metaworld", "reach-v3"), cameras=("gripperPOV",), image_size=16
    )
    try:
        read = load_demonstrations(dataset, environment, images=True, objects=False, episodes=1)
    finally:
        environment.close()
    assert list(read.images) == [image_key("gripperPOV")]
    assert next(iter(read.images.values())).shape[1:] == (3, 16, 16)
    assert len(read.ends) == 1
    assert OBJECTS not in read.vectors


def test_what_does_not_fit_is_refused(dataset, environment, tmp_path):
    def load(source, scene=environment, **options):
        return load_demonstrations(source, scene, **{"images": False, "objects": True, **options})

    with pytest.raises(DemonstrationsError, match="2 demonstrations of reach-v3, fewer than the 3"):
        load(dataset, episodes=3)
    with pytest.raises(DemonstrationsError, match="is not a LeRobotDataset"):
        load(tmp_path)
    (tmp_path / "begun.partial").mkdir()
    with pytest.raises(DemonstrationsError, match="not complete yet"):
        load(tmp_path / "begun")
    push = make_environment(find_task("metaworld", "push-v3"), cameras=())
    try:
        with pytest.raises(
            DemonstrationsError, match="shows metaworld reach-v3, not metaworld push"
        ):
            load(dataset, push)
        (shutil.copytree(dataset, tmp_path / "nameless") / "meta" / "prism.json").unlink()
        with pytest.raises(
            DemonstrationsError, match="no demonstration of 'Push the puck to a goal'"
        ):
            load(tmp_path / "nameless", push)
    finally:
        push.close()


def test_sizes_and_columns_of_another_robot_are_refused(attempts, environment, tmp_path):
    episode = load_demonstration(attempts.done[0])
    sizes = {STATE: 11, OBJECTS: 10, ACTION: 7}
    features = {key: {"dtype": "float32", "shape": (n,), "names": None} for key, n in sizes.items()}
    wide = type(episode)(episode.states, episode.objects, np.zeros((len(episode), 7), np.float32))
    write_dataset(
        tmp_path / "wide",
        [wide],
        features=features,
        frames_per_second=80,
        suite="metaworld",
        instruction="Reach a goal position",
        origin={"collection": {"suite": "metaworld", "task": "reach-v3"}},
    )
    with pytest.raises(DemonstrationsError, match=r"Column action .* shape \[7\].* has 4 values"):
        load_demonstrations(tmp_path / "wide", environment, images=False, objects=True)
    with pytest.raises(DemonstrationsError, match=r"no column observation\.images\.corner2"):
        load_demonstrations(tmp_path / "wide", environment, images=True, objects=False)


def test_a_dataset_that_is_nowhere_is_named(environment, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DemonstrationsError, match="No dataset found at nobody/nothing"):
        load_demonstrations("nobody/nothing", environment, images=False, objects=True)


def test_columns_of_liberos_cameras_are_those_of_the_hub():
    assert image_key("agentview") == "observation.images.image"
    assert image_key("robot0_eye_in_hand") == "observation.images.image2"


def test_everything_read_is_finite(dataset, environment):
    read = load_demonstrations(dataset, environment, images=False, objects=True)
    assert all(torch.isfinite(values).all() for values in read.vectors.values())


@pytest.mark.slow
def test_workers_record_what_this_process_records(attempts, tmp_path):
    collection = DemonstrationCollection(CONFIG, tmp_path / "reach", workers=1)
    collection.collect()
    for mine, other in zip(collection.done, attempts.done, strict=True):
        np.testing.assert_array_equal(
            load_demonstration(mine).states, load_demonstration(other).states
        )
