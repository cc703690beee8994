"""The environment of ``lerobot-eval``."""

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

from lerobot.envs.configs import EnvConfig
from lerobot.envs.factory import make_env
from lerobot.envs.utils import env_to_policy_features, preprocess_observation

from prism_motor._checks import InputError
from prism_motor.integrations.lerobot.so101 import SO101ClickEnv
from prism_motor.sim.so101.leaders import make_leader
from prism_motor.sim.so101.twin import HOME


@pytest.fixture
def environments():
    config = EnvConfig.get_choice_class("so101_click")(image_size=32, episode_length=200)
    made = make_env(config, n_envs=2)["so101_click"][0]
    yield made
    made.close()


def test_policies_get_what_a_dataset_of_the_twin_has():
    features = env_to_policy_features(SO101ClickEnv(image_size=32))
    assert {name: tuple(one.shape) for name, one in features.items()} == {
        "action": (6,),
        "observation.state": (6,),
        "observation.images.agent": (3, 32, 32),
        "observation.images.wrist": (3, 32, 32),
    }


def test_observations_are_lerobots(environments):
    raw, _ = environments.reset(seed=[3, 4])
    seen = preprocess_observation(raw)
    assert seen["observation.state"].shape == (2, 6)
    assert seen["observation.images.wrist"].shape == (2, 3, 32, 32)
    again, _ = environments.reset(seed=[3, 4])
    np.testing.assert_array_equal(raw["pixels"]["agent"], again["pixels"]["agent"])
    assert (raw["pixels"]["agent"][0] != raw["pixels"]["agent"][1]).any()
    assert environments.call("_max_episode_steps") == (200, 200)
    assert environments.envs[0].render().shape == (256, 256, 3)


def test_a_click_ends_the_episode_with_success(environments):
    environments.reset(seed=[3, 4])
    environment = environments.envs[0]
    leader = make_leader(environment.unwrapped.twin)
    for _ in range(200):
        _, reward, ended, cut, info = environment.step(leader.act())
        if ended or cut:
            break
    assert (reward, ended, cut, info["is_success"]) == (1.0, True, False, True)


def test_without_a_click_it_is_cut(environments):
    environments.reset(seed=[3, 4])
    environment = environments.envs[1]
    for step in range(1, 201):
        _, _, ended, cut, info = environment.step(HOME)
        assert cut == (step == 200)
    assert not ended
    assert not info["is_success"]


def test_settings_are_checked():
    with pytest.raises(InputError, match=r"env.placement 'nowhere'"):
        SO101ClickEnv(placement="nowhere")
