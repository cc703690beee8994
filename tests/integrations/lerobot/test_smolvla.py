"""``prism_smolvla`` against LeRobot's SmolVLA, on a SmolVLM that the tests write themselves."""

import pytest

pytest.importorskip("lerobot", reason="lerobot is not installed: pip install 'prism-motor[all]'")

import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.factory import make_pre_post_processors
from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy

from prism_motor.integrations.lerobot import PrismSmolVLAConfig, PrismSmolVLAPolicy
from prism_motor.integrations.lerobot.checkpoints import CheckpointMismatchError
from prism_motor.manipulation.smolvla.config import PAPER_VLM
from prism_motor.manipulation.smolvla.vlm import SIZES, write_vlm

STATE, CAMERA, TASK = "observation.state", "observation.images.front", "push the red block"


@pytest.fixture(scope="module")
def tiny_vlm(tmp_path_factory):
    return str(write_vlm(tmp_path_factory.mktemp("smolvlm"), SIZES["random-tiny"]))


@pytest.fixture
def fields(tiny_vlm):
    return {
        "vlm_model_name": tiny_vlm,
        "device": "cpu",
        "num_vlm_layers": 2,
        "resize_imgs_with_padding": (32, 32),
        "chunk_size": 4,
        "n_action_steps": 4,
        "num_steps": 2,
        "input_features": {
            STATE: PolicyFeature(FeatureType.STATE, (8,)),
            CAMERA: PolicyFeature(FeatureType.VISUAL, (3, 32, 32)),
        },
        "output_features": {"action": PolicyFeature(FeatureType.ACTION, (7,))},
    }


@pytest.fixture
def batch(fields):
    """Two samples as LeRobot's own processors prepare them, tokens included."""
    raw = {
        STATE: torch.randn(2, 8),
        CAMERA: torch.rand(2, 3, 32, 32),
        "action": torch.randn(2, 4, 7),
        "task": [TASK, TASK],
    }
    preprocess, _ = make_pre_post_processors(PrismSmolVLAConfig(**fields))
    return preprocess(raw)


def build(policy, config):
    torch.manual_seed(11)
    return policy(config)


def loss_of(policy, batch):
    torch.manual_seed(5)
    return policy.forward(dict(batch))[0]


def actions_of(policy, batch):
    policy.reset()
    torch.manual_seed(6)
    return policy.predict_action_chunk({k: v for k, v in batch.items() if k != "action"})


def test_linear_is_lerobot_weight_for_weight(fields, batch, tmp_path):
    ours = build(PrismSmolVLAPolicy, PrismSmolVLAConfig(conditioner="linear", **fields))
    theirs = build(SmolVLAPolicy, SmolVLAConfig(**fields))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], tensor), name
    assert torch.equal(loss_of(ours, batch), loss_of(theirs, batch))
    assert torch.equal(actions_of(ours, batch), actions_of(theirs, batch))
    with torch.no_grad():
        theirs.model.state_proj.weight.add_(1)
    theirs.save_pretrained(tmp_path)
    loaded = PrismSmolVLAPolicy.from_pretrained(tmp_path, config=ours.config)
    assert torch.equal(loaded.model.state_proj.weight, theirs.model.state_proj.weight)


@pytest.mark.parametrize("conditioner", ["prism", "mlp"])
def test_everything_but_the_state_token_is_untouched(conditioner, fields, batch):
    ours = build(PrismSmolVLAPolicy, PrismSmolVLAConfig(conditioner=conditioner, **fields))
    theirs = build(SmolVLAPolicy, SmolVLAConfig(**fields))
    for name, tensor in theirs.state_dict().items():
        if "state_proj" not in name:
            assert torch.equal(ours.state_dict()[name], tensor), name
    others = [name for name in ours.state_dict() if name not in theirs.state_dict()]
    assert all(name.startswith("model.state_proj.") for name in others)
    trained = {name for name, p in ours.named_parameters() if p.requires_grad}
    for name, parameter in theirs.named_parameters():
        assert "state_proj" in name or (name in trained) == parameter.requires_grad, name

    # Of the prefix (images, language, state) only the last token, the state's, differs.
    def prefix(policy):
        images, masks = policy.prepare_images(batch)
        tokens = batch["observation.language.tokens"]
        attention = batch["observation.language.attention_mask"]
        state = policy.prepare_state(batch)
        return policy.model.embed_prefix(images, masks, tokens, attention, state=state)[0]

    with torch.no_grad():
        ours_prefix, theirs_prefix = prefix(ours), prefix(theirs)
    assert torch.equal(ours_prefix[:, :-1], theirs_prefix[:, :-1])
    assert not torch.allclose(ours_prefix[:, -1], theirs_prefix[:, -1])

    # With LeRobot's projection put back, losses and actions are LeRobot's bit for bit.
    ours.model.state_proj = theirs.model.state_proj
    assert torch.equal(loss_of(ours, batch), loss_of(theirs, batch))
    assert torch.equal(actions_of(ours, batch), actions_of(theirs, batch))


