import json
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")


from prism_motor.manipulation.diffusion.actor import DiffusionActor
from prism_motor.manipulation.diffusion.network import make_policy
from prism_motor.manipulation.environment import Observation
from prism_motor.manipulation.policy import check_fit, export_policy, load_policy
from prism_motor.manipulation.tasks import find_task, make_environment
from prism_motor.nn import GATED
from prism_motor.runs import RunError
from prism_motor.train import session
from tests.report.folders import unseal

from .conftest import demonstrations_of, make_config


def make_run(path, images=False, arm="prism"):
    session.train(*session.start(make_config(arm, images, updates=2), path))
    return path


@pytest.fixture(scope="module", autouse=True)
def _made_up():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prism_motor.manipulation.data.load_for", demonstrations_of)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "prism")


def observations(count, images=False):
    generator = np.random.default_rng(0)
    for _ in range(count):
        image = generator.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        yield Observation(
            generator.random(11).astype(np.float32),
            generator.random(10).astype(np.float32),
            {"corner2": image} if images else {},
        )


@pytest.mark.parametrize("images", [False, True])
def test_acting_equals_lerobots_select_action(tmp_path, images):
    policy = load_policy(make_run(tmp_path / "run", images))
    actor = DiffusionActor(policy)
    actor.reset(5)
    policy.network.reset()
    for step, seen in enumerate(observations(20, images)):
        batch = {"observation.state": torch.from_numpy(seen.state)}
        if images:
            image = torch.from_numpy(seen.images["corner2"]).permute(2, 0, 1) / 255
            batch["observation.images.corner2"] = image
        else:
            batch["observation.environment_state"] = torch.from_numpy(seen.objects)
        torch.manual_seed(1_000_003 * 5 + step)  # what the actor does for every chunk
        theirs = policy.denormalise(policy.network.select_action(policy.normalise(batch)))
        assert actor.wants_images() == (images and step % 8 in (0, 7))
        ours = actor.act(seen if actor.wants_images() else replace(seen, images={}))
        np.testing.assert_array_equal(ours, theirs[0].numpy())


def test_acting_leaves_the_random_numbers_of_others_alone(run):
    actor = DiffusionActor(load_policy(run))
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    actor.act(next(observations(1)))
    assert torch.equal(torch.rand(3), expected)


def test_a_policy_of_another_task_is_refused(run):
    policy = load_policy(run)
    push = make_environment(find_task("metaworld", "push-v3"), cameras=())
    try:
        with pytest.raises(
            ValueError, match="trained on metaworld reach-v3 and cannot be evaluated"
        ):
            check_fit(policy, push)
    finally:
        push.close()
    other = replace(
        policy, config=replace(policy.config, task=replace(policy.config.task, state=8))
    )
    reach = make_environment(find_task("metaworld", "reach-v3"), cameras=())
    try:
        with pytest.raises(ValueError, match=r"sizes \(8, 10, 4\).* now has \(11, 10, 4\)"):
            check_fit(other, reach)
    finally:
        reach.close()


def test_a_checkpoint_of_another_conditioner_is_refused(run, tmp_path):
    other = make_run(tmp_path / "linear", arm="linear")
    config = json.loads((run / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match="was changed after the run had begun"):
        load_policy(other)
    unseal(other)
    with pytest.raises(RunError, match=r"does not fit the policy that its config\.json describes"):
        load_policy(other)


def test_lerobot_loads_what_is_exported(run, tmp_path):
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    policy = load_policy(run)
    folder = export_policy(policy, tmp_path / "pretrained")
    export_policy(policy, folder)  # once more, over the first
    config = PreTrainedConfig.from_pretrained(folder)
    assert config.type == "prism_diffusion"
    loaded = get_policy_class(config.type).from_pretrained(folder)
    for name, value in policy.network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    normalise, denormalise = make_pre_post_processors(config, pretrained_path=str(folder))
    seen = {"observation.state": torch.rand(11), "observation.environment_state": torch.rand(10)}
    for key, value in policy.normalise(dict(seen)).items():
        if key in seen:
            assert torch.equal(normalise(dict(seen))[key], value)
    action = torch.rand(1, 4)
    assert torch.equal(denormalise(action.clone()), policy.denormalise(action.clone()))


def test_what_is_exported_takes_images_of_any_size(tmp_path):
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    run = load_policy(make_run(tmp_path / "run", images=True))
    folder = export_policy(run, tmp_path / "pretrained")
    config = PreTrainedConfig.from_pretrained(folder)
    policy = get_policy_class(config.type).from_pretrained(folder)
    normalise, _ = make_pre_post_processors(config, pretrained_path=str(folder))
    actions = []
    for scale in (1, 4):  # LeRobot's LIBERO draws 256 or 360 pixels, whatever was trained on
        policy.reset()
        torch.manual_seed(0)
        seen = {
            "observation.state": torch.full((11,), 0.5),
            "observation.images.corner2": torch.full((3, 16 * scale, 16 * scale), 0.5),
        }
        actions.append(policy.select_action(normalise(seen)))
    torch.testing.assert_close(*actions)


@pytest.mark.parametrize("interaction", GATED)
def test_gates_start_as_the_conditioner_says(interaction):
    config = make_config()
    changed = replace(config.conditioner, interaction=interaction, gate_init=1.0)
    for one, expected in ((config, 0.01), (replace(config, conditioner=changed), 1.0)):
        gates = [p for name, p in make_policy(one).named_parameters() if name.endswith("gate")]
        assert len(gates) == 1
        assert torch.equal(gates[0], torch.full_like(gates[0], expected))
