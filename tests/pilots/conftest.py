"""A pilot so small that its trials take milliseconds: a point seeks a red spot."""

import functools
import inspect
import json
import os

import pytest

PLUGINS = ("tests.pilots.config_point", "tests.pilots.configuration_seeker")
SIM = ("--robot.type=point_sim", "--robot.id=point")
ARM = ("--robot.type=point_arm", "--robot.id=point")
CRITERION = "The point touches the red spot."
NAMES = ("quillon", "brackish")
"""Names of arms that occur nowhere by chance."""


@pytest.fixture(autouse=True, scope="session")
def _quick_flags():
    # LeRobot's parser reads the source of every setting anew, for a help that nobody sees here.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "getsource", functools.cache(inspect.getsource))
        yield


@pytest.fixture(autouse=True)
def _plugins(tmp_path, monkeypatch):
    pytest.importorskip("lerobot", reason="LeRobot is not installed")
    from prism_motor._plugins import load_plugins

    load_plugins(PLUGINS)
    monkeypatch.setenv("HF_LEROBOT_HOME", str(tmp_path / "lerobot"))


def save_policy(folder, reach=1.0, *, size=32, state=2, low=-100.0, high=100.0, camera="top"):
    """Write a policy folder of LeRobot."""
    import torch
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.diffusion.processor_diffusion import make_diffusion_pre_post_processors

    from tests.pilots.configuration_seeker import SeekerConfig
    from tests.pilots.modeling_seeker import SeekerPolicy

    config = SeekerConfig(
        reach=reach,
        device="cpu",
        push_to_hub=False,
        input_features={
            "observation.state": PolicyFeature(FeatureType.STATE, (state,)),
            f"observation.images.{camera}": PolicyFeature(FeatureType.VISUAL, (3, size, size)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (2,))},
    )
    config.n_obs_steps = 1
    ends = {"min": torch.full((2,), low), "max": torch.full((2,), high)}
    stats = {"observation.state": ends, "action": ends}
    SeekerPolicy(config).save_pretrained(folder)
    for pipeline in make_diffusion_pre_post_processors(config, dataset_stats=stats):
        pipeline.save_pretrained(folder)
    return folder


@pytest.fixture
def policies(tmp_path):
    """Two policies: one reaches far more targets than the other."""
    return [
        f"{name}={save_policy(tmp_path / 'policies' / name, reach)}"
        for name, reach in zip(NAMES, (-0.2, 0.7), strict=True)
    ]


@pytest.fixture
def plan(tmp_path, policies):
    """Plan a pilot and return its folder."""
    from prism_motor.pilots import PilotConfig, make_plan

    def make(*robot, arms=None, folder="pilot", **settings):
        usual = {"criterion": CRITERION, "trials": 4, "limit": 1.0, "fps": 30, "home_seconds": 0.1}
        config = PilotConfig(**{**usual, **settings})
        place = tmp_path / folder
        make_plan(place, config, arms or policies, robot or SIM, PLUGINS)
        return place

    return make


class Script:
    """A keyboard whose lines were typed ahead; it may end after them."""

    def __init__(self, *lines, ends=False):
        from prism_motor.pilots.keys import Keys

        self.read, self.write = os.pipe()
        os.write(self.write, "".join(f"{line}\n" for line in lines).encode())
        self.keys, self.ends = Keys(self.read), ends
        if ends:
            os.close(self.write)

    def __enter__(self):
        return self.keys

    def __exit__(self, *error):
        os.close(self.read)
        if not self.ends:
            os.close(self.write)


def read(file):
    return json.loads(file.read_text())
