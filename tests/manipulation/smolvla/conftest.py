"""SmolVLA on a model of 32 numbers per token and on made-up demonstrations of two tasks."""

from dataclasses import replace

import pytest
import torch

from prism_motor.domains import DOMAINS
from prism_motor.manipulation.demonstrations.cache import Demonstrations

STATE, ACTION = 11, 4
TASKS = ("reach-v3", "push-v3")


@pytest.fixture(scope="session", autouse=True)
def _vlm_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRISM_VLM_CACHE", str(tmp_path_factory.mktemp("vlm")))
        yield


def make_config(arm="prism", tasks=TASKS, **changes):
    """A run that needs no simulator to train."""
    domain = DOMAINS["manipulation"]
    config = domain.make_config("smolvla-tiny", arm, overrides={"demos": "made-up", **changes})
    task = replace(config.task, suite="metaworld", name="+".join(tasks))
    config = domain.planned(replace(config, task=task))
    sizes = {"state": STATE, "action": ACTION, "cameras": ("corner2",)}
    sizes["objects"] = 0 if len(tasks) > 1 else 10
    return replace(config, task=replace(config.task, **sizes), log_every=2)


def demonstrations_of(config):
    """Stand in for what a run reads: two episodes per task, actions that follow from the state."""
    from prism_motor.manipulation.data import tasks_of

    generator = torch.Generator().manual_seed(0)
    tasks = tasks_of(config)
    lengths = (12, 9) * len(tasks)
    state = torch.rand(sum(lengths), STATE, generator=generator)
    images = torch.randint(
        0, 256, (sum(lengths), 3, 32, 32), dtype=torch.uint8, generator=generator
    )
    return Demonstrations(
        {"observation.state": state, "action": torch.tanh(state[:, :ACTION] - 0.5)},
        {"observation.images.corner2": images},
        torch.tensor(lengths).cumsum(0),
        tuple(task.instruction for task in tasks for _ in range(2)),
    )


@pytest.fixture(scope="module")
def made_up():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prism_motor.manipulation.data.load_for", demonstrations_of)
        yield