@pytest.mark.parametrize("interaction", ["gated", "product", "explicit"])
def test_padding_is_ignored_and_stays_so(interaction, fields, batch):
    config = PrismSmolVLAConfig(
        prism_interaction=interaction, prism_gate_init=1.0, optimizer_lr=1e-2, **fields
    )
    policy = build(PrismSmolVLAPolicy, config)
    optimizer = config.get_optimizer_preset().build(policy.get_optim_params())
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(policy, batch).backward()
        optimizer.step()
    conditioner = policy.model.state_proj
    state = policy.prepare_state(batch)
    assert state.shape == (2, 32)
    noisy = state.clone()
    noisy[:, 8:] = torch.randn(2, 24)
    torch.testing.assert_close(conditioner(noisy), conditioner(state), rtol=0, atol=1e-6)
    if interaction == "gated":
        listed = conditioner.interaction.interactions(top=None)
        named = {name for product in listed if product.strength for name in product.inputs}
        assert named <= {f"x{i}" for i in range(8)}


def test_narrow_state_has_no_inputs_for_padding(fields, batch):
    config = PrismSmolVLAConfig(narrow_state=True, input_norm="layer", **fields)
    policy = build(PrismSmolVLAPolicy, config)
    assert policy.model.state_proj.conditioner.in_features == 8
    loss_of(policy, batch).backward()
    assert policy.model.state_proj.conditioner.interaction.weight.grad.abs().sum() > 0


def test_norm_over_padding_is_refused(fields):
    with pytest.raises(ValueError, match=r"input_norm='layer' would normalise over the padding"):
        PrismSmolVLAConfig(input_norm="layer", **fields)


def test_state_that_does_not_fit_is_refused(fields):
    fields["input_features"][STATE] = PolicyFeature(FeatureType.STATE, (40,))
    with pytest.raises(ValueError, match="40 coordinates, more than max_state_dim=32"):
        PrismSmolVLAPolicy(PrismSmolVLAConfig(**fields))


def test_optimiser_spares_the_gates(fields):
    config = PrismSmolVLAConfig(**fields)
    policy = build(PrismSmolVLAPolicy, config)
    optimizer = config.get_optimizer_preset().build(policy.get_optim_params())
    decay = {
        id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]
    }
    assert {id(p) for p in policy.parameters()} == set(decay)
    assert decay[id(policy.model.state_proj.interaction.gate)] == 0
    for name, parameter in policy.named_parameters():
        if "state_proj" not in name:
            assert decay[id(parameter)] == config.optimizer_weight_decay, name


def test_frozen_state_projection_is_frozen_for_ours_too(fields):
    policy = PrismSmolVLAPolicy(PrismSmolVLAConfig(train_state_proj=False, **fields))
    assert not any(p.requires_grad for p in policy.model.state_proj.parameters())


def test_adapters_leave_the_conditioner_whole(fields):
    linear = PrismSmolVLAPolicy(PrismSmolVLAConfig(conditioner="linear", **fields))
    assert "state_proj" in linear._get_default_peft_targets()["target_modules"]
    targets = PrismSmolVLAPolicy(PrismSmolVLAConfig(**fields))._get_default_peft_targets()
    assert "state_proj" not in targets["target_modules"]
    assert targets["modules_to_save"] == ["state_proj"]


def test_round_trip_and_refusals(fields, batch, tmp_path):
    policy = build(PrismSmolVLAPolicy, PrismSmolVLAConfig(**fields))
    policy.save_pretrained(tmp_path / "prism")
    loaded = PrismSmolVLAPolicy.from_pretrained(tmp_path / "prism")
    assert torch.equal(loss_of(loaded, batch), loss_of(policy.eval(), batch))
    with pytest.raises(CheckpointMismatchError, match=r"conditioner=prism.*conditioner=linear"):
        PrismSmolVLAPolicy.from_pretrained(
            tmp_path / "prism", config=PrismSmolVLAConfig(conditioner="linear", **fields)
        )
    SmolVLAPolicy(SmolVLAConfig(**fields)).save_pretrained(tmp_path / "plain")
    with pytest.raises(CheckpointMismatchError, match=r"LeRobot's own type 'smolvla'.*prism"):
        PrismSmolVLAPolicy.from_pretrained(tmp_path / "plain", config=PrismSmolVLAConfig(**fields))


def test_whole_policy_has_the_parameters_of_the_paper(fields, tmp_path):
    fields |= {"vlm_model_name": str(write_vlm(tmp_path, SIZES[PAPER_VLM])), "num_vlm_layers": 16}
    counts = {}
    for name, arm in {
        "linear": {"conditioner": "linear"},
        "prism": {"conditioner": "prism"},
        "larger": {"conditioner": "mlp", "mlp_size": "large"},
    }.items():
        with torch.device("meta"):
            policy = PrismSmolVLAPolicy(PrismSmolVLAConfig(**fields, **arm))
        counts[name] = sum(p.numel() for p in policy.parameters())
    assert counts == {"linear": 450_046_176, "prism": 451_924_896, "larger": 456_245_472}
