"""SmolVLA in run folders: training, resuming, what checkpoints hold, acting, exporting."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("lerobot", reason="LeRobot is not installed")
pytest.importorskip("metaworld", reason="Meta-World is not installed")

import torch

from prism_motor.domains import DOMAINS
from prism_motor.manipulation.backbones import BACKBONES
from prism_motor.manipulation.environment import Observation
from prism_motor.manipulation.policy import export_policy, load_policy
from prism_motor.manipulation.smolvla import vlm
from prism_motor.manipulation.smolvla.backbone import SMOLVLA
from prism_motor.manipulation.tasks import find_task, list_tasks
from prism_motor.manipulation.trainer import HandlingTrainer
from prism_motor.runs import Run, RunError
from prism_motor.train import session

from .conftest import ACTION, STATE, demonstrations_of, make_config

REACH, PUSH = (find_task("metaworld", name) for name in ("reach-v3", "push-v3"))
VLM = "model.vlm_with_expert.vlm."

pytestmark = pytest.mark.usefixtures("made_up")


@pytest.fixture(scope="module")
def run(tmp_path_factory, made_up):
    path = tmp_path_factory.mktemp("runs") / "prism"
    session.train(*session.start(make_config(), path))
    return path


def observations(count):
    generator = np.random.default_rng(0)
    for _ in range(count):
        yield Observation(
            generator.random(STATE).astype(np.float32),
            np.zeros(0, dtype=np.float32),
            {"corner2": generator.integers(0, 256, (32, 32, 3), dtype=np.uint8)},
        )


def test_a_cut_run_ends_with_the_same_bits(run, tmp_path):
    config = make_config()
    cut, trainer = session.start(config, tmp_path / "cut")
    session.train(cut, trainer, updates=2)
    assert cut.steps() == [0, 2]
    session.train(*session.resume(tmp_path / "cut"))
    one, two = (Run.open(path).load().tensors for path in (run, tmp_path / "cut"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    again = [json.loads(line) for line in (tmp_path / "cut" / "metrics.jsonl").open()]
    assert [row["loss"] for row in rows] == [row["loss"] for row in again]


def test_checkpoints_leave_the_frozen_model_out_and_know_it(run, monkeypatch):
    checkpoint = Run.open(run).load()
    names = [name for name in checkpoint.tensors if name.startswith("policy.")]
    assert names
    assert not any(VLM in name for name in names)
    policy = load_policy(run)
    trained = {name for name, p in policy.network.named_parameters() if p.requires_grad}
    assert {name.removeprefix("policy.") for name in names} >= trained
    assert not any(name.startswith(VLM) for name in trained)
    monkeypatch.setattr(vlm, "_SEED", 2)  # as if torch drew other numbers, or the model was swapped
    with pytest.raises(RunError, match=r"vision-language model .*random-tiny is not the one"):
        load_policy(run)
    with pytest.raises(RunError, match="is not the one that the policy was trained with"):
        session.resume(run)


def test_the_frozen_model_is_the_same_for_every_seed_and_arm():
    weights = []
    for arm, seed in (("prism", 1), ("linear", 2)):
        torch.manual_seed(seed)
        policy = SMOLVLA.make_policy(make_config(arm))
        weights.append({k: v for k, v in policy.state_dict().items() if k.startswith(VLM)})
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_arms_see_the_same_samples_and_noise_and_differ_only_in_the_state(monkeypatch):
    losses = {}
    for arm in ("linear", "mlp-matched", "mlp-large", "prism"):
        config = make_config(arm, **{"optimiser.learning_rate": 1e-9})
        trainer = HandlingTrainer(config, demonstrations_of(config))
        with torch.no_grad():
            for parameter in trainer.policy.model.state_proj.parameters():
                parameter.zero_()
        losses[arm] = trainer.loss().item()
    assert len(set(losses.values())) == 1, losses


def test_instructions_reach_the_samples():
    config = make_config()
    trainer = HandlingTrainer(config, demonstrations_of(config))
    said = trainer.windows.instructions(torch.tensor([0, len(trainer.windows) - 1]))
    assert said == [REACH.instruction, PUSH.instruction]
    # Every step of every episode starts a sample: LeRobot drops none for SmolVLA.
    assert len(trainer.windows) == 2 * (12 + 9)


def test_instructions_that_look_alike_are_refused():
    config = make_config()
    data = demonstrations_of(config)
    unknown = replace(data, instructions=("frobnicate it", "defenestrate it") * 2)
    with pytest.raises(ValueError, match="cannot tell 'defenestrate it' and 'frobnicate it' apart"):
        HandlingTrainer(config, unknown)


@pytest.mark.parametrize("suite", ["metaworld", "libero_spatial", "libero_10", "libero_goal"])
def test_random_models_know_all_words(suite):
    pytest.importorskip("libero", reason="hf-libero is not installed")
    tokenizer = vlm._make_tokenizer()
    for task in list_tasks(suite):
        assert tokenizer.unk_token_id not in tokenizer(task.instruction)["input_ids"], task


def test_acting_equals_lerobots_select_action(run):
    policy = load_policy(run)
    actor = policy.acting_on(PUSH)
    actor.reset(5)
    policy.network.reset()
    for step, seen in enumerate(observations(20)):
        image = torch.from_numpy(seen.images["corner2"]).permute(2, 0, 1) / 255
        batch = {
            "observation.state": torch.from_numpy(seen.state),
            "observation.images.corner2": image,
            "task": PUSH.instruction,
        }
        torch.manual_seed(1_000_003 * 5 + step)  # what the actor does for every chunk
        theirs = policy.denormalise(policy.network.select_action(policy.normalise(batch)))
        assert actor.wants_images() == (step % 8 == 0)
        ours = actor.act(seen if actor.wants_images() else replace(seen, images={}))
        np.testing.assert_array_equal(ours, theirs[0].numpy())


def test_the_instruction_matters(run):
    policy = load_policy(run)
    seen = next(observations(1))
    reach, push = (policy.acting_on(task).act(seen) for task in (REACH, PUSH))
    assert reach.shape == push.shape == (ACTION,)
    assert not np.array_equal(reach, push)


def test_lerobot_loads_what_is_exported(run, tmp_path, monkeypatch):
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    policy = load_policy(run)
    folder = export_policy(policy, tmp_path / "pretrained")
    monkeypatch.setenv("PRISM_VLM_CACHE", str(tmp_path / "empty"))  # it needs nothing else
    config = PreTrainedConfig.from_pretrained(folder)
    assert config.type == "prism_smolvla"
    loaded = get_policy_class(config.type).from_pretrained(folder)
    for name, value in policy.network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    normalise, _ = make_pre_post_processors(config, pretrained_path=str(folder))
    batch = {
        "observation.state": torch.rand(STATE),
        "observation.images.corner2": torch.rand(3, 32, 32),
        "task": REACH.instruction,
    }
    ours, theirs = policy.normalise(dict(batch)), normalise(dict(batch))
    for key, value in ours.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(theirs[key], value), key


def test_the_reported_checkpoint_is_kept_and_used(tmp_path):
    config = make_config(updates=5, checkpoint_every=1, keep_checkpoints=1, reported=2)
    session.train(*session.start(config, tmp_path / "run"))
    run = Run.open(tmp_path / "run")
    assert run.steps() == [2, 5]
    assert load_policy(run.path).step == 2
    assert run.load_intact().step == 5  # where training would go on


def test_early_errors(tmp_path, monkeypatch):
    domain = DOMAINS["manipulation"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    config = make_config()
    missing = replace(config, network=config.network.change(vlm="nobody/knows-this"))
    with pytest.raises(ValueError, match=r"no folder nobody/knows-this.*cannot be fetched"):
        domain.prepare(missing)
    (tmp_path / "config.json").write_text("{}")
    folder = replace(config, network=config.network.change(vlm=str(tmp_path)))
    with pytest.raises(ValueError, match=r"not a vision-language model: it needs config\.json"):
        domain.prepare(folder)
    random = replace(config, network=config.network.change(vlm="random-tony"))
    with pytest.raises(ValueError, match="Did you mean 'random-tiny'"):
        domain.prepare(random)
    other = replace(config, network=config.network.change(lerobot="0.3"))
    with pytest.raises(ValueError, match=r"begun with LeRobot 0\.3 .*padded actions"):
        SMOLVLA.check(other)
    diffusion = domain.make_config("state", "prism", overrides={"task.name": "reach-v3+push-v3"})
    with pytest.raises(ValueError, match=r"diffusion learns one task.*got 2 of metaworld"):
        domain.prepare(diffusion)
    rate = domain.make_config("state", "prism", overrides={"optimiser.last_rate": 1e-6})
    with pytest.raises(ValueError, match="the schedule of diffusion ends at 0"):
        BACKBONES["diffusion"].check(rate)
